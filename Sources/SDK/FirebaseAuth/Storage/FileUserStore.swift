// The file user store: stores the signed-in user in a file below the user's data directory.
//
// Invariant: only its owner can read the file, and the file contains either the old record or the new one,
// even after a power cut. The new record is written to another file, synced, and renamed.

import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A file `<data>/firebase/<app ID>/<app name>.user.json`, where `<data>` is `XDG_DATA_HOME` or `~/.local/share`.
struct FileUserStore: UserStore {
  /// The maximum number of bytes of a file that is read.
  static let maximumBytes = 4 << 20

  private let folder: String
  private let name: String

  /// The path of the file.
  var path: String { "\(folder)/\(name)" }
  /// The path to which a damaged file is moved.
  var damagedPath: String { "\(path).damaged" }

  /// Makes the store of an app.
  ///
  /// - Parameter root: the data directory; nil for the data directory of the environment.
  init(appID: String, appName: String, root: String? = nil) {
    folder = "\(root ?? Self.dataDirectory)/firebase/\(Self.fileName(appID))"
    name = "\(Self.fileName(appName)).user.json"
  }

  func load() throws -> UserRecord? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw UserStoreError.system(operation: "opening \(path)", code: errno)
    }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    let data = try file.read(upToCount: Self.maximumBytes + 1) ?? Data()
    if data.count <= Self.maximumBytes, let record = try? JSONDecoder().decode(UserRecord.self, from: data),
      !record.uid.isEmpty
    {
      return record
    }
    guard rename(path, damagedPath) == 0 else {
      throw UserStoreError.system(operation: "renaming the damaged file \(path)", code: errno)
    }
    throw UserStoreError.damaged("moved to \(damagedPath)")
  }

  func save(_ record: UserRecord?) throws {
    guard let record else {
      guard unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR else {
        throw UserStoreError.system(operation: "deleting \(path)", code: errno)
      }
      // Without the sync, a power cut could sign the user in again. The first sign-in creates the folder.
      if access(folder, F_OK) == 0 { try Self.syncFolder(folder) }
      return
    }
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let temporary = "\(path).\(UUID().uuidString).new"
    do {
      try Self.write(try encoder.encode(record), to: temporary)
      guard rename(temporary, path) == 0 else {
        throw UserStoreError.system(operation: "renaming \(temporary)", code: errno)
      }
    } catch {
      unlink(temporary)
      throw error
    }
    try Self.syncFolder(folder)
  }

  /// Creates a file that only its owner can access, writes it and syncs it.
  private static func write(_ data: Data, to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw UserStoreError.system(operation: "creating \(path)", code: errno) }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try file.write(contentsOf: data)
    guard fsync(descriptor) == 0 else {
      throw UserStoreError.system(operation: "syncing \(path)", code: errno)
    }
    try file.close()
  }

  private static func syncFolder(_ path: String) throws {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw UserStoreError.system(operation: "opening \(path)", code: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else {
      throw UserStoreError.system(operation: "syncing \(path)", code: errno)
    }
  }

  /// The user's data directory, by the XDG Base Directory Specification. A relative `XDG_DATA_HOME` is
  /// ignored, as the specification requires.
  private static var dataDirectory: String {
    if let path = ProcessInfo.processInfo.environment["XDG_DATA_HOME"], path.hasPrefix("/") { return path }
    return NSHomeDirectory() + "/.local/share"
  }

  /// Encodes a name so that it is one path component.
  private static func fileName(_ name: String) -> String {
    let allowed = CharacterSet(
      charactersIn: "-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    return name.addingPercentEncoding(withAllowedCharacters: allowed) ?? "app"
  }
}
