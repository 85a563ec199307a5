// The automatic indexes of one document: which entries its contents give.
//
// Every field, and every field of a map inside, has an entry with its value, read forwards for ascending and
// backwards for descending order; an array has one more for each distinct element. Vectors have their own entry,
// elements of arrays none of their own below them.
//
// Invariant: entries are sorted and distinct, so that what a write changes is one merge of two lists.

import FirestoreModel
import OrderedStore

/// Builds the index entries of documents.
enum IndexEntries {
  /// The keys of all entries of a document, ascending.
  /// - Throws: INVALID_ARGUMENT above the limits on number and size of entries.
  static func keys(of fields: MapValue, at path: ResourcePath) throws(FirestoreError) -> [Key] {
    var builder = Builder(path)
    try builder.add(fields, at: nil)
    builder.keys.sort { $0.lexicographicallyPrecedes($1) }
    return builder.keys
  }

  private struct Builder {
    var keys: [Key] = []
    /// Entries as the product counts them: ascending and descending, and twice for an element.
    private var count = 0
    private var bytes = 0
    private let prefix: Key
    private let id: [UInt8]

    init(_ path: ResourcePath) {
      prefix = KeyLayout.indexes(of: ResourcePath(Array(path.segments.dropLast())))
      id = KeyLayout.segment(path.segments.last ?? "")
    }

    mutating func add(_ fields: MapValue, at path: FieldPath?) throws(FirestoreError) {
      for entry in fields.entries {
        let field = path?.appending(entry.key) ?? FieldPath(field: entry.key)
        try add(entry.value, kind: .value, at: field)
        switch entry.value {
        case .map(let map): try add(map, at: field)
        case .array(let elements): try add(elements, at: field)
        default: break
        }
      }
    }

    /// One entry for each distinct element.
    private mutating func add(_ elements: [Value], at field: FieldPath) throws(FirestoreError) {
      var seen: Set<[UInt8]> = []
      for element in elements {
        let bytes = IndexValue.encode(element)
        if seen.insert(bytes).inserted { try add(encoded: bytes, kind: .element, at: field) }
      }
    }

    private mutating func add(
      _ value: Value, kind: KeyLayout.EntryKind, at field: FieldPath
    ) throws(FirestoreError) {
      try add(encoded: IndexValue.encode(value), kind: kind, at: field)
    }

    private mutating func add(
      encoded value: [UInt8], kind: KeyLayout.EntryKind, at field: FieldPath
    ) throws(FirestoreError) {
      var encoder = IndexKeyEncoder(prefix: prefix)
      encoder.append(field)
      encoder.append(raw: [kind.rawValue])
      encoder.append(raw: value)
      encoder.append(raw: id)
      keys.append(encoder.bytes)
      count += 2
      bytes += encoder.bytes.count
      if count > EngineLimits.indexEntries {
        throw .invalidArgument(
          "INDEX_ENTRIES_COUNT_LIMIT_EXCEEDED: the document has more than \(EngineLimits.indexEntries) index "
            + "entries.")
      }
      if bytes > EngineLimits.indexEntriesBytes {
        throw .invalidArgument(
          "The document's index entries are larger than \(EngineLimits.indexEntriesBytes) bytes in all.")
      }
    }
  }

  /// What has to be removed and added to get from one document's entries to another's.
  static func difference(from before: [Key], to after: [Key]) -> (removed: [Key], added: [Key]) {
    var removed: [Key] = []
    var added: [Key] = []
    var i = 0
    var j = 0
    while i < before.count, j < after.count {
      if before[i] == after[j] {
        i += 1
        j += 1
      } else if before[i].lexicographicallyPrecedes(after[j]) {
        removed.append(before[i])
        i += 1
      } else {
        added.append(after[j])
        j += 1
      }
    }
    removed += before[i...]
    added += after[j...]
    return (removed, added)
  }
}
