// Which listeners does a commit touch? Found by lookups, never by asking all of them.
//
// Document targets are found by name. Query targets stand under the collection (or collection group, or nothing) they
// look in and, there, under one of their equality conditions if they have one; equal queries share one entry, whose
// match is evaluated once per change. What stands under no equality is evaluated for each change in its collection.

import FirestoreModel
import OrderedStore

/// A stream's target, as the index knows it.
struct TargetReference {
  let stream: WatchStream
  /// The number of this registration, never reused within a hub.
  let registration: Int
}

/// What one commit means to one target of a stream.
struct WatchHit: Sendable {
  var change: DocumentChange
  var registration: Int
  /// Whether the target held the document before and holds it after, by its condition alone (limits not counted).
  var before: Bool
  var after: Bool
  /// Whether the target named the document, be it as what it listens to or as what its permission depends on.
  var isNamed: Bool
}

/// The index of all targets of a database. Touched under the hub's lock only.
struct TargetIndex {
  /// All subscribers of one distinct query.
  final class Entry {
    let query: PreparedQuery
    var subscribers: [Int: WatchStream] = [:]

    init(_ query: PreparedQuery) { self.query = query }
  }

  /// Distinct queries, found and let go without looking at the others.
  typealias Entries = [ObjectIdentifier: Entry]

  /// The queries that look in one place.
  final class Bucket {
    /// By one equality condition: field, then the value's encoding.
    var byValue: [FieldPath: [[UInt8]: Entries]] = [:]
    /// Those without one.
    var others = Entries()
    var entries: [Asked: Entry] = [:]
  }

  /// A query as it was asked, which tells equal ones; it refers to what its entry has anyway.
  struct Asked: Hashable {
    let prepared: PreparedQuery

    init(_ prepared: PreparedQuery) { self.prepared = prepared }

    static func == (a: Asked, b: Asked) -> Bool { a.prepared.query == b.prepared.query }

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

  mutating func add(_ query: PreparedQuery, _ target: TargetReference) {
    let bucket = bucket(of: query) ?? makeBucket(of: query)
    if let entry = bucket.entries[Asked(query)] {
      entry.subscribers[target.registration] = target.stream
      return
    }
    let entry = Entry(query)
    entry.subscribers[target.registration] = target.stream
    bucket.entries[Asked(query)] = entry
    if let (field, value) = query.equality {
      bucket.byValue[field, default: [:]][value, default: [:]][ObjectIdentifier(entry)] = entry
    } else {
      bucket.others[ObjectIdentifier(entry)] = entry
    }
  }

  mutating func remove(_ query: PreparedQuery, _ registration: Int) {
    guard let bucket = bucket(of: query), let entry = bucket.entries[Asked(query)] else { return }
    entry.subscribers[registration] = nil
    guard entry.subscribers.isEmpty else { return }
    bucket.entries[Asked(query)] = nil
    if let (field, value) = query.equality {
      bucket.byValue[field]?[value]?[ObjectIdentifier(entry)] = nil
      if bucket.byValue[field]?[value]?.isEmpty == true { bucket.byValue[field]?[value] = nil }
      if bucket.byValue[field]?.isEmpty == true { bucket.byValue[field] = nil }
    } else {
      bucket.others[ObjectIdentifier(entry)] = nil
    }
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

  /// Everything that a change means to anyone.
  func match(_ change: DocumentChange, _ found: (WatchStream, WatchHit) -> Void) {
    let path = change.name.path
    for (registration, stream) in documents[path] ?? [:] {
      found(
        stream,
        WatchHit(
          change: change, registration: registration, before: change.before != nil,
          after: change.after != nil, isNamed: true))
    }
    // What a permission depends on is not for the target to see.
    for (registration, stream) in dependencies[path] ?? [:] {
      found(
        stream,
        WatchHit(change: change, registration: registration, before: false, after: false, isNamed: true))
    }
    guard let collection = path.parent else { return }
    if let bucket = collections[collection] { match(change, bucket, found) }
    if let id = collection.id, let bucket = groups[ResourcePath([id])] { match(change, bucket, found) }
    if !everywhere.entries.isEmpty { match(change, everywhere, found) }
  }

  private func match(
    _ change: DocumentChange, _ bucket: Bucket, _ found: (WatchStream, WatchHit) -> Void
  ) {
    let before = try? change.before?.fields()
    let after = try? change.after?.fields()
    for (field, entries) in bucket.byValue {
      let old = before?.value(at: field).map(IndexKeyEncoder.encode)
      let new = after?.value(at: field).map(IndexKeyEncoder.encode)
      if let old { report(change, before, after, entries[old], found) }
      if let new, new != old { report(change, before, after, entries[new], found) }
    }
    report(change, before, after, bucket.others, found)
  }

  private func report(
    _ change: DocumentChange, _ before: MapValue?, _ after: MapValue?, _ entries: Entries?,
    _ found: (WatchStream, WatchHit) -> Void
  ) {
    for entry in (entries ?? [:]).values {
      let wasIn = before.map { entry.query.matches(change.name, $0) } ?? false
      let isIn = after.map { entry.query.matches(change.name, $0) } ?? false
      guard wasIn || isIn else { continue }
      for (registration, stream) in entry.subscribers {
        found(
          stream,
          WatchHit(
            change: change, registration: registration, before: wasIn, after: isIn, isNamed: false))
      }
    }
  }
}
