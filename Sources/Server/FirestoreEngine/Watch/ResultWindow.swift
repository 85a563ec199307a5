// Which part of a query's matches a limit and an offset show, without keeping any of it.
//
// The first n matches are all those up to a position in the query's order. So a window needs its two ends alone: the
// position, and how many matches lie before it. A change says itself whether its document was and is before an end;
// where their number is no longer n, the end moves over as many neighbours as are missing or too many.
//
// Invariant: between two cuts an edge's position has exactly `count` matches at or before it, which is the smaller one
// of `rank` and the number of all matches. The position is `everywhere` only if no match lies behind it.

import FirestoreModel

/// The window that a target shows of its query's matches.
struct ResultWindow: Sendable {
  /// A place in the query's order: a document's, by what the order looks at. The document need not exist any more.
  struct Mark: Sendable {
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
    case nowhere
    /// Up to a mark, and including it.
    case at(Mark)
    /// Over all matches.
    case everywhere
  }

  /// Where the first `rank` matches end.
  struct Edge: Sendable {
    let rank: Int
    /// The matches within.
    var count = 0
    var position: Position

    /// The edge of a query without matches.
    init(rank: Int) {
      self.rank = rank
      position = rank == 0 ? .nowhere : .everywhere
    }

    /// Whether a match lies within.
    func holds(_ name: DocumentName, _ fields: MapValue, _ query: PreparedQuery) -> Bool {
      switch position {
      case .nowhere: false
      case .everywhere: true
      case .at(let mark): query.compare((name, fields), (mark.name, mark.fields)) != .descending
      }
    }
  }

  /// The matches that an offset skips.
  var skipped: Edge?
  /// The matches that are shown or skipped, if a limit bounds them.
  var shown: Edge?

  /// The window of a query without matches.
  init(_ query: PreparedQuery) {
    let offset = query.normalized.offset
    if offset > 0 { skipped = Edge(rank: offset) }
    if let limit = query.limit {
      let (sum, overflow) = offset.addingReportingOverflow(limit)
      shown = Edge(rank: overflow ? .max : sum)
    }
  }
}

/// What changes do to a window: first what they say themselves, then what moves over its edges because of them.
struct WindowMoves {
  /// One changed document.
  private struct Move {
    var wasShown = false
    var isSkipped = false
    var isWithin = false
  }

  /// Unchanged documents, or changed ones once more, that an edge moved over.
  struct Crossing {
    var inward: Set<ResourcePath> = []
    var outward: Set<ResourcePath> = []
  }

  var window: ResultWindow
  /// What moved over the edges.
  var skipped = Crossing()
  var shown = Crossing()
  private var moves: [ResourcePath: Move] = [:]

  init(_ window: ResultWindow) { self.window = window }

  /// The documents that are remembered.
  var count: Int { moves.count }

  /// Takes a change into account.
  mutating func note(_ entry: Cut.Entry, _ effect: Cut.Effect, _ query: PreparedQuery) throws {
    var move = Move()
    if effect.wasIn, let before = entry.before {
      let fields = try before.fields()
      let isSkipped = window.skipped?.holds(entry.name, fields, query) ?? false
      let isWithin = window.shown?.holds(entry.name, fields, query) ?? true
      if isSkipped { window.skipped?.count -= 1 }
      if isWithin { window.shown?.count -= 1 }
      move.wasShown = isWithin && !isSkipped
    }
    if effect.isIn, let after = entry.after {
      let fields = try after.fields()
      move.isSkipped = window.skipped?.holds(entry.name, fields, query) ?? false
      move.isWithin = window.shown?.holds(entry.name, fields, query) ?? true
      if move.isSkipped { window.skipped?.count += 1 }
      if move.isWithin { window.shown?.count += 1 }
    }
    // What was and is behind the end is of no account, unless the end moves over it.
    if move.wasShown || move.isSkipped || move.isWithin { moves[entry.name.path] = move }
  }

  /// Whether the window showed a changed document before, and shows it now.
  func membership(of path: ResourcePath) -> (wasShown: Bool, isShown: Bool) {
    let move = moves[path] ?? Move()
    let isSkipped = (move.isSkipped && !skipped.outward.contains(path)) || skipped.inward.contains(path)
    let isWithin = (move.isWithin && !shown.outward.contains(path)) || shown.inward.contains(path)
    return (move.wasShown, isWithin && !isSkipped)
  }

  /// The documents that moved over an edge, and whether they are shown now; those that are or were skipped on both
  /// sides are left out.
  ///
  /// For documents that did not change: what crosses one edge alone was, and is, on the shown side of the other.
  var crossed: [ResourcePath: Bool] {
    var result: [ResourcePath: Bool] = [:]
    for path in shown.inward where !skipped.inward.contains(path) { result[path] = true }
    for path in shown.outward where !skipped.outward.contains(path) { result[path] = false }
    for path in skipped.outward where !shown.outward.contains(path) { result[path] = true }
    for path in skipped.inward where !shown.inward.contains(path) { result[path] = false }
    return result
  }
}
