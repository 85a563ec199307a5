// The checksum of RocksDB's logs: CRC-32C (Castagnoli), eight bytes a step.

/// CRC-32C, and the form in which RocksDB stores it.
enum CRC32C {
  /// Row r, entry b: what the byte b does to the checksum r bytes later.
  private static let table: [UInt32] = {
    var table = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var value = UInt32(byte)
      for _ in 0..<8 { value = value & 1 == 1 ? (value >> 1) ^ 0x82F6_3B78 : value >> 1 }
      table[byte] = value
    }
    for index in 256..<table.count {
      let before = table[index - 256]
      table[index] = (before >> 8) ^ table[Int(before & 255)]
    }
    return table
  }()

  /// The checksum of some bytes.
  static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    table.withUnsafeBufferPointer { table in
      var crc = UInt32.max
      var index = 0
      while index + 8 <= bytes.count {
        let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
        let mixed = word ^ UInt64(crc)
        crc = 0
        for place in 0..<8 {
          crc ^= table[(7 - place) * 256 + Int(truncatingIfNeeded: (mixed >> (8 * UInt64(place))) & 255)]
        }
        index += 8
      }
      while index < bytes.count {
        crc = (crc >> 8) ^ table[Int((crc ^ UInt32(bytes[index])) & 255)]
        index += 1
      }
      return ~crc
    }
  }

  /// The checksum as it stands in a log: turned and shifted, so that a checksum over checksums stays sound.
  static func masked(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    let crc = checksum(bytes)
    return ((crc >> 15) | (crc << 17)) &+ 0xA282_EAD8
  }
}
