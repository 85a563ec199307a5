// Between which names a query's results lie, and which rows that is.
//
// Document rows are grouped by parent, so that names which follow each other are not neighbours at all depths: of the
// documents below a parent those directly below are one range of rows, and those further below another.

import FirestoreModel
import OrderedStore

/// Names between two, both included; nil for no bound.
struct NameBounds: Sendable {
  private(set) var lower: ResourcePath?
  private(set) var upper: ResourcePath?

  /// Moves the lower bound up to a name.
  mutating func narrow(from path: ResourcePath) {
    if lower.map({ ResourcePath.compare($0, path) == .ascending }) ?? true { lower = path }
  }

  /// Moves the upper bound down to a name.
  mutating func narrow(through path: ResourcePath) {
    if upper.map({ ResourcePath.compare(path, $0) == .ascending }) ?? true { upper = path }
  }

  /// The bounds as far as they are names below a parent; others keep all that is below it, or nothing of it, which the
  /// matcher tells.
  func inside(_ parent: ResourcePath) -> NameBounds {
    var bounds = NameBounds()
    if let lower, lower.count > parent.count, lower.hasPrefix(parent) { bounds.lower = lower }
    if let upper, upper.count > parent.count, upper.hasPrefix(parent) { bounds.upper = upper }
    return bounds
  }

  /// The rows of documents directly below a parent, in any collection. The bounds lie inside of it.
  func children(of parent: ResourcePath) -> KeyRange {
    let prefix = FirestoreKeyLayout.children(of: parent)
    var range = KeyRange(prefix: prefix)
    range.narrow(
      from: lower.map { prefix + head($0, parent) }, through: upper.map { prefix + head($0, parent) })
    return range
  }

  /// The rows of all documents below a parent that lie between the bounds, and of some more. The bounds lie inside of it.
  func rows(below parent: ResourcePath) -> [KeyRange] {
    let prefix = FirestoreKeyLayout.subtree(of: parent)
    guard lower != nil || upper != nil else { return [KeyRange(prefix: prefix)] }
    // Whatever lies below a document directly below the parent begins with that one's ids.
    var further = KeyRange(prefix: prefix)
    further.start = prefix + (lower.map { head($0, parent) } ?? [FirestoreKeyLayout.leastSegment])
    if let upper { further.narrow(to: KeyRange.successor(ofPrefix: prefix + head(upper, parent))) }
    return [children(of: parent), further].filter { !$0.isEmpty }
  }

  /// The ids of the document directly below a parent that a name is, or lies below of.
  private func head(_ path: ResourcePath, _ parent: ResourcePath) -> Key {
    path.segments[parent.count...].prefix(2).reduce(into: []) { $0 += FirestoreKeyLayout.segment($1) }
  }
}
