// The block log format of LevelDB, which RocksDB uses as well. A log consists of blocks of 32 KiB. Records are stored as
// fragments, and no fragment crosses a block.
//
//     fragment: checksum (4) | length (2) | type (1) | payload
//
// Numbers are little-endian. The checksum is a masked CRC-32C of type and payload. If fewer than seven bytes remain at
// the end of a block, they are zeros.

/// The constants of the format.
package enum BlockLogFormat {
  /// The size of a block, in bytes.
  package static let blockBytes = 32 << 10
  /// The size of a fragment's header, in bytes.
  package static let headerBytes = 7
}

/// The part of a record that a fragment contains.
package enum FragmentType: UInt8 {
  case full = 1
  case first = 2
  case middle = 3
  case last = 4

  /// Whether a record begins with the fragment.
  package var beginsRecord: Bool { self == .full || self == .first }
  /// Whether a record ends with the fragment.
  package var endsRecord: Bool { self == .full || self == .last }
}

/// The header of a fragment.
package struct FragmentHeader {
  /// The stored checksum, masked.
  package var checksum: UInt32
  /// The size of the payload, in bytes.
  package var payloadBytes: Int
  /// The stored type, which may be invalid.
  package var rawType: UInt8

  /// Reads a header from `headerBytes` bytes.
  package init(_ bytes: UnsafeRawBufferPointer) {
    precondition(bytes.count >= BlockLogFormat.headerBytes, "invariant: a fragment's header is complete")
    checksum = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt32.self))
    payloadBytes = Int(bytes[4]) | Int(bytes[5]) << 8
    rawType = bytes[6]
  }

  /// The type; nil for an invalid one.
  package var type: FragmentType? { FragmentType(rawValue: rawType) }

  /// Returns whether the checksum matches a payload.
  package func matches(_ payload: UnsafeRawBufferPointer) -> Bool {
    var crc = CRC32C()
    withUnsafeBytes(of: rawType) { crc.update($0) }
    crc.update(payload)
    return crc.masked == checksum
  }
}
