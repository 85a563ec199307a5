// Looks over a file in the format of RocksDB's logs (write-ahead logs and manifests) for a damaged place with whole
// records behind it.
//
// The format: blocks of 32 KiB, in each fragments of a record, one after the other:
//   checksum (4), length (2), type (1: a whole record, 2: its first part, 3: a middle part, 4: its last), payload
// Numbers are little-endian; the checksum covers type and payload. Less than seven bytes left in a block are zeros.
// A write-ahead log's record begins with its sequence number (8) and the number of its changes (4); a manifest's is
// described in ManifestRecord.

/// What a scan found.
struct LogScan {
  /// The place of the first damage; nil if all is whole.
  private(set) var damage: Int?
  /// Whether the damaged fragment claims more bytes than the file has.
  private(set) var damageOverruns = false
  /// The sequence number of the first whole record; nil if there is none.
  private(set) var first: UInt64?
  /// The highest sequence number of a whole record; nil if there is none.
  private(set) var newest: UInt64?
  /// The highest sequence number of a whole record behind the damage; nil if there is none.
  private(set) var newestBehindDamage: UInt64?
  /// Of a manifest: the number of the oldest write-ahead log whose rows are not all in tables; 0 if none is named.
  private(set) var oldestLog: UInt64 = 0
  /// Of a manifest: the highest sequence number that had been given out when it was last written.
  private(set) var lastSequence: UInt64 = 0

  private static let block = 32 << 10
  private static let header = 7
  /// The damaged blocks that are looked through byte by byte for where records go on.
  private static let searchedBlocks = 8

  /// A record that has begun.
  private struct Begun {
    var prefix: [UInt8] = []
    var isBehindDamage: Bool
  }

  private let isManifest: Bool
  /// How much of a record's beginning is looked at.
  private var lookedAt: Int { isManifest ? 256 : 12 }
  private var begun: Begun?
  private var searched = 0

  /// Scans a file.
  /// - Throws: ``StoreError`` with the system's reason if it cannot be read.
  init(_ path: String, isManifest: Bool = false) throws {
    self.isManifest = isManifest
    let file = try InputFile(path)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: LogScan.block, alignment: 8)
    defer { buffer.deallocate() }
    var offset = 0
    while true {
      let count = try file.read(into: buffer, at: offset)
      guard count > 0 else { break }
      scan(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
      offset += count
      guard count == LogScan.block else { break }
    }
    // A record without its end: the process stopped in the middle of it.
    if begun != nil { note(damageAt: offset, overruns: true) }
  }

  /// Scans one block.
  private mutating func scan(_ block: UnsafeRawBufferPointer, at offset: Int) {
    var position = 0
    while block.count - position >= LogScan.header {
      if let length = fragment(block, position) {
        take(block, position, length)
        position += LogScan.header + length
      } else {
        note(damageAt: offset + position, overruns: overruns(block, position))
        guard let next = next(in: block, after: position) else { return }
        position = next
      }
    }
    // A short last block ends in the middle of a header.
    if block.count < LogScan.block, position < block.count {
      note(damageAt: offset + position, overruns: true)
    }
  }

  /// The length of the payload of a whole fragment; nil if there is none at a position.
  private func fragment(_ block: UnsafeRawBufferPointer, _ position: Int) -> Int? {
    let length = LogScan.length(block, position)
    let end = position + LogScan.header + length
    guard end <= block.count, block[position + 6] != 0 else { return nil }
    let stored = UInt32(littleEndian: block.loadUnaligned(fromByteOffset: position, as: UInt32.self))
    let covered = UnsafeRawBufferPointer(rebasing: block[(position + 6)..<end])
    return CRC32C.masked(covered) == stored ? length : nil
  }

  private static func length(_ block: UnsafeRawBufferPointer, _ position: Int) -> Int {
    Int(block[position + 4]) | Int(block[position + 5]) << 8
  }

  private func overruns(_ block: UnsafeRawBufferPointer, _ position: Int) -> Bool {
    block.count < LogScan.block
      && position + LogScan.header + LogScan.length(block, position) > block.count
  }

  /// Where a whole fragment begins behind a damaged place of a block; nil if none is found.
  private mutating func next(in block: UnsafeRawBufferPointer, after position: Int) -> Int? {
    guard searched < LogScan.searchedBlocks else { return nil }
    searched += 1
    return (position + 1..<block.count).first { candidate in
      block.count - candidate >= LogScan.header && (1...4).contains(block[candidate + 6])
        && fragment(block, candidate) != nil
    }
  }

  /// Takes note of a whole fragment.
  private mutating func take(_ block: UnsafeRawBufferPointer, _ position: Int, _ length: Int) {
    let start = position + LogScan.header
    let payload = UnsafeRawBufferPointer(rebasing: block[start..<(start + length)])
    switch block[position + 6] {
    case 1, 2: begun = Begun(isBehindDamage: damage != nil)
    case 3, 4: break
    default: return
    }
    guard let count = begun?.prefix.count else { return }
    let room = max(lookedAt - count, 0)
    begun?.prefix += payload.prefix(room)
    if block[position + 6] == 1 || block[position + 6] == 4 { finish() }
  }

  /// Takes note of a whole record.
  private mutating func finish() {
    defer { begun = nil }
    guard let record = begun else { return }
    if isManifest {
      let change = ManifestRecord(record.prefix)
      oldestLog = max(oldestLog, change.log ?? 0)
      lastSequence = max(lastSequence, change.sequence ?? 0)
    }
    // RocksDB begins a log with a record of no changes after a recovery that met a torn one: it acknowledges nothing.
    if !isManifest, record.prefix.count < 12 || record.prefix[8..<12].allSatisfy({ $0 == 0 }) { return }
    let sequence = record.prefix.prefix(8).enumerated().reduce(UInt64(0)) {
      $0 | UInt64($1.element) << (8 * UInt64($1.offset))
    }
    first = first ?? sequence
    newest = max(newest ?? 0, sequence)
    if record.isBehindDamage { newestBehindDamage = max(newestBehindDamage ?? 0, sequence) }
  }

  private mutating func note(damageAt place: Int, overruns: Bool) {
    begun = nil
    guard damage == nil else { return }
    damage = place
    damageOverruns = overruns
  }
}
