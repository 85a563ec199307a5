// Base64 (RFC 4648), as JSON, tokens, long polling and the WebSocket handshake use it.
//
// Invariant: decoding is strict. A character outside of the alphabet, or an impossible length, is an error.

enum Base64 {
  /// The characters for 62 and 63.
  enum Alphabet {
    /// `-` and `_` only, as in tokens (RFC 4648, section 5).
    case urlSafe
    /// Also `+` and `/`, as proto3's JSON allows.
    case either
  }

  /// Encodes bytes in the standard alphabet, with padding.
  static func encode(_ bytes: some Collection<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var rest = bytes[...]
    while !rest.isEmpty {
      let group = rest.prefix(3)
      let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
      for digit in 0..<4 {
        text.append(
          digit <= group.count ? digits[Int(bits >> UInt32(18 - 6 * digit) & 63)] : UInt8(ascii: "="))
      }
      rest = rest.dropFirst(3)
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Decodes base64 without padding; nil for invalid input.
  static func decode(_ text: some Collection<UInt8>, _ alphabet: Alphabet) -> [UInt8]? {
    guard text.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * 3 / 4)
    var bits: UInt32 = 0
    var count = 0
    for character in text {
      guard let sextet = value(of: character, alphabet) else { return nil }
      bits = bits << 6 | sextet
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return bytes
  }

  /// Decodes base64 with optional padding, by any of the given characters.
  static func decode(
    _ text: some BidirectionalCollection<UInt8>, _ alphabet: Alphabet, paddedBy padding: [UInt8]
  )
    -> [UInt8]?
  {
    var digits = text[...]
    while let last = digits.last, padding.contains(last), text.count - digits.count < 2 {
      digits.removeLast()
    }
    guard text.count == digits.count || text.count.isMultiple(of: 4) else { return nil }
    return decode(digits, alphabet)
  }

  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  private static func value(of character: UInt8, _ alphabet: Alphabet) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    case UInt8(ascii: "+") where alphabet == .either: 62
    case UInt8(ascii: "/") where alphabet == .either: 63
    default: nil
    }
  }
}
