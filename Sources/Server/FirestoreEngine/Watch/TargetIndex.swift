// Indexes the targets of all Listen streams, so that a commit finds the affected targets without checking
// each one.
//
// Targets of named documents are found by name. Query targets are found by the collection or collection group
// that they select, and within it by conditions that a matching document satisfies (their keys, see
// `TargetIndexKey`). Equal queries share one entry, which is evaluated once per change. Queries without a key
// are evaluated for every change in their collection, so their number is limited.

import FirestoreModel
import OrderedStore

/// A stream's target in the index.
struct TargetReference {
  let stream: WatchStream
  /// The number that the database's `WatchHub` gave the target. The hub never gives it to another target.
  let registration: Int
}

/// The effect of one commit on one target of a stream.
struct WatchMatch: Sendable {
  var change: CommittedChange
  /// The target; 0 if only the permission of targets depends on the document.
  var registration: Int
  /// Whether the target matched the document before the commit and matches it after. Limit and offset are
  /// ignored.
  var before: Bool
  var after: Bool
  /// Whether the target selects the document by name, or its permission depends on the document.
  var isNamed: Bool
}

/// The index of all targets of a database. Accessed only under the lock of the database's `WatchHub`.
struct TargetIndex {
  /// Maximum number of distinct queries without a key in one collection.
  var maximumUnindexedQueries = EngineLimits.maximumUnindexedQueries
  /// One distinct query and its subscribers.
  final class Entry {
    let query: PreparedQuery
    var subscribers: [Int: WatchStream] = [:]
    /// For each key of the query that is a range, the entry's position in the interval tree of the field.
    fileprivate var ranges: [(field: FieldPath, id: UInt64, start: Key)] = []

    init(_ query: PreparedQuery) { self.query = query }
  }

  /// Distinct queries by object identity, so that a query is removed without scanning the others.
  typealias Entries = [ObjectIdentifier: Entry]

  /// The queries of one collection, one collection group, or all collections.
  final class Bucket {
    /// Queries by field and encoded value, and by field and encoded array element.
    var byValue: [FieldPath: [[UInt8]: Entries]] = [:]
    var byElement: [FieldPath: [[UInt8]: Entries]] = [:]
    /// Queries by a range of a field's values.
    var byRange: [FieldPath: IntervalTree<Entry>] = [:]
    /// Queries without a key.
    var unindexed = Entries()
    var entries: [QueryKey: Entry] = [:]
  }

  /// Finds equal queries: two keys are equal if the clients requested the same query. The key shares the
  /// entry's storage.
  struct QueryKey: Hashable {
    let prepared: PreparedQuery

    init(_ prepared: PreparedQuery) { self.prepared = prepared }

    static func == (a: QueryKey, b: QueryKey) -> Bool { a.prepared.query == b.prepared.query }

    func hash(into hasher: inout Hasher) { hasher.combine(prepared.query) }
  }

  /// The targets whose permission depends on one document. A change of the document is reported to each of their streams once.
  private struct Dependents {
    var streams: [Int: WatchStream] = [:]
    /// The streams with the number of their targets.
    var targetCounts: [ObjectIdentifier: (stream: WatchStream, count: Int)] = [:]

    mutating func add(_ target: TargetReference) {
      guard streams.updateValue(target.stream, forKey: target.registration) == nil else { return }
      targetCounts[ObjectIdentifier(target.stream), default: (target.stream, 0)].count += 1
    }

    mutating func remove(_ registration: Int) {
      guard let stream = streams.removeValue(forKey: registration) else { return }
      let id = ObjectIdentifier(stream)
      targetCounts[id]?.count -= 1
      if targetCounts[id]?.count == 0 { targetCounts[id] = nil }
    }
  }

  /// Targets of named documents, by the documents that they select.
  private var documents: [ResourcePath: [Int: WatchStream]] = [:]
  /// Targets by the documents that their permission depends on.
  private var dependencies: [ResourcePath: Dependents] = [:]
  private var collections: [ResourcePath: Bucket] = [:]
  private var groups: [ResourcePath: Bucket] = [:]
  private var everywhere = Bucket()

  // MARK: Registering

  mutating func add(_ path: ResourcePath, _ target: TargetReference) {
    documents[path, default: [:]][target.registration] = target.stream
  }

  mutating func remove(_ path: ResourcePath, _ registration: Int) {
    documents[path]?[registration] = nil
    if documents[path]?.isEmpty == true { documents[path] = nil }
  }

  mutating func addDependency(_ path: ResourcePath, _ target: TargetReference) {
    dependencies[path, default: Dependents()].add(target)
  }

  mutating func removeDependency(_ path: ResourcePath, _ registration: Int) {
    dependencies[path]?.remove(registration)
    if dependencies[path]?.streams.isEmpty == true { dependencies[path] = nil }
  }

  /// Adds a query target. Returns false if too many queries without a key select the same collection.
  mutating func add(_ query: PreparedQuery, _ target: TargetReference) -> Bool {
    let bucket = bucket(of: query) ?? makeBucket(of: query)
    if let entry = bucket.entries[QueryKey(query)] {
      entry.subscribers[target.registration] = target.stream
      return true
    }
    let entry = Entry(query)
    entry.subscribers[target.registration] = target.stream
    let keys = TargetIndexKey.keys(of: query)
    if keys == nil, bucket.unindexed.count >= maximumUnindexedQueries { return false }
    bucket.entries[QueryKey(query)] = entry
    bucket.insert(entry, keys)
    return true
  }

  mutating func remove(_ query: PreparedQuery, _ registration: Int) {
    guard let bucket = bucket(of: query), let entry = bucket.entries[QueryKey(query)] else { return }
    entry.subscribers[registration] = nil
    guard entry.subscribers.isEmpty else { return }
    bucket.entries[QueryKey(query)] = nil
    bucket.remove(entry, TargetIndexKey.keys(of: query))
    if bucket.entries.isEmpty { removeBucket(of: query) }
  }

  private func bucket(of query: PreparedQuery) -> Bucket? {
    switch query.scope {
    case .collection(let path): collections[path]
    case .group(let id): groups[ResourcePath([id])]
    case .everywhere: everywhere
    }
  }

  private mutating func makeBucket(of query: PreparedQuery) -> Bucket {
    let bucket = Bucket()
    switch query.scope {
    case .collection(let path): collections[path] = bucket
    case .group(let id): groups[ResourcePath([id])] = bucket
    case .everywhere: everywhere = bucket
    }
    return bucket
  }

  private mutating func removeBucket(of query: PreparedQuery) {
    switch query.scope {
    case .collection(let path): collections[path] = nil
    case .group(let id): groups[ResourcePath([id])] = nil
    case .everywhere: break
    }
  }

  // MARK: Matching

  /// Reports the effects of a change on all targets. Returns the number of evaluated queries.
  @discardableResult
  func match(_ change: CommittedChange, _ found: (WatchStream, WatchMatch) -> Void) -> Int {
    let path = change.name.path
    for (registration, stream) in documents[path] ?? [:] {
      found(
        stream,
        WatchMatch(
          change: change, registration: registration, before: change.before != nil,
          after: change.after != nil, isNamed: true))
    }
    // The permission depends on these documents, but the targets do not return them: `before` and `after` are false.
    // The stream finds its targets by the document's name, so one match without a target is enough.
    if let dependents = dependencies[path] {
      for (stream, _) in dependents.targetCounts.values {
        found(
          stream, WatchMatch(change: change, registration: 0, before: false, after: false, isNamed: true))
      }
    }
    guard let collection = path.parent else { return 0 }
    var evaluated = 0
    if let bucket = collections[collection] { evaluated += match(change, bucket, found) }
    if let id = collection.id, let bucket = groups[ResourcePath([id])] {
      evaluated += match(change, bucket, found)
    }
    if !everywhere.entries.isEmpty { evaluated += match(change, everywhere, found) }
    return evaluated
  }

  private func match(
    _ change: CommittedChange, _ bucket: Bucket, _ found: (WatchStream, WatchMatch) -> Void
  ) -> Int {
    let before = try? change.before?.fields()
    let after = try? change.after?.fields()
    var indexed = Entries()
    for fields in [before, after] {
      if let fields { bucket.find(change.name.path, fields) { indexed[ObjectIdentifier($0)] = $0 } }
    }
    for entries in [indexed, bucket.unindexed] { report(change, before, after, entries, found) }
    return indexed.count + bucket.unindexed.count
  }

  private func report(
    _ change: CommittedChange, _ before: MapValue?, _ after: MapValue?, _ entries: Entries,
    _ found: (WatchStream, WatchMatch) -> Void
  ) {
    for entry in entries.values {
      let wasIn = before.map { entry.query.matches(change.name, $0) } ?? false
      let isIn = after.map { entry.query.matches(change.name, $0) } ?? false
      guard wasIn || isIn else { continue }
      for (registration, stream) in entry.subscribers {
        found(
          stream,
          WatchMatch(
            change: change, registration: registration, before: wasIn, after: isIn, isNamed: false))
      }
    }
  }
}

extension TargetIndex.Bucket {
  /// Adds an entry under its keys.
  fileprivate func insert(_ entry: TargetIndex.Entry, _ keys: Set<TargetIndexKey>?) {
    let id = ObjectIdentifier(entry)
    guard let keys else {
      unindexed[id] = entry
      return
    }
    for key in keys {
      switch key {
      case .value(let field, let value): byValue[field, default: [:]][value, default: [:]][id] = entry
      case .element(let field, let value): byElement[field, default: [:]][value, default: [:]][id] = entry
      case .range(let field, let range):
        let number = byRange[field, default: IntervalTree()].insert(range, entry)
        entry.ranges.append((field, number, range.start))
      }
    }
  }

  /// Removes an entry from its keys.
  fileprivate func remove(_ entry: TargetIndex.Entry, _ keys: Set<TargetIndexKey>?) {
    let id = ObjectIdentifier(entry)
    func remove(
      _ field: FieldPath, _ value: [UInt8], from index: inout [FieldPath: [[UInt8]: TargetIndex.Entries]]
    ) {
      index[field]?[value]?[id] = nil
      if index[field]?[value]?.isEmpty == true { index[field]?[value] = nil }
      if index[field]?.isEmpty == true { index[field] = nil }
    }
    guard let keys else {
      unindexed[id] = nil
      return
    }
    for key in keys {
      switch key {
      case .value(let field, let value): remove(field, value, from: &byValue)
      case .element(let field, let value): remove(field, value, from: &byElement)
      case .range: break
      }
    }
    for (field, number, start) in entry.ranges {
      byRange[field]?.remove(number, startingAt: start)
      if byRange[field]?.isEmpty == true { byRange[field] = nil }
    }
    entry.ranges = []
  }

  /// Visits the entries whose key the document satisfies. An entry may be visited more than once.
  fileprivate func find(_ path: ResourcePath, _ fields: MapValue, _ found: (TargetIndex.Entry) -> Void) {
    func key(_ field: FieldPath) -> [UInt8]? {
      field.isDocumentID ? TargetIndexKey.name(path) : fields.value(at: field).map(IndexValue.encode)
    }
    for (field, entries) in byValue {
      guard let key = key(field) else { continue }
      for entry in (entries[key] ?? [:]).values { found(entry) }
    }
    for (field, entries) in byElement {
      guard case .array(let elements)? = fields.value(at: field) else { continue }
      for element in elements {
        for entry in (entries[IndexValue.encode(element)] ?? [:]).values { found(entry) }
      }
    }
    for (field, ranges) in byRange {
      guard let key = key(field) else { continue }
      ranges.visit(containing: key) { entry in
        found(entry)
        return true
      }
    }
  }
}
