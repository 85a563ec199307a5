// Creates, lists, syncs, moves, removes and locks the directories of exports.

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

  /// Whether a file, a directory or a symbolic link exists at a path. A broken link counts as well.
  static func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// Whether a path is a directory, and not a link to one.
  static func isRealDirectory(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Returns a path with symbolic links resolved.
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

  /// Creates a directory and its missing parents. Syncs the parent of each created directory, so that the new entry is
  /// on disk.
  static func makeDirectories(_ path: String) throws(Failure) {
    var parent = path.hasPrefix("/") ? "/" : "."
    for part in path.split(separator: "/") {
      let directory = parent == "/" ? "/\(part)" : "\(parent)/\(part)"
      if mkdir(directory, 0o777) == 0 {
        try syncDirectory(parent)
      } else {
        guard errno == EEXIST else { throw Failure("make the directory", directory) }
      }
      parent = directory
    }
  }

  /// Checks whether ``makeDirectories(_:)`` would succeed, without creating anything.
  static func checkMakingDirectories(_ path: String) throws(Failure) {
    let parts = path.split(separator: "/")
    let root = path.hasPrefix("/") ? "/" : "."
    for count in (0...parts.count).reversed() {
      let ancestor = count == 0 ? root : (root == "/" ? "/" : "") + parts[..<count].joined(separator: "/")
      var status = stat()
      guard stat(ancestor, &status) == 0 else {
        guard errno == ENOENT else { throw Failure("make the directory", path) }
        continue
      }
      guard status.st_mode & S_IFMT == S_IFDIR else { throw Failure("make the directory", path, ENOTDIR) }
      return try checkWriting(ancestor)
    }
  }

  /// Checks whether entries of a directory can be created and removed.
  static func checkWriting(_ path: String) throws(Failure) {
    guard access(path, W_OK | X_OK) == 0 else { throw Failure("write to", path) }
  }

  /// Syncs a directory's entries to the disk.
  static func syncDirectory(_ path: String) throws(Failure) {
    let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else { throw Failure("open", path) }
    defer { close(directory) }
    // Some file systems do not support syncing directories.
    guard systemSync(directory) == 0 || errno == EINVAL || errno == ENOTSUP else {
      throw Failure("sync", path)
    }
  }

  /// Syncs the entries of a directory and of all directories below it.
  static func syncDirectories(_ path: String) throws(Failure) {
    for name in try names(in: path) where isRealDirectory("\(path)/\(name)") {
      try syncDirectories("\(path)/\(name)")
    }
    try syncDirectory(path)
  }

  /// Moves a file or directory within a file system. The target must not exist.
  static func move(_ path: String, to target: String) throws(Failure) {
    guard !exists(target) else { throw Failure("move \(path) to", target, EEXIST) }
    guard rename(path, target) == 0 else { throw Failure("move \(path) to", target) }
  }

  /// Removes those of the directories that are empty.
  static func removeEmpty(_ paths: [String]) { for path in paths { rmdir(path) } }

  /// Removes a file or a directory tree. Links are not followed.
  static func remove(_ path: String) throws(Failure) {
    guard isRealDirectory(path) else {
      guard unlink(path) == 0 || errno == ENOENT else { throw Failure("remove", path) }
      return
    }
    for name in try names(in: path) { try remove("\(path)/\(name)") }
    guard rmdir(path) == 0 || errno == ENOENT else { throw Failure("remove", path) }
  }
}

/// An exclusive lock of one process on a directory. The system releases it when the process ends.
final class DirectoryLock: Sendable {
  private let descriptor: Int32

  private init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// Releases the lock, possibly before the object is deallocated.
  func release() { flock(descriptor, LOCK_UN) }

  /// Locks a directory. Returns nil if another process holds the lock.
  /// - Throws: ``ExportFiles/Failure`` for a directory that cannot be opened.
  static func take(_ path: String) throws(ExportFiles.Failure) -> DirectoryLock? {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw ExportFiles.Failure("open", path) }
    // On a file system that does not support locks, exports run without this protection.
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
      close(descriptor)
      return nil
    }
    return DirectoryLock(descriptor)
  }
}
