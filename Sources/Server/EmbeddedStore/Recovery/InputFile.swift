// Reads a file by system calls, for the recovery of damaged logs.

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Glibc
#endif
internal import OrderedStore

/// A file that is read by system calls. Every call blocks.
final class InputFile {
  private let path: String
  private let descriptor: Int32

  /// Opens a file.
  /// - Throws: ``StoreError`` with the system's reason.
  init(_ path: String) throws {
    self.path = path
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw InputFile.failure("cannot open \(path)") }
  }

  deinit { close(descriptor) }

  /// Reads bytes at an offset into a buffer.
  /// - Returns: the number of bytes, less than the buffer's size at the end of the file.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
    var count = 0
    while count < buffer.count, let base = buffer.baseAddress {
      let read = pread(descriptor, base + count, buffer.count - count, off_t(offset + count))
      if read < 0, errno == EINTR { continue }
      guard read >= 0 else { throw InputFile.failure("cannot read \(path)") }
      guard read > 0 else { break }
      count += read
    }
    return count
  }

  /// The file names of a directory that end with a suffix, in ascending order.
  static func names(in directory: String, suffix: StaticString = "") throws -> [String] {
    guard let entries = opendir(directory) else { throw failure("cannot list \(directory)") }
    defer { closedir(entries) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(entries) else {
        guard errno == 0 else { throw failure("cannot list \(directory)") }
        return names.sorted()
      }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { buffer -> String? in
        let bytes = buffer.prefix { $0 != 0 }
        let end = UnsafeRawBufferPointer(start: suffix.utf8Start, count: suffix.utf8CodeUnitCount)
        return bytes.suffix(end.count).elementsEqual(end) ? String(decoding: bytes, as: UTF8.self) : nil
      }
      if let name, name != ".", name != ".." { names.append(name) }
    }
  }

  private static func failure(_ action: String, _ code: Int32 = errno) -> StoreError {
    StoreError.unavailable("\(action): \(String(cString: strerror(code)))")
  }
}
