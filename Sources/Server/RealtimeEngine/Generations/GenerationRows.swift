// Encodes the rows that map locations to generations (subtrees whose rows are stored under a separate prefix, see
// `SubtreeGenerations`), and pending deletes: ranges that the cleaner has to clear.
//
//   'g' + path                 the number of the generation of this location, 8 bytes
//   'G'                        a number that changes with every row above and never repeats, 8 bytes
//   'n' + number + path        a row of a generation, its path relative to the location
//   'x' + number               a pending delete: length of the first key (LEB128), first key, end key
//
// The pending delete of a generation has the generation's number, and any other pending delete gets a new
// number. So replacing a subtree that contains many generations needs no new numbers for them.
//
// Paths are encoded as in the tree (see RowKeys). A generation also has a pending delete while it is staged;
// the commit that installs it removes the pending delete. After a crash the next start therefore clears every
// generation that was not installed.

import OrderedStore
import RealtimeModel

extension RowKeys {
  static let generations = KeyRange(prefix: [UInt8(ascii: "g")])
  static let generationStamp: [UInt8] = [UInt8(ascii: "G")]
  static let pendingDeletes = KeyRange(prefix: [UInt8(ascii: "x")])

  static func prefix(ofGeneration number: UInt64) -> [UInt8] { [UInt8(ascii: "n")] + bigEndian(number) }

  /// The key of the row with a location's generation, given the location's row key.
  static func generation(of prefix: [UInt8]) -> [UInt8] { [UInt8(ascii: "g")] + prefix.dropFirst() }

  static func pendingDelete(_ number: UInt64) -> [UInt8] { [UInt8(ascii: "x")] + bigEndian(number) }

  static func bigEndian(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
}

/// Reads and writes the rows of generations and pending deletes.
enum GenerationRows {
  /// The generations in a view of the store.
  static func load(_ view: any ReadView) throws -> SubtreeGenerations {
    var entries: [SubtreeGeneration] = []
    try view.scan(RowKeys.generations, reverse: false) { key, value, _ in
      entries.append(
        SubtreeGeneration(prefix: [RowKeys.tree] + key.dropFirst(), number: try number(value)))
      return true
    }
    return SubtreeGenerations(sorted: entries)
  }

  /// The stamp, a value that changes whenever the generations change; nil if the database never had a
  /// generation.
  static func stamp(_ view: any ReadView) throws -> [UInt8]? {
    try view.get(RowKeys.generationStamp)?.value
  }

  static func encode(_ range: KeyRange) -> [UInt8] {
    var encoder = NodeEncoder()
    encoder.append(range.start.count)
    let bytes = encoder.bytes + range.start + (range.end ?? [])
    assert((try? decode(bytes)) == range, "invariant: an encoded pending delete decodes to the same range")
    return bytes
  }

  static func decode(_ value: [UInt8]) throws -> KeyRange {
    let (count, used) = try value.withUnsafeBytes { raw in
      var decoder = NodeDecoder(raw)
      return (try decoder.count(), decoder.offset)
    }
    guard count <= value.count - used else { throw NodeDecoder.corrupted }
    let end = Array(value.dropFirst(used + count))
    return KeyRange(start: Array(value[used..<(used + count)]), end: end.isEmpty ? nil : end)
  }

  private static func number(_ bytes: UnsafeRawBufferPointer) throws -> UInt64 {
    guard bytes.count == 8 else { throw NodeDecoder.corrupted }
    return UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
  }
}
