// Defines the keys of a Firestore database's rows in the ordered store. The first byte is the kind of row.
//
//     documents   01 | parent path | collection id | document id           -> format, times, fields
//     indexes     02 | parent path | collection id | field path | kind | value | document id   -> nothing
//     groups      03 | collection id | complete path, segment by segment   -> nothing
//     composites  04 | number of the index | …                             -> see CompositeIndex
//     indexing    05                                                       -> the index state: see IndexState
//     token key   06                                                       -> the key of TokenSigner
//     rules       07                                                       -> the rules in force: see RulesRelease
//     rulesets    08 | id                                                  -> see StoredRuleset
//     contents    09 | id                                                  -> the files of a ruleset: see StoredRuleset
//     history     0A | time                                                -> a release of rules: see RulesetRows
//
// `IndexKeyEncoder` encodes the parts. An encoded segment begins with 02 (a number) or 03 (a string). A path
// ends with 01, which sorts before every segment. Therefore the rows of one collection's documents are
// adjacent, without rows of subcollections between them. All rows below a document are one range.
//
// Example: `books/b1` at the root, and the index entry of its field `n` = 1:
//
//     01 | 01 | 03 "books" 00 01 | 03 "b1" 00 01
//     02 | 01 | 03 "books" 00 01 | "n" 00 01 00 00 | 01 | 30 BF F0 00 00 00 00 00 00 | 03 "b1" 00 01
//
// Invariant: the document rows of one collection sort by document name, and so do the group rows of one
// collection group.

import FirestoreModel
import OrderedStore

/// Encodes and decodes the keys of the engine's rows.
enum FirestoreKeyLayout {
  static let documents: UInt8 = 0x01
  static let indexes: UInt8 = 0x02
  static let groups: UInt8 = 0x03
  static let composites: UInt8 = 0x04
  /// The row with the index state.
  static let indexing: Key = [0x05]
  /// The row with the key that signs tokens.
  static let tokenKey: Key = [0x06]
  /// The row with the security rules.
  static let rules: Key = [0x07]
  /// The prefix of the headers of rulesets.
  static let rulesets: Key = [0x08]
  /// The prefix of the release history.
  static let rulesHistory: Key = [0x0A]

  /// The row with the header of a ruleset.
  static func ruleset(_ id: String) -> Key { rulesets + Array(id.utf8) }

  /// The row with the files of a ruleset.
  static func rulesetContent(_ id: String) -> Key { [0x09] + Array(id.utf8) }

  /// The row of a release.
  static func rulesHistory(_ microseconds: Int64) -> Key { rulesHistory + microseconds.bigEndianBytes }

  /// The part of a field's value that an index entry contains.
  enum EntryKind: UInt8 {
    /// The value itself.
    case value = 0x01
    /// An element of an array value.
    case element = 0x02
  }

  /// The key of a document's row.
  static func document(_ path: ResourcePath) -> Key {
    var encoder = IndexKeyEncoder(prefix: [documents])
    appendCollection(of: path.segments.dropLast(), to: &encoder)
    encoder.append(segment: path.segments.last ?? "")
    return encoder.bytes
  }

  /// The prefix of all rows of documents directly in a collection.
  static func collection(_ path: ResourcePath) -> Key { collection(path, in: documents) }

  /// The prefix of all index entries of documents directly in a collection.
  static func indexes(of collection: ResourcePath) -> Key { self.collection(collection, in: indexes) }

  private static func collection(_ path: ResourcePath, in space: UInt8) -> Key {
    var encoder = IndexKeyEncoder(prefix: [space])
    appendCollection(of: path.segments[...], to: &encoder)
    return encoder.bytes
  }

  private static func appendCollection(of segments: ArraySlice<String>, to encoder: inout IndexKeyEncoder) {
    for segment in segments.dropLast() { encoder.append(segment: segment) }
    encoder.append(raw: [pathEnd])
    encoder.append(segment: segments.last ?? "")
  }

  /// The prefix of all rows of a composite index.
  static func composite(_ number: UInt32) -> Key {
    [composites] + withUnsafeBytes(of: number.bigEndian) { Array($0) }
  }

  /// The prefix of a composite index's rows for documents of one collection.
  static func composite(_ number: UInt32, of collection: ResourcePath) -> Key {
    var encoder = IndexKeyEncoder(prefix: composite(number))
    appendCollection(of: collection.segments[...], to: &encoder)
    return encoder.bytes
  }

  /// The prefix of all rows of documents directly under a parent, in any collection.
  static func children(of parent: ResourcePath) -> Key {
    var encoder = IndexKeyEncoder(prefix: [documents])
    encoder.append(parent)
    return encoder.bytes
  }

  /// The prefix of all rows of documents anywhere below a parent.
  static func subtree(of parent: ResourcePath) -> Key {
    var encoder = IndexKeyEncoder(prefix: [documents])
    for segment in parent.segments { encoder.append(segment: segment) }
    return encoder.bytes
  }

  /// The prefix of all index entries of one field in one collection.
  static func index(_ field: FieldPath, _ kind: EntryKind, of collection: ResourcePath) -> Key {
    var encoder = IndexKeyEncoder(prefix: indexes(of: collection))
    encoder.append(field)
    encoder.append(raw: [kind.rawValue])
    return encoder.bytes
  }

  /// The key of a document's group row, by which collection group queries find the document.
  static func group(_ path: ResourcePath) -> Key {
    var encoder = IndexKeyEncoder(prefix: [groups])
    encoder.append(segment: path.segments.dropLast().last ?? "")
    for segment in path.segments { encoder.append(segment: segment) }
    return encoder.bytes
  }

  /// The prefix of all group rows of a collection id below a parent.
  static func group(_ collectionID: String, below parent: ResourcePath) -> Key {
    var encoder = IndexKeyEncoder(prefix: [groups])
    encoder.append(segment: collectionID)
    for segment in parent.segments { encoder.append(segment: segment) }
    return encoder.bytes
  }

  /// The document's path in a document row's key; nil if the key is not of a document row.
  static func documentPath(ofRow key: Key) -> ResourcePath? {
    guard key.first == documents else { return nil }
    var decoder = IndexKeyDecoder(key, from: 1)
    guard let parent = decoder.path(), let collection = decoder.segment(), let id = decoder.segment(),
      decoder.isAtEnd
    else { return nil }
    return ResourcePath(parent.segments + [collection, id])
  }

  /// The path of the document that an automatic index entry belongs to; nil if the key is not of such an
  /// entry.
  static func documentPath(ofIndexEntry key: Key) -> ResourcePath? {
    guard key.first == indexes else { return nil }
    var decoder = IndexKeyDecoder(key, from: 1)
    guard let parent = decoder.path(), let collection = decoder.segment(), decoder.fieldPath() != nil,
      let end = IndexValue.end(in: key, from: decoder.position + 1)
    else { return nil }
    var name = IndexKeyDecoder(key, from: end)
    guard let id = name.segment(), name.isAtEnd else { return nil }
    return ResourcePath(parent.segments + [collection, id])
  }

  /// The document's path in a group row's key; nil if the key is not of a group row.
  static func documentPath(ofGroupRow key: Key) -> ResourcePath? {
    guard key.first == groups else { return nil }
    var decoder = IndexKeyDecoder(key, from: 1)
    guard decoder.segment() != nil else { return nil }
    var segments: [String] = []
    while !decoder.isAtEnd {
      guard let segment = decoder.segment() else { return nil }
      segments.append(segment)
    }
    return ResourcePath(segments)
  }

  /// The encoding of one document or collection id.
  static func segment(_ id: String) -> [UInt8] {
    var encoder = IndexKeyEncoder()
    encoder.append(segment: id)
    return encoder.bytes
  }

  private static let pathEnd: UInt8 = 0x01
  /// A lower bound of all encoded segments. It sorts after the end of a path.
  static let leastSegment: UInt8 = 0x02
}
