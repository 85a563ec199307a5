// Reads and writes the files of exports by system calls. All functions block, so they run on separate threads.
//
// Invariant: a written file is on disk before its descriptor is closed. Its name is on disk after its directory was
// synced.

import BlockLog
import FirestoreModel
import NIOPosix

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// Functions that read and write the files of exports.
enum ExportFiles {
  /// The error of a system call.
  struct Failure: Error {
    /// The failed action, such as `write`.
    var action: String
    var path: String
    var number: Int32

    /// - Parameter number: the system's error number; by default the number of the last failed call.
    init(_ action: String, _ path: String, _ number: Int32 = errno) {
      self.action = action
      self.path = path
      self.number = number
    }

    /// The action, the path and the system's error text.
    var message: String { "cannot \(action) \(path): \(String(cString: strerror(number)))" }
  }

  /// Runs a blocking function on a separate thread, and converts its errors to errors of the database.
  static func blocking<T: Sendable>(
    _ code: StatusCode, _ body: @escaping @Sendable () throws -> T
  ) async throws(FirestoreError) -> T {
    do {
      return try await NIOThreadPool.singleton.runIfActive(body)
    } catch let failure as Failure {
      throw FirestoreError(code, failure.message)
    } catch let damage as BlockLogReader.Damage {
      throw .invalidArgument(damage.message)
    } catch let error as FirestoreError {
      throw error
    } catch is NIOThreadPoolError.ThreadPoolInactive {
      throw .unavailable("The server is shutting down.")
    } catch {
      throw FirestoreError(code, "\(error)")
    }
  }

  /// Writes a complete file, and replaces an existing one.
  static func write(_ bytes: [UInt8], to path: String) throws(Failure) {
    let file = try create(path)
    do {
      try append(bytes, to: file, path)
    } catch {
      close(file)
      throw error
    }
    try finish(file, path)
  }

  /// Creates an empty file. The caller must pass its descriptor to `finish` or `closeUnfinished`.
  static func create(_ path: String) throws(Failure) -> Int32 {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
    guard file >= 0 else { throw Failure("create", path) }
    return file
  }

  static func append(_ bytes: [UInt8], to file: Int32, _ path: String) throws(Failure) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { systemWrite(file, $0) }
      guard written > 0 else {
        if written < 0, errno == EINTR { continue }
        throw Failure("write", path, written < 0 ? errno : ENOSPC)
      }
      rest = rest.dropFirst(written)
    }
  }

  private static func systemWrite(_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    #if canImport(Glibc)
      Glibc.write(file, bytes.baseAddress, bytes.count)
    #elseif canImport(Musl)
      Musl.write(file, bytes.baseAddress, bytes.count)
    #else
      Darwin.write(file, bytes.baseAddress, bytes.count)
    #endif
  }

  /// Syncs and closes a written file.
  static func finish(_ file: Int32, _ path: String) throws(Failure) {
    let failure = systemSync(file) == 0 ? nil : Failure("sync", path)
    guard close(file) == 0 || failure != nil else { throw Failure("close", path) }
    if let failure { throw failure }
  }

  /// Syncs a file to the disk.
  static func systemSync(_ file: Int32) -> Int32 {
    #if canImport(Darwin)
      // `fsync` may leave data in the drive's cache, which a power cut erases. Not every file system supports this
      // call.
      if fcntl(file, F_FULLFSYNC) == 0 { return 0 }
    #endif
    return fsync(file)
  }

  /// Closes the descriptor of a file that is no longer needed.
  static func closeUnfinished(_ file: Int32) { close(file) }

  /// The time in microseconds since 1970.
  static var microseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }

  /// Reads bytes of a file from an offset; none at its end.
  static func read(_ path: String, from offset: Int, atMost limit: Int) throws -> [UInt8] {
    try withFile(path, at: offset) { read in try read(limit) }
  }

  /// Reads a small file completely.
  static func read(_ path: String, atMost limit: Int) throws -> [UInt8] {
    try withFile(path, at: 0) { read in
      let bytes = try read(limit + 1)
      guard bytes.count <= limit else { throw Failure("read", path, EFBIG) }
      return bytes
    }
  }

  /// Reads the next records of a log, about `bytes` of them; none at its end.
  /// - Throws: ``BlockLogReader/Damage`` with the position, ``Failure``.
  static func records(
    of path: String, _ reader: inout BlockLogReader, bytes: Int
  ) throws -> [ExportRecord] {
    var current = reader
    defer { reader = current }
    do {
      return try withFile(path, at: reader.position) { read in
        var records: [ExportRecord] = []
        var size = 0
        while size < bytes {
          let offset = current.position
          guard let record = try current.next(read) else { break }
          records.append(ExportRecord(offset: offset, bytes: record))
          size += record.count
        }
        return records
      }
    } catch let damage as BlockLogReader.Damage {
      throw BlockLogReader.Damage(message: "\(damage.message) (\(path), at byte \(current.position))")
    }
  }

  /// Opens a file for `body`, which receives a function that reads the next bytes. Only regular files are opened: a
  /// pipe could block, and a device has no end.
  private static func withFile<T>(
    _ path: String, at position: Int, _ body: ((Int) throws -> [UInt8]) throws -> T
  ) throws -> T {
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure("open", path) }
    var status = stat()
    let kind = fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : 0
    guard kind == S_IFREG, let file = fdopen(descriptor, "rb") else {
      defer { close(descriptor) }
      throw Failure("read", path, kind == S_IFDIR ? EISDIR : EINVAL)
    }
    defer { fclose(file) }
    guard fseek(file, position, SEEK_SET) == 0 else { throw Failure("read", path) }
    return try body { count in
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        initialized = fread(buffer.baseAddress, 1, count, file)
      }
      guard bytes.count == count || ferror(file) == 0 else { throw Failure("read", path, EIO) }
      return bytes
    }
  }
}
