// Stores which of a query's matches its offset and limit make visible (the *window*), as two boundaries in
// the query's order.
//
// The `skipped` boundary is after the matches that the offset skips. The `shown` boundary is after the last
// visible match. For each boundary, the window stores its position and the number of matches up to it. A
// change contains the document before and after, so the window can update these numbers without reading other
// documents. If a number then differs from offset or offset + limit, the boundary moves over the missing or
// excess matches.
//
// Example: limit 2 over the names a, c, e has one boundary at c with `count` 2. Inserting b makes it 3: the
// boundary moves back to b, and c leaves the window.
//
// Invariant: whenever no snapshot is being sent, exactly `count` matches are at or before a boundary. `count`
// is the smaller of `matchLimit` and the number of all matches. A boundary is `unbounded` only if no match is
// after it.

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

  /// The position of a boundary.
  enum Position: Sendable {
    /// The boundary is before all matches.
    case beforeAll
    /// The boundary is directly after this position, so a match at the position is before the boundary.
    case at(SortPosition)
    /// The boundary is after all matches.
    case unbounded
  }

  /// The end of the first `matchLimit` matches.
  struct Boundary: Sendable {
    let matchLimit: Int
    /// The number of matches at or before the boundary.
    var count = 0
    var position: Position

    /// The boundary for a query without matches.
    init(matchLimit: Int) {
      self.matchLimit = matchLimit
      position = matchLimit == 0 ? .beforeAll : .unbounded
    }

    /// Whether a match is at or before the boundary.
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

/// Updates a window after changes. `record` applies each changed document. Then `FirestoreDatabase.adjust`
/// moves the boundaries and records the documents that they move over.
struct WindowUpdate {
  /// Where one changed document was and is, relative to the boundaries.
  private struct Move {
    var wasVisible = false
    var isSkipped = false
    var isWithin = false
  }

  /// The documents that a boundary moved over. They may be unchanged or changed documents.
  struct BoundaryCrossing {
    var entering: Set<ResourcePath> = []
    var leaving: Set<ResourcePath> = []
  }

  var window: ResultWindow
  /// The documents that each boundary moved over.
  var skipped = BoundaryCrossing()
  var shown = BoundaryCrossing()
  private var moves: [ResourcePath: Move] = [:]

  init(_ window: ResultWindow) { self.window = window }

  /// The number of recorded documents.
  var count: Int { moves.count }

  /// Records a change.
  mutating func record(_ entry: SnapshotDelta.Entry, _ effect: SnapshotDelta.Effect, _ query: PreparedQuery)
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
    // Other documents were and are outside of the window. They become visible only if a boundary moves over
    // them, which `BoundaryCrossing` records.
    if move.wasVisible || move.isSkipped || move.isWithin { moves[entry.name.path] = move }
  }

  /// Whether the window contained a changed document before, and contains it now.
  func membership(of path: ResourcePath) -> (wasVisible: Bool, isVisible: Bool) {
    let move = moves[path] ?? Move()
    let isSkipped = (move.isSkipped && !skipped.leaving.contains(path)) || skipped.entering.contains(path)
    let isWithin = (move.isWithin && !shown.leaving.contains(path)) || shown.entering.contains(path)
    return (move.wasVisible, isWithin && !isSkipped)
  }

  /// The documents that crossed a boundary, and whether they are visible now. Documents that both boundaries
  /// moved over in the same direction are excluded, since they were not and are not visible.
  ///
  /// The result is valid only for documents that did not change themselves. If only one boundary moved over
  /// such a document, the document was and is on the visible side of the other boundary.
  var crossed: [ResourcePath: Bool] {
    var result: [ResourcePath: Bool] = [:]
    for path in shown.entering where !skipped.entering.contains(path) { result[path] = true }
    for path in shown.leaving where !skipped.leaving.contains(path) { result[path] = false }
    for path in skipped.leaving where !shown.leaving.contains(path) { result[path] = true }
    for path in skipped.entering where !shown.entering.contains(path) { result[path] = false }
    return result
  }
}
