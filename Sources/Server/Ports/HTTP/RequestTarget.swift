// Parses the target of an HTTP request into its path and decoded query parameters.
//
// Decoding is strict, since paths and parameters name keys of the database. Invalid escapes and invalid UTF-8 are
// errors, and an encoded slash never separates segments.

/// The path and the query parameters of a request's URL.
package struct RequestTarget: Sendable, Equatable {
  /// The path, still percent-encoded, without the query.
  package var rawPath: String
  /// The decoded query parameters, in order.
  package var parameters: [(name: String, value: String)]

  package static func == (a: RequestTarget, b: RequestTarget) -> Bool {
    a.rawPath == b.rawPath && a.parameters.elementsEqual(b.parameters) { $0 == $1 }
  }

  /// Parses a target in origin form (`/path?query`) or absolute form.
  ///
  /// - Throws: ``HTTPRequestFailure/malformed(_:)`` for a query that cannot be decoded.
  package init(_ uri: String) throws(HTTPRequestFailure) {
    var text = Substring(uri)
    for scheme in ["http://", "https://"] where text.hasPrefix(scheme) {
      text = text.dropFirst(scheme.count)
      text = text.firstIndex(of: "/").map { text[$0...] } ?? "/"
    }
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    rawPath = String(parts[0])
    parameters = []
    guard parts.count > 1 else { return }
    for pair in parts[1].split(separator: "&") {
      let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decode(sides[0], plusIsSpace: true),
        let value = Self.decode(sides.count > 1 ? sides[1] : "", plusIsSpace: true)
      else { throw .malformed("Invalid query parameter: \(sides[0])") }
      parameters.append((name, value))
    }
  }

  /// The value of a parameter; the last one if it is repeated.
  package subscript(name: String) -> String? { parameters.last { $0.name == name }?.value }

  /// The decoded segments of the path without empty ones; `nil` if a segment cannot be decoded.
  package var segments: [String]? {
    var segments: [String] = []
    for part in rawPath.split(separator: "/") {
      guard let segment = Self.decode(part, plusIsSpace: false) else { return nil }
      segments.append(segment)
    }
    return segments
  }

  /// Percent-decodes a string; `nil` for an incomplete escape or invalid UTF-8.
  package static func decode(_ text: Substring, plusIsSpace: Bool) -> String? {
    let source = text.utf8
    guard source.contains(UInt8(ascii: "%")) || (plusIsSpace && source.contains(UInt8(ascii: "+"))) else {
      return String(text)
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(source.count)
    var iterator = source.makeIterator()
    while let byte = iterator.next() {
      if byte == UInt8(ascii: "%") {
        guard let high = iterator.next().flatMap(digit), let low = iterator.next().flatMap(digit) else {
          return nil
        }
        bytes.append(high << 4 | low)
      } else {
        bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
      }
    }
    guard let decoded = String(validatingBytes: bytes) else { return nil }
    return decoded
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x37
    case 0x61...0x66: byte - 0x57
    default: nil
    }
  }
}

extension String {
  /// Decodes valid UTF-8; `nil` otherwise.
  fileprivate init?(validatingBytes bytes: [UInt8]) {
    var decoder = UTF8()
    var iterator = bytes.makeIterator()
    var text = ""
    decoding: while true {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar): text.unicodeScalars.append(scalar)
      case .emptyInput: break decoding
      case .error: return nil
      }
    }
    self = text
  }
}
