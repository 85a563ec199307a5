// The cache folder: the folder with the cache of one database of one app.
//
// On Linux it is below the user's data directory: `$XDG_DATA_HOME`, or `~/.local/share`. On Apple's platforms
// it is below Application Support. Only its owner can read it.
//
// Invariant: at most one client of one process uses a folder. If a process is killed, the system releases its
// lock.

import FirestoreModel
import Foundation
import Locking

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The reason why a folder cannot be used.
enum CacheFolderError: Error, CustomStringConvertible {
  case inUse(URL)
  case unusable(URL, String)

  var description: String {
    switch self {
    case .inUse(let folder): "another process uses the cache \(folder.path)"
    case .unusable(let folder, let reason): "the cache \(folder.path) cannot be used: \(reason)"
    }
  }
}

/// A folder that this client has locked.
final class CacheFolder: Sendable {
  /// The folders that clients of this process use.
  private static let used = Guarded<Set<String>>([])

  let url: URL
  private let descriptor: Guarded<Int32?>

  /// The database file.
  var file: URL { url.appendingPathComponent("cache.sqlite") }

  /// The URL of the folder for a database's cache.
  static func folder(app: String, appID: String, database: DatabaseName) -> URL {
    root.appendingPathComponent("firestore", isDirectory: true)
      .appendingPathComponent(escape(appID.isEmpty ? app : "\(app)-\(appID)"), isDirectory: true)
      .appendingPathComponent(escape("\(database.project).\(database.database)"), isDirectory: true)
  }

  private static var root: URL {
    #if os(Linux)
      // A relative path is invalid (XDG Base Directory Specification).
      let named = getenv("XDG_DATA_HOME").map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
      return named.map { URL(fileURLWithPath: $0, isDirectory: true) }
        ?? FileManager.default.homeDirectoryForCurrentUser.appendingPathComponent(
          ".local/share", isDirectory: true)
    #else
      return FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first
        ?? FileManager.default.homeDirectoryForCurrentUser
    #endif
  }

  /// Encodes a name so that it is one path component.
  private static func escape(_ name: String) -> String {
    let allowed = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "-_.()"))
    let escaped = name.addingPercentEncoding(withAllowedCharacters: allowed) ?? name
    return escaped.hasPrefix(".") ? "%2E" + escaped.dropFirst() : escaped
  }

  /// Creates a folder if it is missing, and locks it. If another client of this process holds the lock, it
  /// waits up to 30 seconds.
  ///
  /// - Throws: `CacheFolderError`.
  init(_ url: URL) throws {
    self.url = url
    let path = url.standardizedFileURL.path
    let seconds = 30
    let isFree = CacheFolder.used.wait(milliseconds: seconds * 1_000) { used in
      used.insert(path).inserted ? true : nil
    }
    guard isFree != nil else { throw CacheFolderError.inUse(url) }
    do {
      descriptor = Guarded(try CacheFolder.lock(url))
    } catch {
      CacheFolder.markUnused(path)
      throw error
    }
  }

  private static func lock(_ url: URL) throws -> Int32 {
    do {
      try create(url)
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: url.path)
    } catch {
      throw CacheFolderError.unusable(url, "\(error.localizedDescription)")
    }
    let descriptor = open(url.appendingPathComponent("lock").path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw CacheFolderError.unusable(url, String(cString: strerror(errno)))
    }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      close(descriptor)
      if code == EWOULDBLOCK { throw CacheFolderError.inUse(url) }
      throw CacheFolderError.unusable(url, String(cString: strerror(code)))
    }
    return descriptor
  }

  /// Creates a folder with its missing parents, and syncs their directory entries to the disk.
  private static func create(_ url: URL) throws {
    var created: [URL] = []
    var at = url.standardizedFileURL
    while at.path != "/", !FileManager.default.fileExists(atPath: at.path) {
      created.append(at)
      at = at.deletingLastPathComponent()
    }
    guard !created.isEmpty else { return }
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    for folder in created { try LogSync.sync(folder.deletingLastPathComponent()) }
  }

  private static func markUnused(_ path: String) {
    used.withLock { _ = $0.remove(path) }
    used.broadcast()
  }

  /// Releases the lock. A second call has no effect.
  func release() {
    guard let descriptor = descriptor.withLock({ $0.take() }) else { return }
    close(descriptor)
    CacheFolder.markUnused(url.standardizedFileURL.path)
  }

  deinit { release() }

  // MARK: Files

  /// Renames the database file, and overwrites a file that was renamed earlier. Returns the new name.
  func quarantine() throws -> URL {
    let target = url.appendingPathComponent("damaged.sqlite")
    for suffix in ["", "-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: target.path + suffix)
      try? FileManager.default.moveItem(atPath: file.path + suffix, toPath: target.path + suffix)
    }
    guard !FileManager.default.fileExists(atPath: file.path) else {
      throw CacheFolderError.unusable(url, "the damaged file cannot be moved")
    }
    return target
  }

  /// Deletes the cache in a folder that no client uses. Returns an error if it fails.
  static func clear(_ url: URL) -> FirestoreError? {
    guard FileManager.default.fileExists(atPath: url.path) else { return nil }
    do {
      let folder = try CacheFolder(url)
      defer { folder.release() }
      for name in try FileManager.default.contentsOfDirectory(atPath: url.path) where name != "lock" {
        try FileManager.default.removeItem(at: url.appendingPathComponent(name))
      }
      return nil
    } catch CacheFolderError.inUse {
      return .failedPrecondition("Persistence cannot be cleared while a client uses it.")
    } catch {
      return .unavailable("Persistence cannot be cleared: \(error)")
    }
  }
}
