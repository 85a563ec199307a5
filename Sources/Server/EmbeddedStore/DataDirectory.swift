// The directory of one store, held by one process at a time.
//
// Invariant: whoever has a DataDirectory holds a lock on its file `holder`, which the kernel lets go when the process
// ends in whatever way. The file tells the next comer who holds it.

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
  /// Its path.
  let path: String
  private let descriptor: Int32

  /// Creates the directory if need be and locks it.
  /// - Throws: ``StoreError`` of code `locked` naming the holder, or `unavailable` with the system's reason.
  init(_ path: String) throws {
    self.path = path
    try DataDirectory.create(path)
    // Not `lock`: RocksDB locks a file `LOCK`, which is the same file where case does not count.
    let file = path + "/holder"
    let descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw DataDirectory.failure("cannot open \(file)") }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      let holder = DataDirectory.holder(descriptor)
      close(descriptor)
      guard code == EWOULDBLOCK else { throw DataDirectory.failure("cannot lock \(file)", code) }
      throw StoreError(
        .locked, "the data directory \(path) is in use by \(holder); one process at a time may open it")
    }
    let text = "\(getpid())\n"
    _ = ftruncate(descriptor, 0)
    _ = text.utf8.withContiguousStorageIfAvailable { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    self.descriptor = descriptor
    try probe()
  }

  deinit { close(descriptor) }

  /// Lets others have the directory, from before this object has gone.
  func unlock() { flock(descriptor, LOCK_UN) }

  /// Writes a little and takes it away again: a directory that cannot be written to is refused here, with the reason.
  private func probe() throws {
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

  private static func holder(_ descriptor: Int32) -> String {
    var buffer = [UInt8](repeating: 0, count: 20)
    let count = pread(descriptor, &buffer, buffer.count, 0)
    let digits = buffer.prefix(max(count, 0)).prefix { $0 >= 48 && $0 <= 57 }
    return digits.isEmpty ? "another process" : "process \(String(decoding: digits, as: UTF8.self))"
  }

  /// Makes a directory and those above it; each new one is synced into its parent, else a power cut could take it away.
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

  private static func failure(_ what: String, _ code: Int32 = errno) -> StoreError {
    StoreError.unavailable("\(what): \(String(cString: strerror(code)))")
  }
}
