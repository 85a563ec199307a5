// The rows that say where subtrees lie, and what has to be cleared.
//
//   'g' + path                 the number of the generation that holds the rows of this location, 8 bytes
//   'G'                        changes with every row above: a number that it never had, 8 bytes
//   'n' + number + path        a row of a generation, its path relative to the location
//   'x' + number               rows that nobody sees and that are to be cleared: the first key of their range behind its
//                              length (LEB128), and the first key after it. Those of a generation have its number, others
//                              one of their own: however many generations lie in what is replaced, they need no new ones
//
// Paths are encoded as in the tree (see RowKeys). A generation that is being filled has a row 'x' too, until the commit that
// puts it into its place: what a server leaves that was killed meanwhile is cleared at the next start.

import OrderedStore
import RealtimeModel

extension RowKeys {
  static let generations = KeyRange(prefix: [UInt8(ascii: "g")])
  static let generationStamp: [UInt8] = [UInt8(ascii: "G")]
  static let garbage = KeyRange(prefix: [UInt8(ascii: "x")])

  static func prefix(ofGeneration number: UInt64) -> [UInt8] { [UInt8(ascii: "n")] + bigEndian(number) }

  /// The row that names the generation of a location, whose row key is given.
  static func generation(of prefix: [UInt8]) -> [UInt8] { [UInt8(ascii: "g")] + prefix.dropFirst() }

  static func garbage(_ number: UInt64) -> [UInt8] { [UInt8(ascii: "x")] + bigEndian(number) }

  static func bigEndian(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }
}

/// Reads and writes the rows.
enum GenerationRows {
  /// Where the subtrees of a state lie.
  static func load(_ view: any ReadView) throws -> SubtreeGenerations {
    var entries: [SubtreeGeneration] = []
    try view.scan(RowKeys.generations, reverse: false) { key, value, _ in
      entries.append(
        SubtreeGeneration(prefix: [RowKeys.tree] + key.dropFirst(), number: try number(value)))
      return true
    }
    return SubtreeGenerations(sorted: entries)
  }

  /// What changes with the generations; nil while there never were any.
  static func stamp(_ view: any ReadView) throws -> [UInt8]? {
    try view.get(RowKeys.generationStamp)?.value
  }

  static func encode(_ range: KeyRange) -> [UInt8] {
    var encoder = NodeEncoder()
    encoder.append(range.start.count)
    return encoder.bytes + range.start + (range.end ?? [])
  }

  static func decode(_ value: [UInt8]) throws -> KeyRange {
    let (count, used) = try value.withUnsafeBytes { raw in
      var decoder = NodeDecoder(raw)
      return (try decoder.count(), decoder.offset)
    }
    guard count <= value.count - used else { throw NodeDecoder.damaged }
    let end = Array(value.dropFirst(used + count))
    return KeyRange(start: Array(value[used..<(used + count)]), end: end.isEmpty ? nil : end)
  }

  private static func number(_ bytes: UnsafeRawBufferPointer) throws -> UInt64 {
    guard bytes.count == 8 else { throw NodeDecoder.damaged }
    return UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
  }
}
