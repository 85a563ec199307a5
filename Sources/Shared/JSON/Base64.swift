// Base64 (RFC 4648) encodes bytes as text: in JSON strings, tokens, hashes, handshakes and binary gRPC metadata.
//
// Decoding is strict: it rejects a character outside the requested alphabets, and a length that encoding never gives.
// Unused bits of the last character may have any value.

/// Base64 encoding and decoding.
package enum Base64 {
  /// The characters that stand for the values 62 and 63.
  package enum Alphabet {
    /// `+` and `/` (RFC 4648, section 4).
    case standard
    /// `-` and `_` (RFC 4648, section 5), as tokens and addresses use them.
    case urlSafe
    /// Both alphabets, as proto3's JSON accepts them. Encodes like ``standard``.
    case either
  }

  /// Encodes bytes.
  ///
  /// - Parameter padded: whether `=` fills up the last group of four characters.
  @inlinable
  package static func encode(
    _ bytes: some Sequence<UInt8>, _ alphabet: Alphabet = .standard, padded: Bool = true
  ) -> String {
    let digits = alphabet == .urlSafe ? urlSafeDigits : standardDigits
    var text: [UInt8] = []
    text.reserveCapacity((bytes.underestimatedCount + 2) / 3 * 4)
    var group: UInt32 = 0
    var groupCount = 0
    for byte in bytes {
      group = group << 8 | UInt32(byte)
      groupCount += 1
      guard groupCount == 3 else { continue }
      text.append(digits[Int(group >> 18 & 63)])
      text.append(digits[Int(group >> 12 & 63)])
      text.append(digits[Int(group >> 6 & 63)])
      text.append(digits[Int(group & 63)])
      (group, groupCount) = (0, 0)
    }
    if groupCount > 0 {
      group <<= UInt32(8 * (3 - groupCount))
      for digit in 0...groupCount { text.append(digits[Int(group >> UInt32(18 - 6 * digit) & 63)]) }
      if padded { for _ in groupCount..<3 { text.append(UInt8(ascii: "=")) } }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Decodes text without padding.
  ///
  /// - Returns: nil if the text is not base64.
  @inlinable
  package static func decode(_ text: some Collection<UInt8>, _ alphabet: Alphabet) -> [UInt8]? {
    guard text.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * 3 / 4)
    var bits: UInt32 = 0
    var bitCount = 0
    for character in text {
      guard let sextet = sextet(character, alphabet) else { return nil }
      bits = bits << 6 | sextet
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
      }
    }
    return bytes
  }

  /// Decodes text whose last group of four characters may be padded or incomplete.
  ///
  /// - Parameter padding: the characters that may fill up the last group.
  /// - Returns: nil if the text is not base64.
  @inlinable
  package static func decode(
    _ text: some BidirectionalCollection<UInt8>, _ alphabet: Alphabet, paddedBy padding: [UInt8]
  ) -> [UInt8]? {
    var unpadded = text[...]
    while let last = unpadded.last, padding.contains(last), text.count - unpadded.count < 2 {
      unpadded.removeLast()
    }
    guard text.count == unpadded.count || text.count.isMultiple(of: 4) else { return nil }
    return decode(unpadded, alphabet)
  }

  @usableFromInline static let standardDigits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  @usableFromInline static let urlSafeDigits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  @inlinable
  static func sextet(_ character: UInt8, _ alphabet: Alphabet) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "-") where alphabet != .standard: 62
    case UInt8(ascii: "_") where alphabet != .standard: 63
    case UInt8(ascii: "+") where alphabet != .urlSafe: 62
    case UInt8(ascii: "/") where alphabet != .urlSafe: 63
    default: nil
    }
  }
}
