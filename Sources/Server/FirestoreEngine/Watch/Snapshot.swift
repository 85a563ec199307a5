// The messages of one cut, merged by document.
//
// Invariant: a document has one message in a cut (and one for each projection), which names all targets that it is
// in or has left, so that no commit is ever split and no client sees a document between two targets.

import FirestoreModel

/// Collects what a cut means for each document.
struct Snapshot {
  private struct Entry {
    let name: DocumentName
    var document: StoredDocument?
    var targets: [(id: Int32, projection: [FieldPath]?)] = []
    var removed: [Int32] = []
  }

  private var entries: [Entry] = []
  private var positions: [ResourcePath: Int] = [:]

  var isEmpty: Bool { entries.isEmpty }

  /// The document is in a target and has changed, or come in.
  mutating func add(_ document: StoredDocument, to target: ActiveTarget) {
    let position = position(of: document.name)
    entries[position].document = document
    entries[position].targets.append((target.id, target.projection))
  }

  /// The document has left a target; nil if it does not exist any more.
  mutating func remove(_ name: DocumentName, now document: StoredDocument?, from target: ActiveTarget) {
    let position = position(of: name)
    if let document { entries[position].document = document }
    entries[position].removed.append(target.id)
  }

  /// The messages, `hiding` the new contents of documents from those whose targets they have left.
  func responses(at time: Timestamp, hiding: Bool) throws -> [WatchResponse] {
    var responses: [WatchResponse] = []
    responses.reserveCapacity(entries.count)
    for entry in entries {
      guard let document = entry.document else {
        responses.append(.documentDelete(entry.name, readTime: time, removedTargets: entry.removed))
        continue
      }
      var removed = entry.removed
      let whole = entry.targets.filter { $0.projection == nil }.map(\.id)
      if !whole.isEmpty {
        responses.append(.documentChange(document, targets: whole, removedTargets: removed))
        removed = []
      }
      for (id, projection) in entry.targets where projection != nil {
        responses.append(
          .documentChange(try document.masked(projection), targets: [id], removedTargets: removed))
        removed = []
      }
      if !removed.isEmpty {
        responses.append(
          hiding
            ? .documentRemove(entry.name, readTime: time, removedTargets: removed)
            : .documentChange(document, targets: [], removedTargets: removed))
      }
    }
    return responses
  }

  private mutating func position(of name: DocumentName) -> Int {
    if let position = positions[name.path] { return position }
    entries.append(Entry(name: name))
    positions[name.path] = entries.count - 1
    return entries.count - 1
  }
}
