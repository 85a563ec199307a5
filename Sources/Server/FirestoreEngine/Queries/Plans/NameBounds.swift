// Bounds on the document names of a query's results, and the row ranges that contain these documents.
//
// Document rows are grouped by parent, so documents with adjacent names at different depths are not in
// adjacent rows. Below a parent, the documents directly in the parent's collections are one range of rows,
// and all deeper documents are another range.

import FirestoreModel
import OrderedStore

/// Inclusive bounds of names; nil for no bound.
struct NameBounds: Sendable {
  private(set) var lower: ResourcePath?
  private(set) var upper: ResourcePath?

  /// Raises the lower bound to a name.
  mutating func narrow(from path: ResourcePath) {
    if lower.map({ ResourcePath.compare($0, path) == .ascending }) ?? true { lower = path }
  }

  /// Lowers the upper bound to a name.
  mutating func narrow(through path: ResourcePath) {
    if upper.map({ ResourcePath.compare(path, $0) == .ascending }) ?? true { upper = path }
  }

  /// Keeps the bounds that are names below a parent. Another bound includes either all names below the parent
  /// or none, so it is dropped. If it includes none, the query's filter rejects each candidate.
  func inside(_ parent: ResourcePath) -> NameBounds {
    var bounds = NameBounds()
    if let lower, lower.count > parent.count, lower.hasPrefix(parent) { bounds.lower = lower }
    if let upper, upper.count > parent.count, upper.hasPrefix(parent) { bounds.upper = upper }
    return bounds
  }

  /// The rows of documents in all collections directly below a parent. The bounds must be names below the
  /// parent, or nil.
  func children(of parent: ResourcePath) -> KeyRange {
    let prefix = FirestoreKeyLayout.children(of: parent)
    var range = KeyRange(prefix: prefix)
    range.narrow(
      from: lower.map { prefix + head($0, parent) }, through: upper.map { prefix + head($0, parent) })
    return range
  }

  /// Ranges of rows that contain all documents below a parent within the bounds, and possibly others. The
  /// bounds must be names below the parent, or nil.
  func rows(below parent: ResourcePath) -> [KeyRange] {
    let prefix = FirestoreKeyLayout.subtree(of: parent)
    guard lower != nil || upper != nil else { return [KeyRange(prefix: prefix)] }
    // The key of a deeper document begins with the ids of its ancestor directly below the parent.
    var deeper = KeyRange(prefix: prefix)
    deeper.start = prefix + (lower.map { head($0, parent) } ?? [FirestoreKeyLayout.leastSegment])
    if let upper { deeper.narrow(to: KeyRange.successor(ofPrefix: prefix + head(upper, parent))) }
    return [children(of: parent), deeper].filter { !$0.isEmpty }
  }

  /// The encoded collection and document id of the first document below the parent on the path. That document
  /// is the named one or its ancestor.
  private func head(_ path: ResourcePath, _ parent: ResourcePath) -> Key {
    path.segments[parent.count...].prefix(2).reduce(into: []) { $0 += FirestoreKeyLayout.segment($1) }
  }
}
