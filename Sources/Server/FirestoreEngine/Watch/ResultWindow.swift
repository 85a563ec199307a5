// The window of a query's matches that a limit and an offset make visible, stored as two boundaries.
//
// The first n matches are all matches up to a position in the query's order. Therefore a window needs only
// the positions of its two boundaries and the number of matches before them. A change contains enough to
// decide whether its document was and is before a boundary. If the number differs from n afterwards, the
// boundary moves over the missing or excess neighbors.
//
// Example: limit 2 over the names a, c, e has one boundary at c with `count` 2. Inserting b makes it 3: the
// boundary moves back to b, and c leaves the window.
//
// Invariant: between two snapshots, exactly `count` matches are at or before a boundary. `count` is the
// smaller of `matchLimit` and the number of all matches. A boundary is `unbounded` only if no match is after
// it.

import FirestoreModel

/// The visible window of a target's matches.
struct ResultWindow: Sendable {
  /// A position in the query's order: a document's name and order fields. The document may have been deleted.
  struct SortPosition: Sendable {
    let name: DocumentName
    let fields: MapValue

    init(_ document: StoredDocument, in query: PreparedQuery) throws {
      name = document.name
      fields = try document.fields().projected(to: FieldMask(query.orders.map(\.field)))
    }

    /// The position as the values of a query cursor.
    func values(in query: PreparedQuery) -> [Value] {
      query.orders.map { order in
        order.field.isDocumentID ? .reference(name) : fields.value(at: order.field) ?? .null
      }
    }
  }

  /// The extent of a boundary.
  enum Position: Sendable {
    /// Before all matches.
    case beforeAll
    /// Up to a position, inclusive.
    case at(SortPosition)
    /// Over all matches.
    case unbounded
  }

  /// The end of the first `matchLimit` matches.
  struct Boundary: Sendable {
    let matchLimit: Int
    /// The number of matches within.
    var count = 0
    var position: Position

    /// The boundary for a query without matches.
    init(matchLimit: Int) {
      self.matchLimit = matchLimit
      position = matchLimit == 0 ? .beforeAll : .unbounded
    }

    /// Whether a match lies within.
    func contains(_ name: DocumentName, _ fields: MapValue, _ query: PreparedQuery) -> Bool {
      switch position {
      case .beforeAll: false
      case .unbounded: true
      case .at(let position): query.compare((name, fields), (position.name, position.fields)) != .descending
      }
    }
  }

  /// The boundary of the matches that the offset skips; nil without an offset.
  var skipped: Boundary?
  /// The boundary of the visible and skipped matches; nil without a limit.
  var shown: Boundary?

  /// The window of a query without matches.
  init(_ query: PreparedQuery) {
    let offset = query.normalized.offset
    if offset > 0 { skipped = Boundary(matchLimit: offset) }
    if let limit = query.limit {
      let (sum, overflow) = offset.addingReportingOverflow(limit)
      shown = Boundary(matchLimit: overflow ? .max : sum)
    }
  }
}

/// Updates a window: first by the changes themselves, then by the documents that cross its boundaries because
/// of them.
struct WindowUpdate {
  /// One changed document.
  private struct Move {
    var wasVisible = false
    var isSkipped = false
    var isWithin = false
  }

  /// The documents that a boundary moved over: unchanged ones, or changed ones again.
  struct BoundaryCrossing {
    var entering: Set<ResourcePath> = []
    var leaving: Set<ResourcePath> = []
  }

  var window: ResultWindow
  /// The documents that crossed the boundaries.
  var skipped = BoundaryCrossing()
  var shown = BoundaryCrossing()
  private var moves: [ResourcePath: Move] = [:]

  init(_ window: ResultWindow) { self.window = window }

  /// The number of recorded documents.
  var count: Int { moves.count }

  /// Records a change.
  mutating func note(_ entry: SnapshotDelta.Entry, _ effect: SnapshotDelta.Effect, _ query: PreparedQuery)
    throws
  {
    var move = Move()
    if effect.wasIn, let before = entry.before {
      let fields = try before.fields()
      let isSkipped = window.skipped?.contains(entry.name, fields, query) ?? false
      let isWithin = window.shown?.contains(entry.name, fields, query) ?? true
      if isSkipped { window.skipped?.count -= 1 }
      if isWithin { window.shown?.count -= 1 }
      move.wasVisible = isWithin && !isSkipped
    }
    if effect.isIn, let after = entry.after {
      let fields = try after.fields()
      move.isSkipped = window.skipped?.contains(entry.name, fields, query) ?? false
      move.isWithin = window.shown?.contains(entry.name, fields, query) ?? true
      if move.isSkipped { window.skipped?.count += 1 }
      if move.isWithin { window.shown?.count += 1 }
    }
    // A document outside before and after matters only if the boundary moves over it.
    if move.wasVisible || move.isSkipped || move.isWithin { moves[entry.name.path] = move }
  }

  /// Whether the window contained a changed document before, and contains it now.
  func membership(of path: ResourcePath) -> (wasVisible: Bool, isVisible: Bool) {
    let move = moves[path] ?? Move()
    let isSkipped = (move.isSkipped && !skipped.leaving.contains(path)) || skipped.entering.contains(path)
    let isWithin = (move.isWithin && !shown.leaving.contains(path)) || shown.entering.contains(path)
    return (move.wasVisible, isWithin && !isSkipped)
  }

  /// The documents that crossed a boundary, and whether they are visible now. Documents that crossed both
  /// boundaries in one direction are excluded.
  ///
  /// Applies to unchanged documents: a document that crosses only one boundary was, and is, on the visible
  /// side of the other.
  var crossed: [ResourcePath: Bool] {
    var result: [ResourcePath: Bool] = [:]
    for path in shown.entering where !skipped.entering.contains(path) { result[path] = true }
    for path in shown.leaving where !skipped.leaving.contains(path) { result[path] = false }
    for path in skipped.leaving where !shown.leaving.contains(path) { result[path] = true }
    for path in skipped.entering where !shown.entering.contains(path) { result[path] = false }
    return result
  }
}
