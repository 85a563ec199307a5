// The files of an export, by plain system calls. All of it blocks: it runs on threads for that.

import FirestoreModel
import NIOPosix

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

enum ExportFiles {
  /// Why a file cannot be used.
  struct Failure: Error {
    var path: String
    var number: Int32

    /// The path, and the system's words.
    var message: String { "\(path) (\(String(cString: strerror(number))))" }
  }

  /// Runs what blocks on a thread that may, and tells its failures as errors of the database.
  static func blocking<T: Sendable>(
    _ code: StatusCode, _ body: @escaping @Sendable () throws -> T
  ) async throws(FirestoreError) -> T {
    do {
      return try await NIOThreadPool.singleton.runIfActive(body)
    } catch let failure as Failure {
      throw FirestoreError(code, failure.message)
    } catch let damage as LevelLogReader.Damage {
      throw .invalidArgument(damage.message)
    } catch let error as FirestoreError {
      throw error
    } catch is NIOThreadPoolError.ThreadPoolInactive {
      throw .unavailable("The server is shutting down.")
    } catch {
      throw FirestoreError(code, "\(error)")
    }
  }

  static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return !path.isEmpty && stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  /// Makes a directory and those above it that are missing.
  static func makeDirectories(_ path: String) throws(Failure) {
    var made = path.hasPrefix("/") ? "" : "."
    for part in path.split(separator: "/") {
      made += "/" + part
      guard mkdir(made, 0o777) == 0 || errno == EEXIST else { throw Failure(path: made, number: errno) }
    }
  }

  /// Writes a whole file, in place of any that is there.
  static func write(_ bytes: [UInt8], to path: String) throws(Failure) {
    let file = try create(path)
    do {
      try append(bytes, to: file, path)
    } catch {
      close(file)
      throw error
    }
    guard close(file) == 0 else { throw Failure(path: path, number: errno) }
  }

  /// Begins an empty file; its descriptor is the caller's to close.
  static func create(_ path: String) throws(Failure) -> Int32 {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
    guard file >= 0 else { throw Failure(path: path, number: errno) }
    return file
  }

  static func append(_ bytes: [UInt8], to file: Int32, _ path: String) throws(Failure) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = rest.withUnsafeBytes { systemWrite(file, $0) }
      guard written > 0 else {
        if written < 0, errno == EINTR { continue }
        throw Failure(path: path, number: errno)
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

  /// Closes a descriptor.
  static func end(_ file: Int32) { close(file) }

  /// Removes a file and directories that are empty, as far as they are there.
  static func remove(_ paths: [String]) { for path in paths { _ = systemRemove(path) } }

  private static func systemRemove(_ path: String) -> Int32 { isDirectory(path) ? rmdir(path) : unlink(path) }

  /// The time in microseconds since 1970.
  static var microseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }

  /// Bytes of a file from an offset; none at its end.
  static func read(_ path: String, from offset: Int, atMost limit: Int) throws -> [UInt8] {
    try withFile(path, at: offset) { read in try read(limit) }
  }

  /// A whole small file.
  static func read(_ path: String, atMost limit: Int) throws -> [UInt8] {
    try withFile(path, at: 0) { read in
      let bytes = try read(limit + 1)
      guard bytes.count <= limit else { throw Failure(path: path, number: EFBIG) }
      return bytes
    }
  }

  /// The next records of a log, about so many bytes of them; none at its end.
  static func records(
    of path: String, _ reader: inout LevelLogReader, bytes: Int
  ) throws -> [[UInt8]] {
    var current = reader
    let records = try withFile(path, at: reader.position) { read in
      var records: [[UInt8]] = []
      var size = 0
      while size < bytes, let record = try current.next(read) {
        records.append(record)
        size += record.count
      }
      return records
    }
    reader = current
    return records
  }

  /// Opens a file for `body`, which is given a function that reads on.
  private static func withFile<T>(
    _ path: String, at position: Int, _ body: ((Int) throws -> [UInt8]) throws -> T
  ) throws -> T {
    guard !isDirectory(path), let file = fopen(path, "rb") else {
      throw Failure(path: path, number: isDirectory(path) ? EISDIR : errno)
    }
    defer { fclose(file) }
    guard fseek(file, position, SEEK_SET) == 0 else { throw Failure(path: path, number: errno) }
    return try body { count in
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        initialized = fread(buffer.baseAddress, 1, count, file)
      }
      guard bytes.count == count || ferror(file) == 0 else { throw Failure(path: path, number: EIO) }
      return bytes
    }
  }
}
