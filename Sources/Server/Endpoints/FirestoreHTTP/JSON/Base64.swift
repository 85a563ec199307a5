// Base64 as proto3's JSON has it: written in the standard alphabet with padding, read in that or the URL-safe one, with
// padding or without.

enum Base64 {
  static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var index = 0
    while index < bytes.count {
      let count = min(3, bytes.count - index)
      var group: UInt32 = 0
      for offset in 0..<3 { group = group << 8 | (offset < count ? UInt32(bytes[index + offset]) : 0) }
      for digit in 0..<4 {
        let sextet = Int(group >> UInt32(18 - 6 * digit) & 63)
        text.append(digit <= count ? alphabet[sextet] : UInt8(ascii: "="))
      }
      index += 3
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Nil for what is no base64.
  static func decode(_ text: String) -> [UInt8]? {
    var source = Substring(text).utf8
    var padding = 0
    while source.last == UInt8(ascii: "="), padding < 2 {
      source.removeLast()
      padding += 1
    }
    guard source.count % 4 != 1, padding == 0 || (source.count + padding) % 4 == 0 else { return nil }
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

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  private static func value(of character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
    case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
