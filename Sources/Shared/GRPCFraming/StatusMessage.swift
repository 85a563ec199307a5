// Encodes and decodes the status message on the wire (`grpc-message`). It is UTF-8 in which `%` and every byte outside
// of printable ASCII is written as %XX. Long messages are truncated. Decoding is lenient: an invalid escape decodes to
// itself, so that no message is lost.

extension GRPCStatus {
  /// The maximum bytes of an encoded message.
  static let maximumMessageBytes = 4 << 10

  /// A message, truncated with an ellipsis if its encoded form would be too long.
  static func truncated(_ message: String) -> String {
    if message.utf8.count <= maximumMessageBytes / 3 { return message }
    let scalars = message.unicodeScalars
    let room = maximumMessageBytes - encodedSize("\u{2026}")
    var size = 0
    var end = scalars.startIndex
    for index in scalars.indices {
      if size <= room { end = index }
      size += encodedSize(scalars[index])
      if size > maximumMessageBytes { return String(scalars[..<end]) + "\u{2026}" }
    }
    return message
  }

  private static func encodedSize(_ scalar: Unicode.Scalar) -> Int {
    UTF8.encode(scalar).map { $0.reduce(0) { $0 + (mustEscape($1) ? 3 : 1) } } ?? 3
  }

  /// The message as an ASCII header value.
  static func percentEncoded(_ message: String) -> String {
    var message = message
    let encoded = message.withUTF8 { utf8 -> [UInt8]? in
      guard let first = utf8.firstIndex(where: mustEscape) else { return nil }
      var bytes = [UInt8](utf8[..<first])
      bytes.reserveCapacity(utf8.count + 16)
      for byte in utf8[first...] {
        if mustEscape(byte) {
          bytes.append(UInt8(ascii: "%"))
          bytes.append(hexadecimal(byte >> 4))
          bytes.append(hexadecimal(byte & 0xf))
        } else {
          bytes.append(byte)
        }
      }
      return bytes
    }
    return encoded.map { String(decoding: $0, as: UTF8.self) } ?? message
  }

  /// Decodes a header value. Invalid UTF-8 becomes replacement characters.
  static func percentDecoded(_ value: String) -> String {
    guard value.utf8.contains(UInt8(ascii: "%")) else { return value }
    let source = Array(value.utf8)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(source.count)
    var index = 0
    while index < source.count {
      if source[index] == UInt8(ascii: "%"), index + 2 < source.count,
        let high = digit(source[index + 1]), let low = digit(source[index + 2])
      {
        bytes.append(high << 4 | low)
        index += 3
      } else {
        bytes.append(source[index])
        index += 1
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func mustEscape(_ byte: UInt8) -> Bool {
    byte < 0x20 || byte > 0x7e || byte == UInt8(ascii: "%")
  }

  private static func hexadecimal(_ nibble: UInt8) -> UInt8 {
    nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "A") + nibble - 10
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
