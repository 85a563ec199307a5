// Which listeners does a commit touch? Found by lookups, never by asking all of them.
//
// Document targets are found by name. Query targets stand under the collection (or collection group, or nothing) they
// look in and, there, under what their matches have in common (`TargetIndexKey`); equal queries share one entry, whose
// match is evaluated once per change. What has no such key is evaluated for each change in its collection, and there is
// a limit on how many do.

import FirestoreModel
import OrderedStore

/// A stream's target, as the index knows it.
struct TargetReference {
  let stream: WatchStream
  /// The number of this registration, never reused within a hub.
  let registration: Int
}

/// What one commit means to one target of a stream.
struct WatchMatch: Sendable {
  var change: CommittedChange
  var registration: Int
  /// Whether the target held the document before and holds it after, by its condition alone (limits not counted).
  var before: Bool
  var after: Bool
  /// Whether the target named the document, be it as what it listens to or as what its permission depends on.
  var isNamed: Bool
}

/// The index of all targets of a database. Touched under the hub's lock only.
struct TargetIndex {
  /// The most distinct queries of one collection that have no key.
  var maximumUnindexedQueries = EngineLimits.maximumUnindexedQueries
  /// All subscribers of one distinct query.
  final class Entry {
    let query: PreparedQuery
    var subscribers: [Int: WatchStream] = [:]
    /// Where the entry stands in indexes of ranges.
    fileprivate var ranges: [(field: FieldPath, id: UInt64, start: Key)] = []

    init(_ query: PreparedQuery) { self.query = query }
  }

  /// Distinct queries, found and let go without looking at the others.
  typealias Entries = [ObjectIdentifier: Entry]

  /// The queries that look in one key.
  final class Bucket {
    /// By a value: field, then the value's encoding; and by an element of an array.
    var byValue: [FieldPath: [[UInt8]: Entries]] = [:]
    var byElement: [FieldPath: [[UInt8]: Entries]] = [:]
    /// By a range of values.
    var byRange: [FieldPath: IntervalTree<Entry>] = [:]
    /// Those without a key.
    var unindexed = Entries()
    var entries: [QueryKey: Entry] = [:]
  }

  /// A query as it was asked, which tells equal ones; it refers to what its entry has anyway.
  struct QueryKey: Hashable {
    let prepared: PreparedQuery

    init(_ prepared: PreparedQuery) { self.prepared = prepared }

    static func == (a: QueryKey, b: QueryKey) -> Bool { a.prepared.query == b.prepared.query }

    func hash(into hasher: inout Hasher) { hasher.combine(prepared.query) }
  }

  /// Targets by the documents they listen to, and by those that their permission depends on.
  private var documents: [ResourcePath: [Int: WatchStream]] = [:]
  private var dependencies: [ResourcePath: [Int: WatchStream]] = [:]
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
    dependencies[path, default: [:]][target.registration] = target.stream
  }

  mutating func removeDependency(_ path: ResourcePath, _ registration: Int) {
    dependencies[path]?[registration] = nil
    if dependencies[path]?.isEmpty == true { dependencies[path] = nil }
  }

  /// Adds a query's target; false if too many queries are evaluated for each change where it looks.
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

  /// Everything that a change means to anyone. Returns how many queries were evaluated for it.
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
    // What a permission depends on is not for the target to see.
    for (registration, stream) in dependencies[path] ?? [:] {
      found(
        stream,
        WatchMatch(change: change, registration: registration, before: false, after: false, isNamed: true))
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
  /// Puts an entry into its keys.
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

  /// Takes an entry out of its keys.
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

  /// The entries in whose keys a document stands; some of them more than once.
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
