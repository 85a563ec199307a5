// Headers that come in a handshake's body or query string, since a browser may not send them as such without asking
// for permission first: lines of `Name:Value`.

/// A block of headers.
struct HeaderBlock: Equatable {
  private var values: [String: String] = [:]

  /// Reads the lines; those without a colon are no headers.
  init(_ text: String) {
    for line in text.split(whereSeparator: { $0 == "\r\n" || $0 == "\n" || $0 == "\r" }) {
      guard let colon = line.firstIndex(of: ":") else { continue }
      let name = line[..<colon].lowercased()
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      if values[name] == nil { values[name] = String(value) }
    }
  }

  /// The first value of a header, by its name in lower case.
  subscript(name: String) -> String? { values[name] }
}
