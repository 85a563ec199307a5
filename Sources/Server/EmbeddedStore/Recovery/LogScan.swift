// Looks over a file in the format of RocksDB's logs (write-ahead logs and manifests) for a damaged place with whole
// records behind it.
//
// BlockLogFormat describes the format.
// A write-ahead log's record begins with its sequence number (8) and the number of its changes (4); a manifest's is
// described in ManifestRecord.

import BlockLog

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
    // A record without its end: the process stopped in the middle of it.
    if begun != nil { note(damageAt: offset, overruns: true) }
  }

  /// Scans one block.
  private mutating func scan(_ block: UnsafeRawBufferPointer, at offset: Int) {
    var position = 0
    while block.count - position >= BlockLogFormat.headerBytes {
      if let length = fragment(block, position) {
        take(block, position, length)
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

  /// The length of the payload of a whole fragment; nil if there is none at a position.
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

  private func overruns(_ block: UnsafeRawBufferPointer, _ position: Int) -> Bool {
    block.count < BlockLogFormat.blockBytes
      && position + BlockLogFormat.headerBytes + LogScan.header(block, position).payloadBytes > block.count
  }

  /// Where a whole fragment begins behind a damaged place of a block; nil if none is found.
  private mutating func next(in block: UnsafeRawBufferPointer, after position: Int) -> Int? {
    guard searched < LogScan.searchedBlocks else { return nil }
    searched += 1
    return (position + 1..<block.count).first { candidate in
      block.count - candidate >= BlockLogFormat.headerBytes && (1...4).contains(block[candidate + 6])
        && fragment(block, candidate) != nil
    }
  }

  /// Takes note of a whole fragment.
  private mutating func take(_ block: UnsafeRawBufferPointer, _ position: Int, _ length: Int) {
    let start = position + BlockLogFormat.headerBytes
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
