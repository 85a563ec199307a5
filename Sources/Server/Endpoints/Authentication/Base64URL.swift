// Decoding of base64 in the URL-safe alphabet without padding, as tokens use it. Strict: a character outside the
// alphabet, or a length that no byte string encodes to, is refused.

enum Base64URL {
  static func decode(_ text: some StringProtocol) -> [UInt8]? {
    let source = text.utf8
    guard source.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(source.count * 3 / 4)
    var bits: UInt32 = 0
    var count = 0
    for character in source {
      guard let sextet = value(of: character) else { return nil }
      bits = bits << 6 | sextet
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return bytes
  }

  private static func value(of character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
