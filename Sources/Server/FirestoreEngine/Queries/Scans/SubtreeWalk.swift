// Everything below a parent in name order, and what exists only as a parent of something.
//
// Document rows are grouped by parent, so name order over a whole subtree is a merge: the documents of one level, and
// below each the documents under it. Both are found by seeks; what lies between is never read.

import FirestoreModel
import OrderedStore

/// Finds documents and collections below a parent by seeks.
struct SubtreeWalk {
  let view: any ReadView
  let database: DatabaseName

  /// The ids of collections under a parent that hold a document, existing or only implied, above `after`.
  ///
  /// Returns true from `visit` to go on.
  func collectionIDs(of parent: ResourcePath, after: String?, _ visit: (String) throws -> Bool) throws {
    var last = after
    while let next = try nextCollection(of: parent, after: last) {
      guard try visit(next) else { return }
      last = next
    }
  }

  private func nextCollection(of parent: ResourcePath, after last: String?) throws -> String? {
    // A collection has direct documents, or it has documents below documents that do not exist.
    let direct = try nextSegment(FirestoreKeyLayout.children(of: parent), after: last)
    let below = try nextSegment(FirestoreKeyLayout.subtree(of: parent), after: last)
    guard let direct else { return below }
    guard let below else { return direct }
    return ResourceID.compare(direct, below) == .descending ? below : direct
  }

  /// The least segment that follows a prefix in document rows, above `last`.
  private func nextSegment(_ prefix: Key, after last: String?) throws -> String? {
    let whole = KeyRange(prefix: prefix)
    // Segments begin with 02 or 03; 01 ends a path.
    var start = prefix + [FirestoreKeyLayout.leastSegment]
    if let last {
      guard let end = KeyRange.successor(ofPrefix: prefix + FirestoreKeyLayout.segment(last)) else {
        return nil
      }
      start = end
    }
    guard let key = try view.firstKey(in: KeyRange(start: start, end: whole.end)) else { return nil }
    var decoder = IndexKeyDecoder(key, from: prefix.count)
    return decoder.segment()
  }

  /// The ids of documents in a collection with something below them, existing or not, above `after`.
  func nextParent(in collection: ResourcePath, after last: String?) throws -> String? {
    try nextSegment(FirestoreKeyLayout.subtree(of: collection), after: last)
  }

  /// The least id above `last` of a document row in a collection.
  func nextDocument(in collection: ResourcePath, after last: String?) throws -> String? {
    try nextSegment(FirestoreKeyLayout.collection(collection), after: last)
  }

  /// Visits all documents below a parent in name order, from `start` on, at every depth; false from `visit` stops.
  func documents(
    below parent: ResourcePath, from start: ResourcePath?, _ visit: (ResourcePath) throws -> Bool
  ) throws {
    _ = try walk(parent, start, visit)
  }

  /// Visits the document at a path, if there is one, and all below it; of a collection's path, all in it and below.
  func documents(at path: ResourcePath, _ visit: (ResourcePath) throws -> Bool) throws {
    if !path.count.isMultiple(of: 2) {
      _ = try walkCollection(path, nil, visit)
    } else if try path.isEmpty || !exists(path) || visit(path) {
      _ = try walk(path, nil, visit)
    }
  }

  private func walk(
    _ parent: ResourcePath, _ start: ResourcePath?, _ visit: (ResourcePath) throws -> Bool
  ) throws -> Bool {
    // `start` prunes: whole collections and documents before it are passed by a seek.
    let depth = parent.count
    var collection: String?
    if let start, start.count > depth {
      let first = start.segments[depth]
      guard try walkCollection(parent.appending(first), start, visit) else { return false }
      collection = first
    }
    while let next = try nextCollection(of: parent, after: collection) {
      guard try walkCollection(parent.appending(next), nil, visit) else { return false }
      collection = next
    }
    return true
  }

  private func walkCollection(
    _ collection: ResourcePath, _ start: ResourcePath?, _ visit: (ResourcePath) throws -> Bool
  ) throws -> Bool {
    var last: String?
    if let start, start.count > collection.count {
      let id = start.segments[collection.count]
      let path = collection.appending(id)
      if ResourcePath.compare(path, start) != .ascending, try exists(path) {
        guard try visit(path) else { return false }
      }
      guard try walk(path, start, visit) else { return false }
      last = id
    }
    while true {
      let document = try nextDocument(in: collection, after: last)
      let below = try nextParent(in: collection, after: last)
      guard let id = SubtreeWalk.least(document, below) else { return true }
      let path = collection.appending(id)
      if let document, ResourceID.compare(document, id) == .same {
        guard try visit(path) else { return false }
      }
      if let below, ResourceID.compare(below, id) == .same {
        guard try walk(path, nil, visit) else { return false }
      }
      last = id
    }
  }

  private func exists(_ path: ResourcePath) throws -> Bool {
    try view.get(FirestoreKeyLayout.document(path)) != nil
  }

  static func least(_ a: String?, _ b: String?) -> String? {
    guard let a else { return b }
    guard let b else { return a }
    return ResourceID.compare(a, b) == .descending ? b : a
  }
}
