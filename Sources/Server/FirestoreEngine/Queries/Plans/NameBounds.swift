// Bounds on the names of a query's results, and the rows that they select.
//
// Document rows are grouped by parent, so adjacent names are not adjacent rows at all depths. Below a parent,
// the direct documents are one range of rows, and deeper documents are another.

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

  /// The bounds that are names below a parent. Other bounds are dropped: they include all names below it, or
  /// none, which the matcher detects.
  func inside(_ parent: ResourcePath) -> NameBounds {
    var bounds = NameBounds()
    if let lower, lower.count > parent.count, lower.hasPrefix(parent) { bounds.lower = lower }
    if let upper, upper.count > parent.count, upper.hasPrefix(parent) { bounds.upper = upper }
    return bounds
  }

  /// The rows of documents directly below a parent, in any collection. The bounds are below it.
  func children(of parent: ResourcePath) -> KeyRange {
    let prefix = FirestoreKeyLayout.children(of: parent)
    var range = KeyRange(prefix: prefix)
    range.narrow(
      from: lower.map { prefix + head($0, parent) }, through: upper.map { prefix + head($0, parent) })
    return range
  }

  /// The rows of all documents below a parent between the bounds, and some more. The bounds are below it.
  func rows(below parent: ResourcePath) -> [KeyRange] {
    let prefix = FirestoreKeyLayout.subtree(of: parent)
    guard lower != nil || upper != nil else { return [KeyRange(prefix: prefix)] }
    // Every deeper document's key begins with the ids of the direct document above it.
    var further = KeyRange(prefix: prefix)
    further.start = prefix + (lower.map { head($0, parent) } ?? [FirestoreKeyLayout.leastSegment])
    if let upper { further.narrow(to: KeyRange.successor(ofPrefix: prefix + head(upper, parent))) }
    return [children(of: parent), further].filter { !$0.isEmpty }
  }

  /// The encoded ids of the document directly below a parent that is, or contains, the named one.
  private func head(_ path: ResourcePath, _ parent: ResourcePath) -> Key {
    path.segments[parent.count...].prefix(2).reduce(into: []) { $0 += FirestoreKeyLayout.segment($1) }
  }
}
