// The file in a form (multipart/form-data, RFC 7578): the emulator suite's pages import JSON this way.
//
// Invariant: what is held beyond a piece is the headers of the file, or what may be the beginning of its end.

import NIOHTTP1

/// Takes the one file out of a form that arrives piece by piece.
struct FormFile: Sendable {
  private enum Place { case headers, content, end }

  private static let mostHeaderBytes = 16 << 10
  private static let invalid = RESTError(.badRequest, "The form must hold one file, and that whole.")

  /// What ends the file. Without the line's end it begins the form.
  private let delimiter: [UInt8]
  private var pending: [UInt8] = []
  private var place = Place.headers

  /// Creates a reader at the start of a form; nil for any other type of content.
  init?(contentType: String) {
    let parts = contentType.split(separator: ";").map { $0.drop { $0 == " " } }
    guard let type = parts.first, type.lowercased() == "multipart/form-data",
      let parameter = parts.first(where: { $0.lowercased().hasPrefix("boundary=") })
    else { return nil }
    let boundary = parameter.dropFirst("boundary=".count).filter { $0 != "\"" }
    // RFC 2046 allows so many characters.
    guard (1...70).contains(boundary.utf8.count) else { return nil }
    delimiter = Array("\r\n--\(boundary)".utf8)
  }

  /// What a piece of the form brings of the file.
  mutating func take(_ piece: [UInt8]) throws(RESTError) -> [UInt8] {
    pending += piece
    if place == .headers {
      guard let end = index(of: Array("\r\n\r\n".utf8)) else {
        guard pending.count <= Self.mostHeaderBytes else { throw Self.invalid }
        return []
      }
      guard pending.starts(with: delimiter.dropFirst(2)) else { throw Self.invalid }
      pending.removeFirst(end + 4)
      place = .content
    }
    var content: [UInt8] = []
    if place == .content {
      let end = index(of: delimiter)
      content = Array(pending[..<(end ?? max(0, pending.count - delimiter.count + 1))])
      pending.removeFirst(content.count + (end == nil ? 0 : delimiter.count))
      if end != nil { place = .end }
    }
    // What follows the form does not matter.
    if place == .end { pending = Array(pending.prefix(2)) }
    return content
  }

  /// Ends the form.
  func finish() throws(RESTError) {
    guard place == .end, pending == Array("--".utf8) else { throw Self.invalid }
  }

  /// Where a text begins in what is pending; it begins with a line's end.
  private func index(of text: [UInt8]) -> Int? {
    var rest = pending[...]
    while let start = rest.firstIndex(of: 0x0D) {
      if pending[start...].starts(with: text) { return start }
      rest = pending[(start + 1)...]
    }
    return nil
  }
}
