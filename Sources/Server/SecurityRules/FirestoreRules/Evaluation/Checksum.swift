/// A cyclic redundancy check of 32 bits with reflected bits.
struct Checksum: Sendable {
  private let table: [UInt32]

  private init(polynomial: UInt32) {
    table = (0..<256).map { index in
      (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? value >> 1 ^ polynomial : value >> 1 }
    }
  }

  /// CRC-32 as in ISO 3309.
  static let crc32 = Checksum(polynomial: 0xEDB8_8320)
  /// CRC-32C as in RFC 3720.
  static let crc32c = Checksum(polynomial: 0x82F6_3B78)

  /// The checksum of bytes, its least significant byte first.
  func littleEndianBytes(of bytes: [UInt8]) -> [UInt8] {
    let value = ~bytes.reduce(~UInt32(0)) {
      table[Int(truncatingIfNeeded: ($0 ^ UInt32($1)) & 0xFF)] ^ $0 >> 8
    }
    return (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }
}
