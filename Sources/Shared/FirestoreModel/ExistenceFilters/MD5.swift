// Computes MD5 (RFC 1321). Existence filters use it to distribute document names over their bits. It has no security
// purpose.
//
// This module implements MD5 because an app would otherwise build a cryptographic library for this function alone
// (docs/decisions/0028-hashes-of-the-protocols.md).

/// Computes MD5.
struct MD5 {
  private var state: (a: UInt32, b: UInt32, c: UInt32, d: UInt32) = (
    0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476
  )

  /// The digest of a message as two little-endian integers of 8 bytes.
  static func digest(of message: UnsafeRawBufferPointer) -> (first: UInt64, second: UInt64) {
    var hash = MD5()
    var position = 0
    while position + 64 <= message.count {
      hash.add(UnsafeRawBufferPointer(rebasing: message[position..<(position + 64)]))
      position += 64
    }
    hash.addEnd(UnsafeRawBufferPointer(rebasing: message[position...]), length: message.count)
    let (a, b, c, d) = hash.state
    return (UInt64(b) &<< 32 | UInt64(a), UInt64(d) &<< 32 | UInt64(c))
  }

  /// Adds the last bytes with the padding and the length of the message.
  private mutating func addEnd(_ rest: UnsafeRawBufferPointer, length: Int) {
    let size = rest.count < 56 ? 64 : 128
    withUnsafeTemporaryAllocation(byteCount: size, alignment: 4) { block in
      block.initializeMemory(as: UInt8.self, repeating: 0)
      block.copyMemory(from: rest)
      block[rest.count] = 0x80
      block.storeBytes(of: (UInt64(length) &<< 3).littleEndian, toByteOffset: size - 8, as: UInt64.self)
      add(UnsafeRawBufferPointer(rebasing: block[..<64]))
      if size > 64 { add(UnsafeRawBufferPointer(rebasing: block[64...])) }
    }
  }

  /// Adds a block of 64 bytes.
  private mutating func add(_ block: UnsafeRawBufferPointer) {
    precondition(block.count == 64, "invariant: a block has 64 bytes")
    var (a, b, c, d) = state
    var i = 0
    while i < 64 {
      let mixed: UInt32
      let word: Int
      switch i &>> 4 {
      case 0: (mixed, word) = (d ^ (b & (c ^ d)), i)
      case 1: (mixed, word) = (c ^ (d & (b ^ c)), 5 &* i &+ 1)
      case 2: (mixed, word) = (b ^ c ^ d, 3 &* i &+ 5)
      default: (mixed, word) = (c ^ (b | ~d), 7 &* i)
      }
      let input = UInt32(littleEndian: block.loadUnaligned(fromByteOffset: 4 &* (word & 15), as: UInt32.self))
      let sum = a &+ mixed &+ MD5.constants[i] &+ input
      let count = MD5.rotations[(i &>> 4) &* 4 &+ (i & 3)]
      (a, d, c, b) = (d, c, b, b &+ (sum &<< count | sum &>> (32 &- count)))
      i &+= 1
    }
    state = (state.a &+ a, state.b &+ b, state.c &+ c, state.d &+ d)
  }

  /// The rotations of each round's four kinds of steps.
  private static let rotations: [UInt32] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21]

  /// For step i, the first 32 bits of the fraction of |sin(i + 1)|.
  private static let constants: [UInt32] = [
    0xD76A_A478, 0xE8C7_B756, 0x2420_70DB, 0xC1BD_CEEE, 0xF57C_0FAF, 0x4787_C62A,
    0xA830_4613, 0xFD46_9501, 0x6980_98D8, 0x8B44_F7AF, 0xFFFF_5BB1, 0x895C_D7BE,
    0x6B90_1122, 0xFD98_7193, 0xA679_438E, 0x49B4_0821, 0xF61E_2562, 0xC040_B340,
    0x265E_5A51, 0xE9B6_C7AA, 0xD62F_105D, 0x0244_1453, 0xD8A1_E681, 0xE7D3_FBC8,
    0x21E1_CDE6, 0xC337_07D6, 0xF4D5_0D87, 0x455A_14ED, 0xA9E3_E905, 0xFCEF_A3F8,
    0x676F_02D9, 0x8D2A_4C8A, 0xFFFA_3942, 0x8771_F681, 0x6D9D_6122, 0xFDE5_380C,
    0xA4BE_EA44, 0x4BDE_CFA9, 0xF6BB_4B60, 0xBEBF_BC70, 0x289B_7EC6, 0xEAA1_27FA,
    0xD4EF_3085, 0x0488_1D05, 0xD9D4_D039, 0xE6DB_99E5, 0x1FA2_7CF8, 0xC4AC_5665,
    0xF429_2244, 0x432A_FF97, 0xAB94_23A7, 0xFC93_A039, 0x655B_59C3, 0x8F0C_CC92,
    0xFFEF_F47D, 0x8584_5DD1, 0x6FA8_7E4F, 0xFE2C_E6E0, 0xA301_4314, 0x4E08_11A1,
    0xF753_7E82, 0xBD3A_F235, 0x2AD7_D2BB, 0xEB86_D391,
  ]
}
