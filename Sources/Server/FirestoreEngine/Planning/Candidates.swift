// The documents that a plan's source gives, one after another, read a batch ahead.
//
// Invariant: what was read is noted for the transaction's validation; entries whose document does not exist (there
// are none in one snapshot) are passed over.

import FirestoreModel
import OrderedStore

/// A document that may be a result.
struct Candidate {
  var document: StoredDocument
  /// The encoding of the first order field, for sources in its order.
  var value: ArraySlice<UInt8> = []
}

/// Reads a plan's source.
struct Candidates {
  private let plan: QueryPlan
  private let database: DatabaseName
  private let view: any ReadView
  private var buffer: [Candidate] = []
  private var position = 0
  private var batch = 16
  /// Where ranges are read on; nil at the end.
  private var rest: KeyRange?
  private var names: ArraySlice<ResourcePath> = []
  private var intersections: [Intersection] = []
  private var seen: Set<[UInt8]> = []
  private var walked: ResourcePath?
  private var isWalkDone = false
  /// The document rows that were looked at.
  private(set) var keys: [Key] = []

  /// - Parameter after: the last result delivered, in the plan's order; reading goes on behind it.
  init(_ plan: QueryPlan, _ database: DatabaseName, _ view: any ReadView, after last: StoredDocument?) {
    self.plan = plan
    self.database = database
    self.view = view
    switch plan.source {
    case .nothing: break
    case .names(let paths): names = paths[...]
    case .entries(_, let prefixes, var ids):
      if let last, plan.arrangement == .exact {
        let id = KeyLayout.segment(last.name.id)
        ids = plan.reverse ? KeyRange(start: ids.start, end: id) : KeyRange(start: id.successor, end: ids.end)
      }
      intersections = prefixes.map { Intersection(view, prefixes: $0, ids: ids, reverse: plan.reverse) }
    case .index(_, _, let range): rest = range
    case .rows(let range):
      rest = range
      if let last {
        rest = range.remainder(after: KeyLayout.document(last.name.path), reverse: plan.reverse)
      }
    case .group(let range):
      rest = range
      if let last { rest = range.remainder(after: KeyLayout.group(last.name.path), reverse: plan.reverse) }
    case .subtree: walked = last?.name.path
    }
  }

  /// Goes on at the entries whose first field has the value that a document has.
  mutating func resume(atValueOf last: StoredDocument, _ field: FieldPath) throws {
    guard case .index(_, let prefix, let range) = plan.source, let value = try last.fields().value(at: field)
    else { return }
    let key = prefix + IndexValue.encode(value)
    rest =
      plan.reverse
      ? KeyRange(start: range.start, end: KeyRange.successor(ofPrefix: key))
      : KeyRange(start: key, end: range.end)
  }

  /// The part of the plan's range that has not been read; nil if there is none.
  var unread: KeyRange? { rest }

  /// The next candidate; nil at the end.
  mutating func next() throws -> Candidate? {
    while position >= buffer.count {
      buffer.removeAll(keepingCapacity: true)
      position = 0
      guard try fill() else { return nil }
    }
    defer { position += 1 }
    return buffer[position]
  }

  /// Reads the next batch; false at the end.
  private mutating func fill() throws -> Bool {
    defer { batch = min(batch * 2, 256) }
    switch plan.source {
    case .nothing: return false
    case .names:
      guard let path = names.popFirst() else { return false }
      try fetch(path)
      return true
    case .entries(let collection, _, _): return try fillFromEntries(collection)
    case .index(let collection, let prefix, _): return try fillFromIndex(collection, prefix)
    case .rows: return try fillFromRows()
    case .group: return try fillFromGroup()
    case .subtree(let parent): return try fillFromSubtree(parent)
    }
  }

  private mutating func fetch(_ path: ResourcePath, value: ArraySlice<UInt8> = []) throws {
    guard let name = DocumentName(database: database, path: path) else { return }
    try fetch(name, KeyLayout.document(path), value: value)
  }

  private mutating func fetch(_ name: DocumentName, _ key: Key, value: ArraySlice<UInt8> = []) throws {
    keys.append(key)
    guard let row = try view.get(key) else { return }
    buffer.append(Candidate(document: try DocumentRow.decode(row.value, name), value: value))
  }

  private mutating func fillFromEntries(_ collection: ResourcePath) throws -> Bool {
    let prefix = KeyLayout.collection(collection)
    var count = 0
    while count < batch {
      guard !intersections.isEmpty else { return count > 0 }
      guard let id = try intersections[0].next() else {
        intersections.removeFirst()
        continue
      }
      count += 1
      // Only with several alternatives can a document come twice.
      if intersections.count > 1 || !seen.isEmpty, !seen.insert(id).inserted { continue }
      var decoder = IndexKeyDecoder(id)
      guard let text = decoder.segment(),
        let name = DocumentName(database: database, path: collection.appending(text))
      else { continue }
      try fetch(name, prefix + id)
    }
    return true
  }

  private mutating func fillFromIndex(_ collection: ResourcePath, _ prefix: Key) throws -> Bool {
    let entries = try nextKeys()
    let rows = KeyLayout.collection(collection)
    for key in entries {
      guard let end = IndexValue.end(in: key, from: prefix.count) else { continue }
      var decoder = IndexKeyDecoder(key, from: end)
      guard let id = decoder.segment(),
        let name = DocumentName(database: database, path: collection.appending(id))
      else { continue }
      try fetch(name, rows + key[end...], value: key[prefix.count..<end])
    }
    return !entries.isEmpty
  }

  private mutating func fillFromGroup() throws -> Bool {
    let entries = try nextKeys()
    for key in entries {
      guard let path = KeyLayout.documentPath(ofGroupRow: key) else { continue }
      try fetch(path)
    }
    return !entries.isEmpty
  }

  private mutating func fillFromSubtree(_ parent: ResourcePath) throws -> Bool {
    guard !isWalkDone else { return false }
    var paths: [ResourcePath] = []
    let start = walked
    let limit = batch
    try SubtreeWalk(view: view, database: database).documents(below: parent, from: start) { path in
      if path == start { return true }
      paths.append(path)
      return paths.count < limit
    }
    isWalkDone = paths.count < limit
    walked = paths.last ?? start
    for path in paths { try fetch(path) }
    return !paths.isEmpty
  }

  /// The next keys of `rest`.
  private mutating func nextKeys() throws -> [Key] {
    guard let range = rest, !range.isEmpty else { return [] }
    var found: [Key] = []
    let limit = batch
    try view.scan(range, reverse: plan.reverse) { key, _, _ in
      found.append(Array(key))
      return found.count < limit
    }
    rest = nil
    if found.count == limit, let last = found.last {
      rest = range.remainder(after: last, reverse: plan.reverse)
    }
    return found
  }

  private mutating func fillFromRows() throws -> Bool {
    guard let range = rest, !range.isEmpty else { return false }
    var found: [Candidate] = []
    var last: Key = []
    var bytes = 0
    let limit = batch
    let database = database
    try view.scan(range, reverse: plan.reverse) { key, value, _ in
      last = Array(key)
      guard let path = KeyLayout.documentPath(ofRow: last),
        let name = DocumentName(database: database, path: path)
      else { return true }
      found.append(Candidate(document: try DocumentRow.decode(value, name)))
      bytes += value.count
      return found.count < limit && bytes < EngineLimits.pageBytes
    }
    let stopped = found.count >= limit || bytes >= EngineLimits.pageBytes
    rest = stopped ? range.remainder(after: last, reverse: plan.reverse) : nil
    buffer = found
    return !found.isEmpty
  }
}

extension KeyRange {
  /// Whether no key lies inside.
  var isEmpty: Bool { end.map { !start.lexicographicallyPrecedes($0) } ?? false }
}
