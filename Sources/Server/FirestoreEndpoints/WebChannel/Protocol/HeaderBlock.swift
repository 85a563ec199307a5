// A header block: HTTP headers in the body or query string of a handshake, as lines of `Name:Value`. A browser would
// need a CORS preflight request to send them as headers.

/// A block of HTTP headers.
struct HeaderBlock: Equatable {
  private var values: [String: [String]] = [:]

  /// Parses the lines. Ignores lines without a colon.
  init(_ text: String) {
    for line in text.split(whereSeparator: { $0 == "\r\n" || $0 == "\n" || $0 == "\r" }) {
      guard let colon = line.firstIndex(of: ":") else { continue }
      let name = line[..<colon].lowercased()
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      values[name, default: []].append(String(value))
    }
  }

  /// The first value of a header. The name is in lower case.
  subscript(name: String) -> String? { values[name]?.first }

  /// All values of a header. The name is in lower case.
  func all(_ name: String) -> [String] { values[name] ?? [] }
}
