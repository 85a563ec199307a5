// Collects the responses of one snapshot, merged by document.
//
// Invariant: each document has one response in a snapshot, which lists all targets that the document is in or
// has left. Targets that return only some fields (a *projection*) get a separate response each. Therefore a
// document that moves from one target to another does not temporarily disappear at the client.

import FirestoreModel

/// Collects the responses of one snapshot.
struct SnapshotResponses {
  private struct Entry {
    let name: DocumentName
    var document: StoredDocument?
    var targets: [(id: Int32, projection: FieldMask?)] = []
    /// The targets that the document left, and whether they return complete documents.
    var removed: [(id: Int32, isComplete: Bool)] = []
  }

  private var entries: [Entry] = []
  private var positions: [ResourcePath: Int] = [:]

  var isEmpty: Bool { entries.isEmpty }

  /// Adds a document that changed in a target or entered it.
  mutating func add(_ document: StoredDocument, to target: ActiveTarget) {
    let position = findOrAddEntry(of: document.name)
    entries[position].document = document
    entries[position].targets.append((target.id, target.projection))
  }

  /// Adds a document that left a target; `document` is nil if it no longer exists.
  mutating func remove(_ name: DocumentName, now document: StoredDocument?, from target: ActiveTarget) {
    let position = findOrAddEntry(of: name)
    if let document { entries[position].document = document }
    entries[position].removed.append((target.id, target.projection == nil))
  }

  /// The responses. `omitsRemovedContents` omits the new contents of documents that left targets, since the caller may not
  /// be allowed to read them. A target with a projection returns only its fields, in a separate response.
  func responses(at time: Timestamp, omitsRemovedContents: Bool) throws -> [WatchResponse] {
    var responses: [WatchResponse] = []
    responses.reserveCapacity(entries.count)
    for entry in entries {
      guard let document = entry.document else {
        responses.append(
          .documentDelete(entry.name, readTime: time, removedTargets: entry.removed.map(\.id)))
        continue
      }
      let removedTargets = entry.removed.map(\.id)
      let complete = entry.targets.filter { $0.projection == nil }.map(\.id)
      if !complete.isEmpty {
        // The client may see the complete document through one of these targets.
        responses.append(.documentChange(document, targets: complete, removedTargets: removedTargets))
      }
      for (index, (id, projection)) in entry.targets.filter({ $0.projection != nil }).enumerated() {
        responses.append(
          .documentChange(
            try document.masked(projection), targets: [id],
            removedTargets: complete.isEmpty && index == 0 ? removedTargets : []))
      }
      if entry.targets.isEmpty, !removedTargets.isEmpty {
        let isShown = !omitsRemovedContents && entry.removed.allSatisfy(\.isComplete)
        responses.append(
          isShown
            ? .documentChange(document, targets: [], removedTargets: removedTargets)
            : .documentRemove(entry.name, readTime: time, removedTargets: removedTargets))
      }
    }
    return responses
  }

  /// The index of a document's entry, which is added if there is none.
  private mutating func findOrAddEntry(of name: DocumentName) -> Int {
    if let position = positions[name.path] { return position }
    entries.append(Entry(name: name))
    positions[name.path] = entries.count - 1
    return entries.count - 1
  }
}
