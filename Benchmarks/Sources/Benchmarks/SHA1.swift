// SHA-1 (RFC 3174), which the protocol's hashes use. It is implemented here, so that the benchmarks need no library.

import Foundation

enum SHA1 {
  /// The digest in Base64.
  static func base64(_ input: [UInt8]) -> String {
    var message = input + [0x80]
    while message.count % 64 != 56 { message.append(0) }
    for shift in stride(from: 56, through: 0, by: -8) {
      message.append(UInt8(truncatingIfNeeded: (input.count * 8) >> shift))
    }
    var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
    var words = [UInt32](repeating: 0, count: 80)
    for block in stride(from: 0, to: message.count, by: 64) {
      for i in 0..<16 {
        words[i] = (0..<4).reduce(0) { $0 << 8 | UInt32(message[block + 4 * i + $1]) }
      }
      for i in 16..<80 { words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1) }
      var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
      for i in 0..<80 {
        let (mixed, constant): (UInt32, UInt32) =
          switch i {
          case 0..<20: (b & c | ~b & d, 0x5A82_7999)
          case 20..<40: (b ^ c ^ d, 0x6ED9_EBA1)
          case 40..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
          default: (b ^ c ^ d, 0xCA62_C1D6)
          }
        (a, b, c, d, e) = (rotate(a, 5) &+ mixed &+ e &+ constant &+ words[i], a, rotate(b, 30), c, d)
      }
      for (i, value) in [a, b, c, d, e].enumerated() { state[i] &+= value }
    }
    let digest = state.flatMap { word in [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) }
    }
    return Data(digest).base64EncodedString()
  }

  private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 {
    word << count | word >> (32 - count)
  }
}
