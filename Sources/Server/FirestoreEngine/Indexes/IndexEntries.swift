// The automatic indexes of one document: which entries its contents give.
//
// Every field, and every field of a map inside, has an entry with its value, read forwards for ascending and
// backwards for descending order; an array has one more for each distinct element. Vectors have their own entry,
// elements of arrays none of their own below them. Exempted fields have none.
//
// Invariant: entries are sorted and distinct, so that what a write changes is one merge of two lists.

import FirestoreModel
import OrderedStore

/// Builds the index entries of documents.
enum IndexEntries {
  /// The keys of all entries of a document, ascending.
  /// - Parameters:
  ///   - rules: which fields have entries; nil for all.
  ///   - limits: how many and how large they may be; nil for a document that is stored already.
  ///   - room: how many bytes the commit has for them; nil if it is none that asks.
  /// - Throws: INVALID_ARGUMENT above the limits on number and size of entries, and without room.
  static func keys(
    of fields: MapValue, at path: ResourcePath, rules: FieldRules? = nil, limits: EngineLimits? = .standard,
    budget: CommitCostBudget.EntryBudget? = nil
  ) throws(FirestoreError) -> [Key] {
    var builder = Builder(path, fields: fields.count, limits, budget)
    try builder.add(fields, below: builder.prefix, rules)
    builder.keys.sort { compareKeys($0, $1) < 0 }
    return builder.keys
  }

  private struct Builder {
    var keys: [Key] = []
    /// Entries as the product counts them: ascending and descending, and twice for an element.
    private var count = 0
    private var bytes = 0
    /// What every entry counts, by the published formula, beside its field and its value.
    private let entryBytes: Int
    private let path: ResourcePath
    /// The names of the maps around what is being added, and of the field.
    private var fieldNames: [String] = []
    private var namesBytes = 0
    /// What every entry begins with.
    let prefix: Key
    private let id: [UInt8]
    private let limits: EngineLimits?
    private let budget: CommitCostBudget.EntryBudget?

    init(_ path: ResourcePath, fields: Int, _ limits: EngineLimits?, _ budget: CommitCostBudget.EntryBudget?)
    {
      self.limits = limits
      self.budget = budget
      prefix = FirestoreKeyLayout.indexes(of: ResourcePath(Array(path.segments.dropLast())))
      id = FirestoreKeyLayout.segment(path.segments.last ?? "")
      self.path = path
      let parent = ResourcePath(Array(path.segments.dropLast(2)))
      entryBytes = DocumentSize.of(path: path) + (parent.isEmpty ? 0 : DocumentSize.of(path: parent)) + 32
      keys.reserveCapacity(fields)
    }

    /// Adds the entries of a map's fields; their keys begin with `names`, which the names of the maps around end.
    mutating func add(
      _ fields: MapValue, below names: Key, _ rules: FieldRules?
    ) throws(FirestoreError) {
      for entry in fields.entries {
        var key = IndexKeyEncoder(prefix: names, room: entry.key.utf8.count + 24 + id.count)
        key.append(fieldName: entry.key)
        fieldNames.append(entry.key)
        namesBytes += entry.key.utf8.count + 1
        defer { namesBytes -= (fieldNames.popLast()?.utf8.count ?? 0) + 1 }
        let rules = rules?.child(entry.key)
        let hasValue = rules?.value != false
        if hasValue { try checkSize(entry.value) }
        switch entry.value {
        case .map(let map):
          let inner = key.bytes
          if hasValue { try finish(key, .value, IndexValue.encode(entry.value)) }
          try add(map, below: inner, rules)
        case .array(let elements):
          let field = key
          if hasValue { try finish(key, .value, IndexValue.encode(entry.value)) }
          if rules?.elements != false { try add(elements, at: field) }
        default:
          guard hasValue else { break }
          key.endFieldPath()
          key.append(raw: FirestoreKeyLayout.EntryKind.value.rawValue)
          key.append(entry.value)
          try finish(key)
        }
      }
    }

    /// Refuses an entry of the current field that is too large.
    private func checkSize(_ value: Value) throws(FirestoreError) {
      let size = entryBytes + namesBytes
      guard let limits, size + Limits.indexedValueBytes > limits.maximumIndexEntryBytes else { return }
      let whole = size + min(DocumentSize.of(value: value), Limits.indexedValueBytes)
      guard whole > limits.maximumIndexEntryBytes else { return }
      throw .invalidArgument(
        "The index entry of property \"\(fieldNames.joined(separator: ".").prefix(200))\" of document "
          + "\"\(path.description.prefix(200))\" has \(whole) bytes, more than the maximum of "
          + "\(limits.maximumIndexEntryBytes) bytes for the names and the value of one entry.")
    }

    /// One entry for each distinct element.
    private mutating func add(_ elements: [Value], at field: IndexKeyEncoder) throws(FirestoreError) {
      var seen: Set<[UInt8]> = []
      for element in elements {
        try checkSize(element)
        let bytes = IndexValue.encode(element)
        if seen.insert(bytes).inserted { try finish(field, .element, bytes) }
      }
    }

    /// Adds an entry from the names of its field and its encoded value.
    private mutating func finish(
      _ field: IndexKeyEncoder, _ kind: FirestoreKeyLayout.EntryKind, _ value: [UInt8]
    ) throws(FirestoreError) {
      var key = IndexKeyEncoder(prefix: field.bytes, room: value.count + id.count + 4)
      key.endFieldPath()
      key.append(raw: kind.rawValue)
      key.append(raw: value)
      try finish(key)
    }

    /// Adds an entry that lacks its document's id.
    private mutating func finish(_ unfinished: consuming IndexKeyEncoder) throws(FirestoreError) {
      var encoder = unfinished
      encoder.append(raw: id)
      keys.append(encoder.bytes)
      count += 2
      bytes += encoder.bytes.count
      if let limits, count > limits.maximumIndexEntries {
        throw .indexEntryLimit(limits.maximumIndexEntries)
      }
      if let limits, bytes > limits.maximumIndexEntriesBytes {
        throw .invalidArgument(
          "The document's index entries are larger than \(limits.maximumIndexEntriesBytes) bytes in all.")
      }
      try budget?.check(bytes)
    }
  }

  /// What has to be removed and added to get from one document's entries to another's.
  static func difference(from before: [Key], to after: [Key]) -> (removed: [Key], added: [Key]) {
    if before.isEmpty { return ([], after) }
    var removed: [Key] = []
    var added: [Key] = []
    var i = 0
    var j = 0
    while i < before.count, j < after.count {
      let order = compareKeys(before[i], after[j])
      if order == 0 {
        i += 1
        j += 1
      } else if order < 0 {
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
