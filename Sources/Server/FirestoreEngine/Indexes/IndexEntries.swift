// Builds the automatic index entries of one document.
//
// Every field, and every field of a nested map, has an entry with its value. Scanned forwards or backwards,
// the entries serve ascending and descending order. An array has one more entry for each distinct element. A
// vector has a single entry. Fields of maps inside arrays have no entries, and neither do fields that the
// configuration exempts.
//
// Invariant: entries are sorted and distinct. So the difference between the entries of two document versions
// is found by merging two lists.

import FirestoreModel
import OrderedStore

/// Builds and compares index entries.
enum IndexEntries {
  /// The keys of all entries of a document, ascending.
  /// - Parameters:
  ///   - rules: which fields have entries; nil for all.
  ///   - limits: limits on the number and size of entries; nil for a document that is stored already.
  ///   - budget: the commit's budget for these entries; nil outside of commits.
  /// - Throws: INVALID_ARGUMENT above the limits, or if the budget is exhausted.
  static func keys(
    of fields: MapValue, at path: ResourcePath, rules: FieldRules? = nil, limits: EngineLimits? = .standard,
    budget: CommitCostBudget.EntryBudget? = nil
  ) throws(FirestoreError) -> [Key] {
    var builder = Builder(path, fields: fields.count, limits, budget)
    try builder.add(fields, below: builder.prefix, rules)
    builder.keys.sort { compareKeys($0, $1) < 0 }
    assert(areAscending(builder.keys), "invariant: a document's index entries are distinct")
    assert(
      builder.keys.allSatisfy { FirestoreKeyLayout.documentPath(ofIndexEntry: $0) == path },
      "invariant: an index entry decodes to its document")
    return builder.keys
  }

  private struct Builder {
    var keys: [Key] = []
    /// The number of entries as Firebase counts them: two for each value (ascending and descending), and two
    /// for each array element.
    private var count = 0
    private var bytes = 0
    /// The part of an entry's size, by Firebase's published formula, that does not depend on field and value.
    private let entryBytes: Int
    private let path: ResourcePath
    /// The names of the enclosing maps and of the current field.
    private var fieldNames: [String] = []
    private var namesBytes = 0
    /// The common prefix of all entries.
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

    /// Adds the entries of a map's fields. `names` is their key prefix, up to the names of the enclosing maps.
    mutating func add(
      _ fields: MapValue, below names: Key, _ rules: FieldRules?
    ) throws(FirestoreError) {
      for entry in fields.entries {
        var key = IndexKeyEncoder(
          prefix: names, room: entry.key.utf8.count + Self.room(for: entry.value) + id.count)
        key.append(fieldName: entry.key)
        fieldNames.append(entry.key)
        namesBytes += entry.key.utf8.count + 1
        defer { namesBytes -= (fieldNames.popLast()?.utf8.count ?? 0) + 1 }
        let rules = rules?.child(entry.key)
        let hasValue = rules?.indexesValue != false
        if hasValue { try checkSize(entry.value) }
        switch entry.value {
        case .map(let map):
          let inner = key.bytes
          if hasValue { try addEntry(key, .value, IndexValue.encode(entry.value)) }
          try add(map, below: inner, rules)
        case .array(let elements):
          let field = key
          if hasValue { try addEntry(key, .value, IndexValue.encode(entry.value)) }
          if rules?.indexesElements != false { try add(elements, at: field) }
        default:
          guard hasValue else { break }
          key.endFieldPath()
          key.append(raw: FirestoreKeyLayout.EntryKind.value.rawValue)
          key.append(entry.value)
          try addEntry(key)
        }
      }
    }

    /// The capacity for a value and the bytes around it, so that the keys of most fields are allocated once.
    private static func room(for value: Value) -> Int {
      guard case .string(let text) = value else { return 24 }
      return 8 + min(text.utf8.count, Limits.indexedValueBytes)
    }

    /// Rejects an entry of the current field that is too large.
    private func checkSize(_ value: Value) throws(FirestoreError) {
      let size = entryBytes + namesBytes
      guard let limits, size + Limits.indexedValueBytes > limits.maximumIndexEntryBytes else { return }
      let bytes = size + min(DocumentSize.of(value: value), Limits.indexedValueBytes)
      guard bytes > limits.maximumIndexEntryBytes else { return }
      throw .invalidArgument(
        "The index entry of property \"\(fieldNames.joined(separator: ".").prefix(200))\" of document "
          + "\"\(path.description.prefix(200))\" has \(bytes) bytes, more than the maximum of "
          + "\(limits.maximumIndexEntryBytes) bytes for the names and the value of one entry.")
    }

    /// Adds an entry for each distinct element.
    private mutating func add(_ elements: [Value], at field: IndexKeyEncoder) throws(FirestoreError) {
      var seen: Set<[UInt8]> = []
      for element in elements {
        try checkSize(element)
        let bytes = IndexValue.encode(element)
        if seen.insert(bytes).inserted { try addEntry(field, .element, bytes) }
      }
    }

    /// Adds an entry from the encoded field names and value.
    private mutating func addEntry(
      _ field: IndexKeyEncoder, _ kind: FirestoreKeyLayout.EntryKind, _ value: [UInt8]
    ) throws(FirestoreError) {
      var key = IndexKeyEncoder(prefix: field.bytes, room: value.count + id.count + 4)
      key.endFieldPath()
      key.append(raw: kind.rawValue)
      key.append(raw: value)
      try addEntry(key)
    }

    /// Appends the document's id to an entry and adds it.
    private mutating func addEntry(_ unfinished: consuming IndexKeyEncoder) throws(FirestoreError) {
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

  /// The entries to remove and to add when a document's entries change from `before` to `after`. Both lists
  /// must be sorted.
  static func difference(from before: [Key], to after: [Key]) -> (removed: [Key], added: [Key]) {
    assert(areAscending(before) && areAscending(after), "invariant: index entries are sorted")
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

  private static func areAscending(_ keys: [Key]) -> Bool {
    zip(keys, keys.dropFirst()).allSatisfy { compareKeys($0, $1) < 0 }
  }
}
