// A data directory contains the files of one store. Only one process at a time may lock it.
//
// Invariant: a DataDirectory holds a lock on the file `holder` in the directory while the object exists. The
// file contains the process ID of the lock's owner. The kernel releases the lock when the process ends, also
// after a crash.

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif
internal import OrderedStore

/// A locked data directory.
final class DataDirectory: Sendable {
  /// The path of the directory.
  let path: String
  private let descriptor: Int32

  /// Creates the directory if it does not exist, and locks it.
  /// - Throws: ``StoreError`` of code `locked` with the owner's process ID, or `unavailable` with the system's reason.
  init(_ path: String) throws {
    self.path = path
    try DataDirectory.create(path)
    // The file is not called `lock`, because RocksDB locks a file `LOCK`. On a case-insensitive file system
    // both would be the same file.
    let file = path + "/holder"
    let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw DataDirectory.failure("cannot open \(file)") }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      let owner = DataDirectory.owner(descriptor)
      close(descriptor)
      guard code == EWOULDBLOCK else { throw DataDirectory.failure("cannot lock \(file)", code) }
      throw StoreError(
        .locked, "the data directory \(path) is in use by \(owner); one process at a time may open it")
    }
    let processID = "\(getpid())\n"
    _ = ftruncate(descriptor, 0)
    _ = processID.utf8.withContiguousStorageIfAvailable { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    self.descriptor = descriptor
    try checkWritable()
  }

  deinit { close(descriptor) }

  /// Releases the lock while this object still exists, so that another process can open the directory.
  func unlock() { flock(descriptor, LOCK_UN) }

  /// Writes and removes a small file.
  /// - Throws: ``StoreError`` with the system's reason if the directory cannot be written to.
  private func checkWritable() throws {
    let file = path + "/probe"
    let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw DataDirectory.failure("cannot create \(file)") }
    let bytes = [UInt8](repeating: 0, count: 128 << 10)
    let written = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    let code = written == bytes.count && fsync(descriptor) == 0 ? 0 : (written >= 0 ? ENOSPC : errno)
    close(descriptor)
    unlink(file)
    if code != 0 { throw DataDirectory.failure("cannot write to \(path)", code) }
  }

  private static func owner(_ descriptor: Int32) -> String {
    var buffer = [UInt8](repeating: 0, count: 20)
    let count = pread(descriptor, &buffer, buffer.count, 0)
    let digits = buffer.prefix(max(count, 0)).prefix { $0 >= 48 && $0 <= 57 }
    return digits.isEmpty ? "another process" : "process \(String(decoding: digits, as: UTF8.self))"
  }

  /// Makes a directory and its missing parents. Syncs the parent of each new directory, so that it survives a power cut.
  private static func create(_ path: String) throws {
    var status = stat()
    if stat(path, &status) == 0 {
      guard status.st_mode & S_IFMT == S_IFDIR else {
        throw StoreError.unavailable("\(path) is not a directory")
      }
      return
    }
    let parent = parentPath(path)
    if parent != path { try create(parent) }
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw failure("cannot create \(path)") }
    let descriptor = open(parent, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    fsync(descriptor)
    close(descriptor)
  }

  private static func parentPath(_ path: String) -> String {
    var bytes = Array(path.utf8)
    while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
    while let last = bytes.last, last != UInt8(ascii: "/") { bytes.removeLast() }
    while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
    return bytes.isEmpty ? "." : String(decoding: bytes, as: UTF8.self)
  }

  private static func failure(_ action: String, _ code: Int32 = errno) -> StoreError {
    StoreError.unavailable("\(action): \(String(cString: strerror(code)))")
  }
}
