// A composite index: its definition, and the rows that hold its entries.
//
//     composites  04 | number (4) | collection path, for the scope of one collection | values | name
//                 -> where each value ends in the key (2 bytes each)
//
// The collection path is encoded as in document rows, and a value as in automatic index entries. The bytes of
// a value are inverted if its field is descending. The name is the document's id or, in a collection group
// index, its complete path. Its bytes are inverted if `__name__` is descending.
//
// Example: the row of `books/b1` {genre: "sf", pages: 1} in index 7 over `books` with `genre` ascending and
// `pages` descending:
//
//     04 | 00 00 00 07 | 01 | 03 "books" 00 01 | 50 "sf" 00 01 | CF 40 0F FF FF FF FF FF FF | FC ~"b1" FF FE
//
// Invariant: a document has entries only if it has all fields of the index. If the index contains an array's
// elements (mode `contains`), the document has one entry for each distinct element. Different values may have
// equal bytes if their encodings reach `IndexValue.truncationLength`.

import FirestoreModel
import OrderedStore

/// The definition of an index.
struct CompositeIndex: Hashable, Sendable, Codable {
  /// How the index orders a field.
  enum Mode: String, Hashable, Sendable, Codable { case ascending, descending, contains }

  /// A field of the index.
  struct Part: Hashable, Sendable, Codable {
    let segments: [String]
    var mode: Mode

    init(_ field: FieldPath, _ mode: Mode) {
      segments = field.segments
      self.mode = mode
    }

    var field: FieldPath { FieldPath(segments: segments) ?? .documentID }
  }

  let collectionID: String
  let scope: DatabaseIndexConfiguration.Scope
  var parts: [Part]
  var namesDescend: Bool

  /// The index with all directions reversed. Its entries are those of this index in reverse order, so the store needs
  /// the entries of only one of these two indexes.
  var reversed: CompositeIndex {
    var index = self
    for position in index.parts.indices {
      switch index.parts[position].mode {
      case .ascending: index.parts[position].mode = .descending
      case .descending: index.parts[position].mode = .ascending
      case .contains: break
      }
    }
    index.namesDescend.toggle()
    return index
  }

  /// This index or its reverse: the one whose first ordered field is ascending.
  var canonical: CompositeIndex {
    let first = parts.first { $0.mode != .contains }
    return first.map { $0.mode == .descending } ?? namesDescend ? reversed : self
  }

  /// The fields as text: `(genre ASC, pages DESC, __name__ DESC)`.
  func properties(reversed: Bool = false) -> String {
    let index = reversed ? self.reversed : self
    let fields = index.parts.map { part in
      switch part.mode {
      case .ascending: "\(part.field) ASC"
      case .descending: "\(part.field) DESC"
      case .contains: "\(part.field) CONTAINS"
      }
    }
    return "(" + (fields + ["__name__ \(index.namesDescend ? "DESC" : "ASC")"]).joined(separator: ", ") + ")"
  }

  /// The index as text.
  var description: String {
    "\(scope == .collection ? "collection" : "collection group") \(collectionID) on \(properties())"
  }
}

/// A composite index with its number, which is part of its rows' keys.
struct NumberedIndex: Hashable, Sendable {
  let number: UInt32
  let index: CompositeIndex

  /// The prefix of all rows of the index.
  var prefix: Key { FirestoreKeyLayout.composite(number) }

  /// The key prefix of the rows for documents of a collection. For a collection group index, the prefix of
  /// all its rows.
  func prefix(in collection: ResourcePath) -> Key {
    index.scope == .collection ? FirestoreKeyLayout.composite(number, of: collection) : prefix
  }

  /// The rows of a document in the index.
  /// - Parameters:
  ///   - enforcesSizeLimit: whether an entry above the size limit is an error. If false, a document with such an
  ///     entry gets no entries.
  ///   - admit: called with the number of entries and their bytes before any entry is built. It may throw to
  ///     reject them.
  /// - Throws: INVALID_ARGUMENT for an entry above the limit, and the errors of `admit`.
  func entries(
    of fields: MapValue, at path: ResourcePath, enforcesSizeLimit: Bool = true,
    admit: (_ count: Int, _ bytes: Int) throws(FirestoreError) -> Void
  ) throws(FirestoreError) -> [(Key, StoredValue)] {
    // For each field of the index, the encoded values that entries may have. Only an array with mode
    // `contains` has several.
    var values: [[[UInt8]]] = []
    for part in index.parts {
      guard let value = fields.value(at: part.field) else { return [] }
      guard part.mode == .contains else {
        values.append([NumberedIndex.encode(value, part.mode)])
        continue
      }
      guard case .array(let elements) = value else { return [] }
      values.append(Array(Set(elements.map { IndexValue.encode($0) })))
    }
    guard !values.contains(where: \.isEmpty) else { return [] }
    let longest = values.reduce(0) { $0 + ($1.map(\.count).max() ?? 0) }
    guard longest <= EngineLimits.maximumCompositeEntryBytes else {
      guard enforcesSizeLimit else { return [] }
      throw .invalidArgument(
        "An entry of the document in the index of \(index.description) has \(longest) bytes; at most "
          + "\(EngineLimits.maximumCompositeEntryBytes) are allowed.")
    }
    let start = prefix(in: ResourcePath(Array(path.segments.dropLast())))
    var name = IndexKeyEncoder()
    if index.scope == .collection {
      name.append(segment: path.segments.last ?? "")
    } else {
      name.append(path)
    }
    let nameBytes = index.namesDescend ? name.bytes.map { ~$0 } : name.bytes
    var count = 1
    var size = start.count + nameBytes.count + 2 * values.count
    for choices in values {
      size = size * choices.count + count * choices.reduce(0) { $0 + $1.count }
      count *= choices.count
    }
    try admit(count, size)
    var entries = [PartialEntry(key: start)]
    for choices in values {
      entries = entries.flatMap { entry in
        choices.map { bytes in
          var entry = entry
          entry.append(bytes)
          return entry
        }
      }
    }
    return entries.map { ($0.key + nameBytes, $0.ends) }
  }

  /// The encoded value in an entry.
  static func encode(_ value: Value, _ mode: CompositeIndex.Mode) -> [UInt8] {
    let bytes = IndexValue.encode(value)
    return mode == .descending ? bytes.map { ~$0 } : bytes
  }

  /// The path of the document that a row belongs to; nil if the row is not of this index.
  func path(of row: CompositeRow, in collection: ResourcePath?) -> ResourcePath? {
    let name = row.key[row.nameStart...].map { index.namesDescend ? ~$0 : $0 }
    var decoder = IndexKeyDecoder(name)
    guard index.scope == .collection else { return decoder.path() }
    guard let id = decoder.segment(), decoder.isAtEnd else { return nil }
    if let collection { return collection.appending(id) }
    var pathDecoder = IndexKeyDecoder(row.key, from: prefix.count)
    guard let parent = pathDecoder.path(), let collection = pathDecoder.segment() else { return nil }
    return ResourcePath(parent.segments + [collection, id])
  }

  private struct PartialEntry {
    var key: Key
    var ends: StoredValue = []

    mutating func append(_ bytes: [UInt8]) {
      key += bytes
      let end = UInt16(clamping: key.count)
      ends += [UInt8(end >> 8), UInt8(end & 0xFF)]
    }
  }
}

/// A decoded row of a composite index.
struct CompositeRow {
  let key: Key
  /// The end offset of each value.
  let ends: [Int]

  /// The start offset of the first value.
  let start: Int

  /// Decodes a row; nil if the bytes are not a row of a composite index.
  init?(_ key: Key, _ value: UnsafeRawBufferPointer, start: Int) {
    guard value.count.isMultiple(of: 2), start <= key.count else { return nil }
    var ends: [Int] = []
    var last = start
    for position in stride(from: 0, to: value.count, by: 2) {
      let end = Int(value[position]) << 8 | Int(value[position + 1])
      guard end >= last, end <= key.count else { return nil }
      ends.append(end)
      last = end
    }
    self.key = key
    self.ends = ends
    self.start = start
  }

  var nameStart: Int { ends.last ?? key.count }

  /// The end offset of the first value, from index field `part` on, that may be truncated; nil if there is none. Entries
  /// that are equal up to this offset may not be in the query's order.
  func truncatedValueEnd(from part: Int) -> Int? {
    for position in ends.indices where position >= part {
      if ends[position] - (position > 0 ? ends[position - 1] : start) >= IndexValue.truncationLength {
        return ends[position]
      }
    }
    return nil
  }
}
