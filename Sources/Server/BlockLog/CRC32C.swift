// CRC-32C (Castagnoli), the checksum of LevelDB's and RocksDB's logs.

/// Computes the CRC-32C of bytes that are passed in parts.
package struct CRC32C {
  /// Eight rows of 256 entries. Entry b of row r is the effect that a byte b has on the checksum r bytes
  /// later.
  private static let table: [UInt32] = {
    var table = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var value = UInt32(byte)
      for _ in 0..<8 { value = value & 1 == 1 ? (value >> 1) ^ 0x82F6_3B78 : value >> 1 }
      table[byte] = value
    }
    for index in 256..<table.count {
      let previous = table[index - 256]
      table[index] = (previous >> 8) ^ table[Int(previous & 255)]
    }
    return table
  }()

  private var crc = UInt32.max

  /// Creates the checksum of no bytes.
  package init() {}

  /// Adds bytes, eight at a time.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    var crc = crc
    CRC32C.table.withUnsafeBufferPointer { table in
      var index = 0
      while index + 8 <= bytes.count {
        let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
        let mixed = word ^ UInt64(crc)
        crc = 0
        for row in 0..<8 {
          crc ^= table[(7 - row) * 256 + Int(truncatingIfNeeded: (mixed >> (8 * UInt64(row))) & 255)]
        }
        index += 8
      }
      while index < bytes.count {
        crc = (crc >> 8) ^ table[Int((crc ^ UInt32(bytes[index])) & 255)]
        index += 1
      }
    }
    self.crc = crc
  }

  /// The checksum of the bytes so far.
  package var value: UInt32 { ~crc }

  /// The checksum as logs store it: rotated, plus a constant. Without this masking, a CRC of data that itself
  /// contains CRCs would detect fewer errors.
  package var masked: UInt32 { ((value >> 15) | (value << 17)) &+ 0xA282_EAD8 }

  /// Returns the checksum of some bytes.
  package static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    var crc = CRC32C()
    crc.update(bytes)
    return crc.value
  }

  /// Returns the masked checksum of some bytes.
  package static func masked(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    var crc = CRC32C()
    crc.update(bytes)
    return crc.masked
  }
}
