// A log scan searches a RocksDB log (a write-ahead log or a manifest) for damage, and for complete records
// after the damage.
//
// BlockLogFormat describes the format of the file. A record of a write-ahead log begins with its sequence number (8 bytes)
// and the number of its changes (4 bytes). ManifestRecord describes the records of a manifest.
//
// Decision: docs/decisions/0010-damaged-files.md

import BlockLog

/// The result of a scan.
struct LogScan {
  /// The size of the file in bytes.
  private(set) var size = 0
  /// The offset of the first damage in bytes; nil if the file is intact.
  private(set) var damage: Int?
  /// Whether the damaged fragment claims more bytes than the file has.
  private(set) var damageOverruns = false
  /// The sequence number of the first complete record; nil without one.
  private(set) var first: UInt64?
  /// The highest sequence number of a complete record; nil without one.
  private(set) var newest: UInt64?
  /// The sequence number that follows the last complete record before the damage; nil without such a record.
  private(set) var following: UInt64?
  /// The highest sequence number of a complete record after the damage; nil without one.
  private(set) var newestAfterDamage: UInt64?
  /// In a manifest: the number of the oldest write-ahead log with rows that are not in tables; 0 if the
  /// manifest names none.
  private(set) var oldestLog: UInt64 = 0
  /// In a manifest: the highest sequence number that was assigned when the manifest was last written.
  private(set) var lastSequence: UInt64 = 0

  /// Maximum number of damaged blocks that are searched byte by byte for the next record.
  private static let maximumSearchedBlocks = 8

  /// A record whose first fragment has been read, but whose last fragment has not.
  private struct OpenRecord {
    var prefix: [UInt8] = []
    var isAfterDamage: Bool
  }

  private let isManifest: Bool
  /// The number of bytes that the scan keeps from the beginning of a record.
  private var prefixLimit: Int { isManifest ? 256 : 12 }
  private var openRecord: OpenRecord?
  private var searched = 0

  /// Scans a file.
  /// - Throws: ``StoreError`` with the system's reason if it cannot be read.
  init(_ path: String, isManifest: Bool = false) throws {
    self.isManifest = isManifest
    let file = try InputFile(path)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: BlockLogFormat.blockBytes, alignment: 8)
    defer { buffer.deallocate() }
    var offset = 0
    while true {
      let count = try file.read(into: buffer, at: offset)
      guard count > 0 else { break }
      scan(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
      offset += count
      guard count == BlockLogFormat.blockBytes else { break }
    }
    size = offset
    // The file ends inside a record, because the process stopped while it wrote the record.
    if openRecord != nil { note(damageAt: offset, overruns: true) }
  }

  /// Scans one block.
  private mutating func scan(_ block: UnsafeRawBufferPointer, at offset: Int) {
    var position = 0
    while block.count - position >= BlockLogFormat.headerBytes {
      if let length = fragment(block, position) {
        add(block, position, length)
        position += BlockLogFormat.headerBytes + length
      } else {
        note(damageAt: offset + position, overruns: overruns(block, position))
        guard let next = next(in: block, after: position) else { return }
        position = next
      }
    }
    // A short last block ends in the middle of a header.
    if block.count < BlockLogFormat.blockBytes, position < block.count {
      note(damageAt: offset + position, overruns: true)
    }
  }

  /// Returns the payload length of the fragment at a position; nil if no intact fragment begins there.
  private func fragment(_ block: UnsafeRawBufferPointer, _ position: Int) -> Int? {
    let header = LogScan.header(block, position)
    let start = position + BlockLogFormat.headerBytes
    let end = start + header.payloadBytes
    guard end <= block.count, header.rawType != 0,
      header.matches(UnsafeRawBufferPointer(rebasing: block[start..<end]))
    else { return nil }
    return header.payloadBytes
  }

  private static func header(_ block: UnsafeRawBufferPointer, _ position: Int) -> FragmentHeader {
    FragmentHeader(UnsafeRawBufferPointer(rebasing: block[position...]))
  }

  /// Whether a fragment's header claims more bytes than a short last block has.
  private func overruns(_ block: UnsafeRawBufferPointer, _ position: Int) -> Bool {
    block.count < BlockLogFormat.blockBytes
      && position + BlockLogFormat.headerBytes + LogScan.header(block, position).payloadBytes > block.count
  }

  /// Returns the position of the next intact fragment after damage; nil if the block has none.
  private mutating func next(in block: UnsafeRawBufferPointer, after position: Int) -> Int? {
    guard searched < LogScan.maximumSearchedBlocks else { return nil }
    searched += 1
    return (position + 1..<block.count).first { candidate in
      block.count - candidate >= BlockLogFormat.headerBytes && (1...4).contains(block[candidate + 6])
        && fragment(block, candidate) != nil
    }
  }

  /// Adds an intact fragment to the open record.
  private mutating func add(_ block: UnsafeRawBufferPointer, _ position: Int, _ length: Int) {
    let start = position + BlockLogFormat.headerBytes
    let payload = UnsafeRawBufferPointer(rebasing: block[start..<(start + length)])
    switch block[position + 6] {
    case 1, 2: openRecord = OpenRecord(isAfterDamage: damage != nil)
    case 3, 4: break
    default: return
    }
    guard let count = openRecord?.prefix.count else { return }
    let room = max(prefixLimit - count, 0)
    openRecord?.prefix += payload.prefix(room)
    if block[position + 6] == 1 || block[position + 6] == 4 { finish() }
  }

  /// Ends the open record and evaluates it.
  private mutating func finish() {
    defer { openRecord = nil }
    guard let record = openRecord else { return }
    if isManifest {
      let change = ManifestRecord(record.prefix)
      oldestLog = max(oldestLog, change.log ?? 0)
      lastSequence = max(lastSequence, change.sequence ?? 0)
    }
    // After a recovery from a torn record, RocksDB begins the next log with a record without changes. Such a
    // record is not an acknowledged write, so it is ignored.
    if !isManifest, record.prefix.count < 12 || record.prefix[8..<12].allSatisfy({ $0 == 0 }) { return }
    let sequence = record.prefix.prefix(8).enumerated().reduce(UInt64(0)) {
      $0 | UInt64($1.element) << (8 * UInt64($1.offset))
    }
    first = first ?? sequence
    newest = max(newest ?? 0, sequence)
    if !isManifest, damage == nil {
      let changes = record.prefix[8..<12].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      following = sequence &+ changes
    }
    if record.isAfterDamage { newestAfterDamage = max(newestAfterDamage ?? 0, sequence) }
  }

  /// Sets ``damage`` if this is the first damage of the file, and drops the open record.
  private mutating func note(damageAt offset: Int, overruns: Bool) {
    openRecord = nil
    guard damage == nil else { return }
    damage = offset
    damageOverruns = overruns
  }
}
