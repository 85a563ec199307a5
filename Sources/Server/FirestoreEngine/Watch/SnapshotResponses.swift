// The messages of one cut, merged by document.
//
// Invariant: a document has one message in a cut (and one for each projection), which names all targets that it is
// in or has left, so that no commit is ever split and no client sees a document between two targets.

import FirestoreModel

/// Collects what a cut means for each document.
struct SnapshotResponses {
  private struct Entry {
    let name: DocumentName
    var document: StoredDocument?
    var targets: [(id: Int32, projection: FieldMask?)] = []
    /// The targets that it has left, and whether they show documents whole.
    var removed: [(id: Int32, isWhole: Bool)] = []
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
    entries[position].removed.append((target.id, target.projection == nil))
  }

  /// The messages, `hiding` the new contents of documents from those whose targets they have left. A target with a
  /// projection never shows more than its fields, and its own message tells it all.
  func responses(at time: Timestamp, hiding: Bool) throws -> [WatchResponse] {
    var responses: [WatchResponse] = []
    responses.reserveCapacity(entries.count)
    for entry in entries {
      guard let document = entry.document else {
        responses.append(
          .documentDelete(entry.name, readTime: time, removedTargets: entry.removed.map(\.id)))
        continue
      }
      let left = entry.removed.map(\.id)
      let whole = entry.targets.filter { $0.projection == nil }.map(\.id)
      if !whole.isEmpty {
        // Whoever reads this message may see the whole document by one of its targets.
        responses.append(.documentChange(document, targets: whole, removedTargets: left))
      }
      for (index, (id, projection)) in entry.targets.filter({ $0.projection != nil }).enumerated() {
        responses.append(
          .documentChange(
            try document.masked(projection), targets: [id],
            removedTargets: whole.isEmpty && index == 0 ? left : []))
      }
      if entry.targets.isEmpty, !left.isEmpty {
        let isShown = !hiding && entry.removed.allSatisfy(\.isWhole)
        responses.append(
          isShown
            ? .documentChange(document, targets: [], removedTargets: left)
            : .documentRemove(entry.name, readTime: time, removedTargets: left))
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
