// Which part of a query's matches a limit and an offset show, without keeping any of it.
//
// The first n matches are all those up to a position in the query's order. So a window needs its two ends alone: the
// position, and how many matches lie before it. A change says itself whether its document was and is before an end;
// where their number is no longer n, the end moves over as many neighbours as are missing or too many.
//
// Invariant: between two cuts an edge's position has exactly `count` matches at or before it, which is the smaller one
// of `matchLimit` and the number of all matches. The position is `unbounded` only if no match lies behind it.

import FirestoreModel

/// The window that a target shows of its query's matches.
struct ResultWindow: Sendable {
  /// A place in the query's order: a document's, by what the order looks at. The document need not exist any more.
  struct SortPosition: Sendable {
    let name: DocumentName
    let fields: MapValue

    init(_ document: StoredDocument, in query: PreparedQuery) throws {
      name = document.name
      fields = try document.fields().projected(to: FieldMask(query.orders.map(\.field)))
    }

    /// The mark as a cursor's values.
    func values(in query: PreparedQuery) -> [Value] {
      query.orders.map { order in
        order.field.isDocumentID ? .reference(name) : fields.value(at: order.field) ?? .null
      }
    }
  }

  /// How far an edge reaches.
  enum Position: Sendable {
    /// Before all matches.
    case beforeAll
    /// Up to a mark, and including it.
    case at(SortPosition)
    /// Over all matches.
    case unbounded
  }

  /// Where the first `matchLimit` matches end.
  struct Boundary: Sendable {
    let matchLimit: Int
    /// The matches within.
    var count = 0
    var position: Position

    /// The edge of a query without matches.
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

  /// The matches that an offset skips.
  var skipped: Boundary?
  /// The matches that are shown or skipped, if a limit bounds them.
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

/// What changes do to a window: first what they say themselves, then what moves over its edges because of them.
struct WindowUpdate {
  /// One changed document.
  private struct Move {
    var wasVisible = false
    var isSkipped = false
    var isWithin = false
  }

  /// Unchanged documents, or changed ones once more, that an edge moved over.
  struct BoundaryCrossing {
    var entering: Set<ResourcePath> = []
    var leaving: Set<ResourcePath> = []
  }

  var window: ResultWindow
  /// What moved over the edges.
  var skipped = BoundaryCrossing()
  var shown = BoundaryCrossing()
  private var moves: [ResourcePath: Move] = [:]

  init(_ window: ResultWindow) { self.window = window }

  /// The documents that are remembered.
  var count: Int { moves.count }

  /// Takes a change into account.
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
    // What was and is behind the end is of no account, unless the end moves over it.
    if move.wasVisible || move.isSkipped || move.isWithin { moves[entry.name.path] = move }
  }

  /// Whether the window showed a changed document before, and shows it now.
  func membership(of path: ResourcePath) -> (wasVisible: Bool, isVisible: Bool) {
    let move = moves[path] ?? Move()
    let isSkipped = (move.isSkipped && !skipped.leaving.contains(path)) || skipped.entering.contains(path)
    let isWithin = (move.isWithin && !shown.leaving.contains(path)) || shown.entering.contains(path)
    return (move.wasVisible, isWithin && !isSkipped)
  }

  /// The documents that moved over an edge, and whether they are shown now; those that are or were skipped on both
  /// sides are left out.
  ///
  /// For documents that did not change: what crosses one edge alone was, and is, on the shown side of the other.
  var crossed: [ResourcePath: Bool] {
    var result: [ResourcePath: Bool] = [:]
    for path in shown.entering where !skipped.entering.contains(path) { result[path] = true }
    for path in shown.leaving where !skipped.leaving.contains(path) { result[path] = false }
    for path in skipped.leaving where !shown.leaving.contains(path) { result[path] = true }
    for path in skipped.entering where !shown.entering.contains(path) { result[path] = false }
    return result
  }
}
