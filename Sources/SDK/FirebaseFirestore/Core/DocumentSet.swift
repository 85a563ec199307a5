// A document set: the documents of a view in the query's order, and whether each has pending writes.
//
// Invariant: `ordered` is sorted by the query and then by name. It contains the same documents as `byName`.
// Copies share their structure, so a snapshot that is queued for its listener needs memory only for its
// changes.

import FirestoreModel

/// A document of a view.
final class ShownDocument: Sendable {
  let document: CachedDocument
  /// Whether the document has writes that watch has not confirmed.
  let isPending: Bool
  /// The version of the last snapshot of the server when the view received these contents.
  let snapshotVersion: ModelTimestamp

  init(_ document: CachedDocument, isPending: Bool, snapshotVersion: ModelTimestamp = .epoch) {
    self.document = document
    self.isPending = isPending
    self.snapshotVersion = snapshotVersion
  }
}

struct DocumentSet: Sendable {
  private let query: ClientQuery
  private var tree = PersistentTree<ShownDocument>()
  private var byName = PersistentTree<ShownDocument>()
  /// The number of documents with pending writes.
  private(set) var pendingCount = 0

  init(query: ClientQuery) { self.query = query }

  var count: Int { tree.count }
  var isEmpty: Bool { tree.isEmpty }
  var first: CachedDocument? { tree.first?.document }
  var last: CachedDocument? { tree.last?.document }
  /// All documents with their state, in order; O(n).
  var shown: [ShownDocument] { tree.elements }
  /// All documents in order; O(n).
  var ordered: [CachedDocument] { tree.elements.map(\.document) }

  subscript(name: DocumentName) -> CachedDocument? { shown(name)?.document }
  func contains(_ name: DocumentName) -> Bool { shown(name) != nil }
  func isPending(_ name: DocumentName) -> Bool { shown(name)?.isPending ?? false }

  func shown(_ name: DocumentName) -> ShownDocument? {
    byName.find { DocumentName.compare($0.document.name, name) }?.element
  }

  /// The index of a document; nil if it is not in the set.
  func index(of name: DocumentName) -> Int? {
    guard let document = self[name] else { return nil }
    return tree.find { query.compare($0.document, document) }?.index
  }

  mutating func remove(_ name: DocumentName) {
    guard let old = shown(name) else { return }
    let query = query
    tree.remove { query.compare($0.document, old.document) }
    byName.remove { DocumentName.compare($0.document.name, name) }
    if old.isPending { pendingCount -= 1 }
  }

  mutating func insert(_ new: ShownDocument) {
    remove(new.document.name)
    let query = query
    tree.insert(new) { query.compare($0.document, $1.document) }
    byName.insert(new) { DocumentName.compare($0.document.name, $1.document.name) }
    if new.isPending { pendingCount += 1 }
  }

  /// Removes and inserts many documents: one by one, or in one pass over all documents if that costs less.
  mutating func apply(removed: Set<DocumentName>, inserted: [ShownDocument]) {
    let changes = removed.count + inserted.count
    if changes * 8 < count || changes < 3 {
      for name in removed { remove(name) }
      for shown in inserted { insert(shown) }
      return
    }
    let replaced = removed.union(inserted.map(\.document.name))
    let kept = shown.filter { !replaced.contains($0.document.name) }
    let new = inserted.sorted { query.compare($0.document, $1.document) == .ascending }
    var merged: [ShownDocument] = []
    merged.reserveCapacity(kept.count + new.count)
    var next = 0
    for shown in kept {
      while next < new.count, query.compare(new[next].document, shown.document) == .ascending {
        merged.append(new[next])
        next += 1
      }
      merged.append(shown)
    }
    merged.append(contentsOf: new[next...])
    tree = PersistentTree(sorted: merged)
    byName = PersistentTree(sorted: merged.sorted { $0.document.name < $1.document.name })
    pendingCount = merged.count { $0.isPending }
  }
}

extension DocumentSet: Equatable {
  static func == (a: DocumentSet, b: DocumentSet) -> Bool {
    a.tree.isIdentical(to: b.tree)
      || a.count == b.count && a.pendingCount == b.pendingCount
        && zip(a.shown, b.shown).allSatisfy { $0.document == $1.document && $0.isPending == $1.isPending }
  }
}
