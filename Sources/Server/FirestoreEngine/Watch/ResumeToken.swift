// Encodes resume tokens: the protobuf `{1: {1: version in µs}}`, as Firebase writes them.
//
// Example: version 1766494185829645 is 0a 09 08 8d ea c6 d3 df d3 91 03.

import FirestoreModel
import OrderedStore

/// Encodes and decodes resume tokens.
enum ResumeToken {
  /// The token of a version.
  static func encode(_ version: Version) -> [UInt8] {
    var inner: [UInt8] = [0x08]
    var rest = version.microseconds
    while rest >= 0x80 {
      inner.append(UInt8(rest & 0x7F) | 0x80)
      rest >>= 7
    }
    inner.append(UInt8(rest))
    return [0x0A, UInt8(inner.count)] + inner
  }

  /// The version of a token; nil if the bytes are not a token.
  static func decode(_ token: [UInt8]) -> Version? {
    guard token.count >= 4, token[0] == 0x0A, Int(token[1]) == token.count - 2, token[2] == 0x08 else {
      return nil
    }
    var value: UInt64 = 0
    var shift: UInt64 = 0
    for (index, byte) in token[3...].enumerated() {
      guard shift < 64, shift < 63 || byte <= 1 else { return nil }
      value |= UInt64(byte & 0x7F) << shift
      shift += 7
      if byte & 0x80 == 0 { return index == token.count - 4 ? Version(microseconds: value) : nil }
    }
    return nil
  }
}
