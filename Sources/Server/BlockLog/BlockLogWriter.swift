// A block log writer encodes records in the block log format.
//
// Invariant: no fragment crosses a block. Bytes at the end of a block that are too few for a header are zeros.

/// Encodes the records of one log.
package struct BlockLogWriter: Sendable {
  /// A record that is appended in parts.
  package struct OpenRecord {
    /// The number of bytes of the record that are not yet in a finished fragment.
    fileprivate var remainingBytes: Int
    fileprivate var isFirst = true
    fileprivate var fragment: [UInt8] = []
    /// The final payload size of the current fragment, in bytes; nil between fragments.
    fileprivate var fragmentBytes: Int?
  }

  /// The size of the log so far, in bytes.
  package private(set) var count = 0

  /// Creates the writer of an empty log.
  package init() {}

  /// Returns the bytes to append to the log for one record.
  package mutating func frame(_ record: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    let fragmentCount = 2 + record.count / BlockLogFormat.blockBytes
    bytes.reserveCapacity(record.count + BlockLogFormat.headerBytes * fragmentCount)
    var open = begin(record.count)
    append(record[...], to: &open, &bytes)
    return bytes
  }

  /// Begins a record of `length` bytes. All of them must be appended before the next record.
  package func begin(_ length: Int) -> OpenRecord { OpenRecord(remainingBytes: length) }

  /// Adds a part of a record, and appends the fragments that it completes to `bytes`.
  package mutating func append(
    _ part: ArraySlice<UInt8>, to open: inout OpenRecord, _ bytes: inout [UInt8]
  ) {
    var part = part
    while open.remainingBytes > 0 || open.isFirst {
      let size = open.fragmentBytes ?? beginFragment(of: open, &bytes)
      open.fragmentBytes = size
      let added = part.prefix(size - open.fragment.count)
      open.fragment += added
      part = part.dropFirst(added.count)
      guard open.fragment.count == size else { return }
      endFragment(&open, &bytes)
      if part.isEmpty { return }
    }
  }

  /// Returns the payload size of the next fragment.
  private mutating func beginFragment(of open: OpenRecord, _ bytes: inout [UInt8]) -> Int {
    var available = BlockLogFormat.blockBytes - count % BlockLogFormat.blockBytes
    if available < BlockLogFormat.headerBytes {
      bytes.append(contentsOf: repeatElement(0, count: available))
      count += available
      available = BlockLogFormat.blockBytes
    }
    return min(available - BlockLogFormat.headerBytes, open.remainingBytes)
  }

  private mutating func endFragment(_ open: inout OpenRecord, _ bytes: inout [UInt8]) {
    let payload = open.fragment
    open.remainingBytes -= payload.count
    precondition(open.remainingBytes >= 0, "invariant: a record has no more bytes than announced")
    let isLast = open.remainingBytes == 0
    let type: FragmentType = open.isFirst ? (isLast ? .full : .first) : (isLast ? .last : .middle)
    var crc = CRC32C()
    withUnsafeBytes(of: type.rawValue) { crc.update($0) }
    payload.withUnsafeBytes { crc.update($0) }
    withUnsafeBytes(of: crc.masked.littleEndian) { bytes.append(contentsOf: $0) }
    withUnsafeBytes(of: UInt16(truncatingIfNeeded: payload.count).littleEndian) {
      bytes.append(contentsOf: $0)
    }
    bytes.append(type.rawValue)
    bytes.append(contentsOf: payload)
    count += BlockLogFormat.headerBytes + payload.count
    open.isFirst = false
    open.fragmentBytes = nil
    open.fragment = []
  }
}
