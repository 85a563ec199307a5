// A form file reader extracts the file from a form (multipart/form-data, RFC 7578) that arrives in chunks.
// The emulator's web interface uploads JSON in such a form.
//
// Invariant: before the file's contents the buffer holds at most the file's headers. After that it holds only
// bytes that may begin the delimiter at the end of the file.

import NIOHTTP1

/// Extracts the only file of a form that arrives in chunks.
struct FormFileReader: Sendable {
  private enum State { case headers, content, end }

  private static let maximumHeaderBytes = 16 << 10
  private static let invalid = RESTError(.badRequest, "The form must contain one complete file.")

  /// The delimiter after the file: a line break, two hyphens and the boundary. The form begins with the same
  /// bytes without the line break.
  private let delimiter: [UInt8]
  private var buffer: [UInt8] = []
  private var state = State.headers

  /// Creates a reader at the start of a form. Returns nil for another content type.
  init?(contentType: String) {
    let parts = contentType.split(separator: ";").map { $0.drop { $0 == " " } }
    guard let type = parts.first, type.lowercased() == "multipart/form-data",
      let parameter = parts.first(where: { $0.lowercased().hasPrefix("boundary=") })
    else { return nil }
    let boundary = parameter.dropFirst("boundary=".count).filter { $0 != "\"" }
    // RFC 2046 allows 1 to 70 characters.
    guard (1...70).contains(boundary.utf8.count) else { return nil }
    delimiter = Array("\r\n--\(boundary)".utf8)
  }

  /// Returns the part of the file that a chunk of the form contains.
  mutating func read(_ chunk: [UInt8]) throws(RESTError) -> [UInt8] {
    buffer += chunk
    if state == .headers {
      guard let end = index(of: Array("\r\n\r\n".utf8)) else {
        guard buffer.count <= Self.maximumHeaderBytes else { throw Self.invalid }
        return []
      }
      guard buffer.starts(with: delimiter.dropFirst(2)) else { throw Self.invalid }
      buffer.removeFirst(end + 4)
      state = .content
    }
    var content: [UInt8] = []
    if state == .content {
      let end = index(of: delimiter)
      content = Array(buffer[..<(end ?? max(0, buffer.count - delimiter.count + 1))])
      buffer.removeFirst(content.count + (end == nil ? 0 : delimiter.count))
      if end != nil { state = .end }
    }
    // Bytes after the form are ignored.
    if state == .end { buffer = Array(buffer.prefix(2)) }
    return content
  }

  /// Ends the form.
  func finish() throws(RESTError) {
    guard state == .end, buffer == Array("--".utf8) else { throw Self.invalid }
  }

  /// Returns the index at which `bytes` occur in the buffer. `bytes` must begin with a line break.
  private func index(of bytes: [UInt8]) -> Int? {
    var rest = buffer[...]
    while let start = rest.firstIndex(of: 0x0D) {
      if buffer[start...].starts(with: bytes) { return start }
      rest = buffer[(start + 1)...]
    }
    return nil
  }
}
