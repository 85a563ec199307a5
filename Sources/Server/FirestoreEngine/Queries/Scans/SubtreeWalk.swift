// Walks the documents below a parent in name order. Also finds *missing* documents: names without a document
// that have documents below them.
//
// Document rows are grouped by parent. Therefore a document and the documents below it are not in adjacent
// rows. The walk visits each document of a level, then descends to the documents below it. It finds both by
// seeks, without reading the rows between them.

import FirestoreModel
import OrderedStore

/// Finds documents and collections below a parent, by seeking in the document rows.
struct SubtreeWalk {
  let view: any ReadView
  let database: DatabaseName

  /// Visits the ids above `after` of the collections under a parent that contain a document at any depth,
  /// until `visit` returns false.
  func collectionIDs(of parent: ResourcePath, after: String?, _ visit: (String) throws -> Bool) throws {
    var last = after
    while let next = try nextCollection(of: parent, after: last) {
      guard try visit(next) else { return }
      last = next
    }
  }

  private func nextCollection(of parent: ResourcePath, after last: String?) throws -> String? {
    // A collection contains documents, or missing documents that have documents below them.
    let direct = try nextSegment(FirestoreKeyLayout.children(of: parent), after: last)
    let below = try nextSegment(FirestoreKeyLayout.subtree(of: parent), after: last)
    guard let direct else { return below }
    guard let below else { return direct }
    return ResourceID.compare(direct, below) == .descending ? below : direct
  }

  /// The smallest segment above `last` that directly follows `prefix` in the key of a document row.
  private func nextSegment(_ prefix: Key, after last: String?) throws -> String? {
    let complete = KeyRange(prefix: prefix)
    // An encoded segment begins with 02 or 03. A path ends with 01, which sorts before all segments.
    var start = prefix + [FirestoreKeyLayout.leastSegment]
    if let last {
      guard let end = KeyRange.successor(ofPrefix: prefix + FirestoreKeyLayout.segment(last)) else {
        return nil
      }
      start = end
    }
    guard let key = try view.firstKey(in: KeyRange(start: start, end: complete.end)) else { return nil }
    var decoder = IndexKeyDecoder(key, from: prefix.count)
    return decoder.segment()
  }

  /// The smallest id above `last` of a document that has documents below it. The document itself may be
  /// missing.
  func nextParent(in collection: ResourcePath, after last: String?) throws -> String? {
    try nextSegment(FirestoreKeyLayout.subtree(of: collection), after: last)
  }

  /// The smallest id above `last` of an existing document in a collection.
  func nextDocument(in collection: ResourcePath, after last: String?) throws -> String? {
    try nextSegment(FirestoreKeyLayout.collection(collection), after: last)
  }

  /// Visits all documents below a parent in name order, from `start` on, at every depth, until `visit`
  /// returns false.
  func documents(
    below parent: ResourcePath, from start: ResourcePath?, _ visit: (ResourcePath) throws -> Bool
  ) throws {
    _ = try walk(parent, start, visit)
  }

  /// Visits the document at a path, if it exists, and all documents below it; for a collection's path, all
  /// documents in it and below.
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
    // The walk seeks directly to `start`, without visiting earlier collections and documents.
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
      guard let id = SubtreeWalk.smallerID(document, below) else { return true }
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

  static func smallerID(_ a: String?, _ b: String?) -> String? {
    guard let a else { return b }
    guard let b else { return a }
    return ResourceID.compare(a, b) == .descending ? b : a
  }
}
