// The directories of an export: making, listing, syncing, moving and removing them, and one process's hold on one.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

extension ExportFiles {
  static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return !path.isEmpty && stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Whether something lies there, also a link that leads nowhere.
  static func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// Whether a directory lies there itself, and no link to one.
  static func isOwnDirectory(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// A path without links.
  static func realPath(_ path: String) throws(Failure) -> String {
    guard let real = realpath(path, nil) else { throw Failure("open", path) }
    defer { free(real) }
    return String(cString: real)
  }

  /// The names in a directory, in ascending order.
  static func names(in path: String) throws(Failure) -> [String] {
    guard let entries = opendir(path) else { throw Failure("list", path) }
    defer { closedir(entries) }
    var names: [String] = []
    while let entry = readdir(entries) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  /// Makes a directory and those above it that are missing; each is on disk in the one above it.
  static func makeDirectories(_ path: String) throws(Failure) {
    var above = path.hasPrefix("/") ? "/" : "."
    for part in path.split(separator: "/") {
      let made = above == "/" ? "/\(part)" : "\(above)/\(part)"
      if mkdir(made, 0o777) == 0 {
        try syncDirectory(above)
      } else {
        guard errno == EEXIST else { throw Failure("make the directory", made) }
      }
      above = made
    }
  }

  /// Asks whether ``makeDirectories(_:)`` could make what is missing, without making it.
  static func checkMakingDirectories(_ path: String) throws(Failure) {
    let parts = path.split(separator: "/")
    let root = path.hasPrefix("/") ? "/" : "."
    for count in (0...parts.count).reversed() {
      let above = count == 0 ? root : (root == "/" ? "/" : "") + parts[..<count].joined(separator: "/")
      var status = stat()
      guard stat(above, &status) == 0 else {
        guard errno == ENOENT else { throw Failure("make the directory", path) }
        continue
      }
      guard status.st_mode & S_IFMT == S_IFDIR else { throw Failure("make the directory", path, ENOTDIR) }
      return try checkWriting(above)
    }
  }

  /// Asks whether entries of a directory can be made and removed.
  static func checkWriting(_ path: String) throws(Failure) {
    guard access(path, W_OK | X_OK) == 0 else { throw Failure("write to", path) }
  }

  /// Puts a directory's entries on disk.
  static func syncDirectory(_ path: String) throws(Failure) {
    let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { throw Failure("open", path) }
    defer { close(directory) }
    // Some file systems have nothing to sync of a directory, and say so.
    guard systemSync(directory) == 0 || errno == EINVAL || errno == ENOTSUP else {
      throw Failure("sync", path)
    }
  }

  /// Puts the entries of a directory and of all below it on disk.
  static func syncDirectories(_ path: String) throws(Failure) {
    for name in try names(in: path) where isOwnDirectory("\(path)/\(name)") {
      try syncDirectories("\(path)/\(name)")
    }
    try syncDirectory(path)
  }

  /// Moves what lies at a path to another of the same file system, where nothing may lie.
  static func move(_ path: String, to other: String) throws(Failure) {
    guard !exists(other) else { throw Failure("move \(path) to", other, EEXIST) }
    guard rename(path, other) == 0 else { throw Failure("move \(path) to", other) }
  }

  /// Removes those directories that are there and empty.
  static func removeEmpty(_ paths: [String]) { for path in paths { rmdir(path) } }

  /// Removes a file, or a directory with all that is below it; links are not followed.
  static func remove(_ path: String) throws(Failure) {
    guard isOwnDirectory(path) else {
      guard unlink(path) == 0 || errno == ENOENT else { throw Failure("remove", path) }
      return
    }
    for name in try names(in: path) { try remove("\(path)/\(name)") }
    guard rmdir(path) == 0 || errno == ENOENT else { throw Failure("remove", path) }
  }
}

/// One process's hold on a directory. The system lets it go when the process ends, in whatever way.
final class DirectoryLock: Sendable {
  private let descriptor: Int32

  private init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// Lets others have the directory, from before this object has gone.
  func release() { flock(descriptor, LOCK_UN) }

  /// Takes hold of a directory; nil where somebody else has it.
  /// - Throws: ``ExportFiles/Failure`` for a directory that cannot be opened.
  static func take(_ path: String) throws(ExportFiles.Failure) -> DirectoryLock? {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw ExportFiles.Failure("open", path) }
    // A file system without locks leaves everybody to their luck.
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
      close(descriptor)
      return nil
    }
    return DirectoryLock(descriptor)
  }
}
