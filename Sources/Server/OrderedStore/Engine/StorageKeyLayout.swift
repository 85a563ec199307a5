// The storage key layout maps rows, undo rows and log records to the physical keys of the engine. An undo row
// is the old value of an overwritten or removed row, kept for reads of the past. No other file knows the
// layout on disk.
//
//   key                                              value
//   00 'c' <name>                                    catalogue: number (4), created at (8), history kind (1)
//   00 'f' <number:4>                                floor (8): the oldest readable version
//   00 'n'                                           the next number (4)
//   00 'v'                                           ceiling (8): every published version is at most this
//   00 's'                                           format of this layout (1)
//   01 <number:4> 01 <key>                           current row: written at (8), value
//   01 <number:4> 02 <escaped key> 00 01 <until:8>   undo row: written at (8), value that held until version `until`
//   01 <number:4> 03 <version:8>                     log record: payload
//
// Numbers and versions are big-endian, so that they sort as numbers. A key inside an undo row is escaped (00 becomes
// 00 ff) and terminated by 00 01. The undo rows of one key are therefore adjacent, and keys keep their order.
//
// Example: database 7; key 61 00 (an "a" and a zero) is set to "x" at version 5 and to "y" at version 9:
//   01 00000007 01 6100                                 ->  0000000000000009 79
//   01 00000007 02 61 00ff 0001 0000000000000009        ->  0000000000000005 78
//   01 00000007 03 0000000000000009                     ->  the payload that the commit logged

/// The number of a database within its store.
package typealias DatabaseNumber = UInt32

/// The kind of row that a physical key belongs to within a database.
enum KeySpace: UInt8 {
  case rows = 1
  case undo = 2
  case log = 3
}

/// The physical keys of one database.
struct StorageKeyLayout: Sendable {
  /// The size of the prefix of every key (the byte 01, the database number, the key space), in bytes.
  static let prefixBytes = 6

  let number: DatabaseNumber

  /// The prefix of a key space.
  func prefix(_ space: KeySpace) -> Key {
    [1] + StorageKeyLayout.bigEndian(number) + [space.rawValue]
  }

  /// The first key after a key space.
  func end(of space: KeySpace) -> Key {
    [1] + StorageKeyLayout.bigEndian(number) + [space.rawValue + 1]
  }

  /// The first key of the database, and the first key after it.
  var fullRange: (start: Key, end: Key) {
    (
      [1] + StorageKeyLayout.bigEndian(number),
      KeyRange.successor(ofPrefix: [1] + StorageKeyLayout.bigEndian(number)) ?? [2]
    )
  }

  /// The physical bounds of a range of rows.
  func bounds(of range: KeyRange, in space: KeySpace = .rows) -> (start: Key, end: Key) {
    (prefix(space) + range.start, range.end.map { prefix(space) + $0 } ?? end(of: space))
  }

  /// Passes the physical key of a row to `body`. A short key is built on the stack.
  @inline(__always)
  func withRow<Result>(
    _ key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    let count = StorageKeyLayout.prefixBytes + key.count
    return try withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { buffer in
      writePrefix(.rows, buffer)
      UnsafeMutableRawBufferPointer(rebasing: buffer[StorageKeyLayout.prefixBytes...]).copyMemory(from: key)
      return try body(UnsafeRawBufferPointer(buffer))
    }
  }

  /// Passes the physical key of a log record to `body`.
  @inline(__always)
  func withLog<Result>(
    _ version: Version, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try withUnsafeTemporaryAllocation(byteCount: StorageKeyLayout.prefixBytes + 8, alignment: 1) { buffer in
      writePrefix(.log, buffer)
      buffer.storeBytes(
        of: version.microseconds.bigEndian, toByteOffset: StorageKeyLayout.prefixBytes, as: UInt64.self)
      return try body(UnsafeRawBufferPointer(buffer))
    }
  }

  /// Passes the physical key of an undo row to `body`.
  @inline(__always)
  func withUndo<Result>(
    _ key: UnsafeRawBufferPointer, until version: Version, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    let bound = StorageKeyLayout.prefixBytes + key.count * 2 + 10
    return try withUnsafeTemporaryAllocation(byteCount: bound, alignment: 1) { buffer in
      writePrefix(.undo, buffer)
      var count = StorageKeyLayout.prefixBytes
      for byte in key {
        buffer[count] = byte
        count += 1
        if byte == 0 {
          buffer[count] = 0xff
          count += 1
        }
      }
      buffer[count] = 0
      buffer[count + 1] = 1
      buffer.storeBytes(of: version.microseconds.bigEndian, toByteOffset: count + 2, as: UInt64.self)
      let physical = UnsafeRawBufferPointer(rebasing: buffer[0..<(count + 10)])
      assert(
        StorageKeyLayout.rowKey(ofUndo: physical).map { $0.key == Key(key) && $0.until == version } == true,
        "invariant: an undo key decodes to its row key and version")
      return try body(physical)
    }
  }

  /// The bounds of the undo rows of a range of rows.
  func undoBounds(of range: KeyRange) -> (start: Key, end: Key) {
    let start = prefix(.undo) + StorageKeyLayout.escaped(range.start)
    return (start, range.end.map { prefix(.undo) + StorageKeyLayout.escaped($0) } ?? end(of: .undo))
  }

  @inline(__always)
  private func writePrefix(_ space: KeySpace, _ buffer: UnsafeMutableRawBufferPointer) {
    buffer[0] = 1
    buffer.storeBytes(of: number.bigEndian, toByteOffset: 1, as: UInt32.self)
    buffer[5] = space.rawValue
  }

  /// A key in the escaped form of undo rows, without the terminator. The escaped bound of a range of rows is the
  /// bound of their undo rows, because escaping keeps the order of keys. A key's terminator 00 01 sorts below
  /// any continuation of a longer key: below the escape 00 ff, and below every other byte.
  static func escaped(_ key: Key) -> Key {
    var result = Key()
    result.reserveCapacity(key.count + 8)
    for byte in key {
      result.append(byte)
      if byte == 0 { result.append(0xff) }
    }
    return result
  }

  /// The row key and version of an undo row's physical key; nil if the key is malformed.
  static func rowKey(ofUndo physical: UnsafeRawBufferPointer) -> (key: Key, until: Version)? {
    guard physical.count >= prefixBytes + 10 else { return nil }
    let escaped = UnsafeRawBufferPointer(rebasing: physical[prefixBytes..<(physical.count - 10)])
    var key = Key()
    key.reserveCapacity(escaped.count)
    var index = 0
    while index < escaped.count {
      key.append(escaped[index])
      index += escaped[index] == 0 ? 2 : 1
    }
    let terminator = physical.count - 10
    guard physical[terminator] == 0, physical[terminator + 1] == 1 else { return nil }
    return (key, version(in: physical, at: physical.count - 8))
  }

  /// The version at the end of a physical key; nil if the key is too short to have one.
  static func trailingVersion(of physical: UnsafeRawBufferPointer) -> Version? {
    guard physical.count >= prefixBytes + 8 else { return nil }
    return version(in: physical, at: physical.count - 8)
  }

  /// The version at an offset of a key or value. The caller has checked that the key or value is long enough.
  @inline(__always)
  static func version(in bytes: UnsafeRawBufferPointer, at offset: Int) -> Version {
    Version(microseconds: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
  }

  /// The stored form of a number.
  static func bigEndian<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
  }
}

extension Version {
  /// Passes the eight bytes of a version to `body`.
  @inline(__always)
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try withUnsafeBytes(of: microseconds.bigEndian, body)
  }
}
