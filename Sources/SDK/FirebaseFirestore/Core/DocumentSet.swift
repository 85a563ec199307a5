// The documents of a view in the query's order.
//
// Invariant: `ordered` is sorted by the query, ties by name, and contains exactly the documents of `byName`. One pass
// applies many changes, so that building a view of n documents takes O(n log n).

import FirestoreModel

struct DocumentSet: Sendable {
  private let query: ClientQuery
  private(set) var ordered: [CachedDocument] = []
  private var byName: [DocumentName: CachedDocument] = [:]

  init(query: ClientQuery) { self.query = query }

  var count: Int { ordered.count }
  var isEmpty: Bool { ordered.isEmpty }
  var first: CachedDocument? { ordered.first }
  var last: CachedDocument? { ordered.last }

  subscript(name: DocumentName) -> CachedDocument? { byName[name] }
  func contains(_ name: DocumentName) -> Bool { byName[name] != nil }

  /// Where a document is; nil when it is not in the set.
  func index(of name: DocumentName) -> Int? {
    guard let document = byName[name] else { return nil }
    let index = position(of: document)
    return index < ordered.count && ordered[index].name == name ? index : nil
  }

  private func position(of document: CachedDocument) -> Int {
    var low = 0
    var high = ordered.count
    while low < high {
      let middle = (low + high) / 2
      if query.compare(ordered[middle], document) == .ascending { low = middle + 1 } else { high = middle }
    }
    return low
  }

  mutating func remove(_ name: DocumentName) {
    guard let index = index(of: name) else { return }
    ordered.remove(at: index)
    byName[name] = nil
  }

  mutating func insert(_ document: CachedDocument) {
    remove(document.name)
    ordered.insert(document, at: position(of: document))
    byName[document.name] = document
  }

  /// Removes and inserts many documents in one pass.
  mutating func apply(removed: Set<DocumentName>, inserted: [CachedDocument]) {
    if removed.count + inserted.count <= 2 {
      for name in removed { remove(name) }
      for document in inserted { insert(document) }
      return
    }
    for name in removed { byName[name] = nil }
    let gone = removed.union(inserted.map(\.name))
    let kept = ordered.filter { !gone.contains($0.name) }
    let new = inserted.sorted { query.compare($0, $1) == .ascending }
    for document in new { byName[document.name] = document }
    var merged: [CachedDocument] = []
    merged.reserveCapacity(kept.count + new.count)
    var next = 0
    for document in kept {
      while next < new.count, query.compare(new[next], document) == .ascending {
        merged.append(new[next])
        next += 1
      }
      merged.append(document)
    }
    merged.append(contentsOf: new[next...])
    ordered = merged
  }
}

extension DocumentSet: Equatable {
  static func == (a: DocumentSet, b: DocumentSet) -> Bool { a.ordered == b.ordered }
}
