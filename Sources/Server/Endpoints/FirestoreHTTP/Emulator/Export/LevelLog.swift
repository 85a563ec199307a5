// LevelDB's log format, in which exports keep their records: blocks of 32 KiB with fragments, each behind a header of a
// masked CRC-32C, a length and a type.
//
//     fragment: crc (4, little endian) | length (2, little endian) | 1 whole, 2 first, 3 middle, 4 last | bytes
//
// Invariants: no fragment crosses a block; a block's last bytes, where no header fits, are zero; what is read was
// checked; a record takes no more memory than its log has bytes, and none is larger than the limit.

/// Puts records into the form of a log.
struct LevelLogWriter: Sendable {
  static let blockBytes = 32 << 10
  static let headerBytes = 7

  /// A record that is put into the log piece by piece.
  struct Open {
    /// The bytes of it that are in no fragment yet.
    fileprivate var rest: Int
    fileprivate var isFirst = true
    /// The fragment that is being filled, and how large it is to be.
    fileprivate var fragment: [UInt8] = []
    fileprivate var fragmentBytes: Int?
  }

  /// The bytes of the log so far.
  private(set) var count = 0

  /// The next bytes of the log: one record.
  mutating func frame(_ record: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(record.count + Self.headerBytes * (2 + record.count / Self.blockBytes))
    var open = begin(record.count)
    append(record[...], to: &open, &bytes)
    return bytes
  }

  /// Begins a record of so many bytes, all of which have to follow.
  func begin(_ length: Int) -> Open { Open(rest: length) }

  /// Appends to `bytes` what a record's next piece makes whole of the log.
  mutating func append(_ piece: ArraySlice<UInt8>, to open: inout Open, _ bytes: inout [UInt8]) {
    var piece = piece
    while open.rest > 0 || open.isFirst {
      let size = open.fragmentBytes ?? beginFragment(of: open, &bytes)
      open.fragmentBytes = size
      let taken = piece.prefix(size - open.fragment.count)
      open.fragment += taken
      piece = piece.dropFirst(taken.count)
      guard open.fragment.count == size else { return }
      endFragment(&open, &bytes)
      if piece.isEmpty { return }
    }
  }

  /// How much of a record the next fragment takes.
  private mutating func beginFragment(of open: Open, _ bytes: inout [UInt8]) -> Int {
    var room = Self.blockBytes - count % Self.blockBytes
    if room < Self.headerBytes {
      bytes.append(contentsOf: repeatElement(0, count: room))
      count += room
      room = Self.blockBytes
    }
    return min(room - Self.headerBytes, open.rest)
  }

  private mutating func endFragment(_ open: inout Open, _ bytes: inout [UInt8]) {
    let data = open.fragment
    open.rest -= data.count
    let type: UInt8 = open.isFirst ? (open.rest == 0 ? 1 : 2) : (open.rest == 0 ? 4 : 3)
    let crc = CRC32C.masked(type, data[...])
    withUnsafeBytes(of: crc.littleEndian) { bytes.append(contentsOf: $0) }
    withUnsafeBytes(of: UInt16(truncatingIfNeeded: data.count).littleEndian) {
      bytes.append(contentsOf: $0)
    }
    bytes.append(type)
    bytes.append(contentsOf: data)
    count += Self.headerBytes + data.count
    open.isFirst = false
    open.fragmentBytes = nil
    open.fragment = []
  }
}

/// Takes records out of a log, fragment by fragment.
struct LevelLogReader: Sendable {
  /// What is wrong with a log, in the emulator's words.
  struct Damage: Error, Equatable {
    var message: String

    static let truncated = Damage(message: "Invalid record")
    static let tooLarge = Damage(message: "Invalid record: more than \(maximumRecord) bytes")
    static let checksum = Damage(message: "Checksum doesn't validate.")
  }

  /// A record and where it begins.
  struct Record: Equatable {
    var offset: Int
    var bytes: [UInt8]
  }

  /// What protobuf's own runtimes read. Documents take far more in this format than they count, since it repeats a
  /// field's name for every element of its array: 1 MiB of booleans in a field with a name of 1,500 bytes is 1.6 GB.
  static let maximumRecord = Int(Int32.max)

  /// Where the next fragment begins.
  private(set) var position = 0

  /// The next record; nil at the end.
  /// - Parameter read: gives exactly so many of the next bytes, fewer only at the end of the log.
  mutating func next(_ read: (Int) throws -> [UInt8]) throws -> [UInt8]? {
    var record: [UInt8] = []
    var isOpen = false
    while true {
      let room = LevelLogWriter.blockBytes - position % LevelLogWriter.blockBytes
      if room < LevelLogWriter.headerBytes {
        let filling = try read(room)
        position += filling.count
        if filling.count == room { continue }
        // The log may end here, where no record came that would have filled the block.
        guard !isOpen else { throw Damage.truncated }
        return nil
      }
      let header = try read(LevelLogWriter.headerBytes)
      if header.isEmpty, !isOpen { return nil }
      guard header.count == LevelLogWriter.headerBytes else { throw Damage.truncated }
      let length = Int(header[4]) | Int(header[5]) << 8
      guard length <= room - LevelLogWriter.headerBytes, (1...4).contains(header[6]) else {
        throw Damage.truncated
      }
      let data = try read(length)
      guard data.count == length else { throw Damage.truncated }
      let crc = header[..<4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      guard crc == CRC32C.masked(header[6], data[...]) else { throw Damage.checksum }
      position += LevelLogWriter.headerBytes + length
      // Whole and first begin a record, middle and last go on with one.
      guard isOpen == (header[6] >= 3) else { throw Damage.truncated }
      guard record.count + length <= Self.maximumRecord else { throw Damage.tooLarge }
      record += data
      if header[6] == 1 || header[6] == 4 { return record }
      isOpen = true
    }
  }
}

/// The checksum of Castagnoli.
enum CRC32C {
  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { crc, _ in crc & 1 == 1 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
  }

  /// The checksum of a type and its data, turned about as LevelDB does, so that data that holds checksums is no trap.
  static func masked(_ type: UInt8, _ data: ArraySlice<UInt8>) -> UInt32 {
    var crc: UInt32 = ~0
    crc = table[Int((crc ^ UInt32(type)) & 0xFF)] ^ crc >> 8
    for byte in data { crc = table[Int((crc ^ UInt32(byte)) & 0xFF)] ^ crc >> 8 }
    crc = ~crc
    return (crc >> 15 | crc << 17) &+ 0xA282_EAD8
  }
}
