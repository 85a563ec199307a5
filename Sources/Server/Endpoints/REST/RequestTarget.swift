// A request's target taken apart: decoded path segments and parameters. Decoding is strict, since what
// comes out of it becomes keys: `%zz` and broken UTF-8 are refused, and an encoded slash never splits a segment.

import NIOHTTP1

/// The path and the parameters of a URL.
struct RequestTarget: Sendable, Equatable {
  /// The path as it stands, undecoded, without parameters.
  var rawPath: String
  /// The parameters in order, decoded.
  var parameters: [(name: String, value: String)]

  static func == (a: RequestTarget, b: RequestTarget) -> Bool {
    a.rawPath == b.rawPath && a.parameters.elementsEqual(b.parameters) { $0 == $1 }
  }

  /// Takes a target in origin form (`/path?query`) or absolute form apart.
  ///
  /// - Throws: ``RESTError`` for a target that is not well-formed.
  init(_ uri: String) throws(RESTError) {
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
      else { throw RESTError(.badRequest, "Invalid query parameter: \(sides[0])") }
      parameters.append((name, value))
    }
  }

  /// The value of a parameter; of several the last.
  subscript(name: String) -> String? { parameters.last { $0.name == name }?.value }

  /// The decoded segments of the path, empty ones dropped; `nil` if they cannot be decoded.
  var segments: [String]? {
    var segments: [String] = []
    for part in rawPath.split(separator: "/") {
      guard let segment = Self.decode(part, plusIsSpace: false) else { return nil }
      segments.append(segment)
    }
    return segments
  }

  /// Undoes percent-encoding; `nil` for an incomplete escape or bytes that are not UTF-8.
  static func decode(_ text: Substring, plusIsSpace: Bool) -> String? {
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
  /// The text of bytes that are well-formed UTF-8.
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
