// Which children of a large location a query shows, as the sequencer follows it: their keys and places, not their values.

import RealtimeModel

/// The window of a filtered query on a location that is not in memory.
///
/// Invariant: it holds the children that lie in the query's range up to `edge`, or all of the range where there is no edge;
/// fewer only while ``isShort`` says that what comes behind the edge has yet to be read.
struct RowWindow {
  let query: QuerySpec
  private let range: QueryRange
  /// The children shown, and where they stand.
  private(set) var places: [ChildKey: SortKey] = [:]
  /// With the limit reached, the place of the child that a better one pushes out.
  private(set) var edge: SortKey?

  /// - Parameter places: the whole window, as rows give it.
  init(_ query: QuerySpec, _ places: [SortKey]) {
    self.query = query
    range = QueryRange(query)
    for place in places { self.places[place.key] = place }
    findEdge()
  }

  private var limit: Int { query.limit?.count ?? .max }

  /// Whether something lies behind the edge that there is room for.
  var isShort: Bool { edge != nil && places.count < limit }

  /// Whether a place belongs into the window.
  func isInside(_ place: SortKey) -> Bool {
    guard range.contains(place) else { return false }
    return edge.map { !isBehind(place, $0) } ?? true
  }

  /// Puts a child where it stands now, or takes it out; false if nothing is different.
  mutating func move(_ key: ChildKey, to place: SortKey?, _ undo: inout Undo) -> Bool {
    let place = place.flatMap { isInside($0) ? $0 : nil }
    guard places[key] != place else { return false }
    set(key, to: place, &undo)
    return true
  }

  /// Drops what is more than the limit, from the far end, and finds the edge. The children that were dropped.
  mutating func cut(_ undo: inout Undo) -> [ChildKey] {
    let excess = places.count - limit
    guard excess >= 0 else { return [] }
    var dropped: [SortKey] = []
    if excess == 1 {
      dropped = farthest.map { [$0] } ?? []
    } else if excess > 1 {
      dropped = Array(places.values.sorted { isBehind($0, $1) }.prefix(excess))
    }
    for place in dropped { set(place.key, to: nil, &undo) }
    findEdge()
    return dropped.map(\.key)
  }

  /// Takes the window as rows give it now. The children that are new.
  mutating func fill(_ now: [SortKey], _ undo: inout Undo) -> [ChildKey] {
    var added: [ChildKey] = []
    for place in now where places[place.key] != place {
      if places[place.key] == nil { added.append(place.key) }
      set(place.key, to: place, &undo)
    }
    edge = nil
    findEdge()
    return added
  }

  private mutating func set(_ key: ChildKey, to place: SortKey?, _ undo: inout Undo) {
    undo.places.append((key, places[key]))
    places[key] = place
  }

  private mutating func findEdge() { if places.count >= limit { edge = farthest } }

  private var farthest: SortKey? {
    if case .last = query.limit { places.values.min() } else { places.values.max() }
  }

  private func isBehind(_ place: SortKey, _ other: SortKey) -> Bool {
    if case .last = query.limit { place < other } else { other < place }
  }

  // MARK: The way back

  /// What a window was before some changes.
  struct Undo {
    fileprivate var places: [(key: ChildKey, place: SortKey?)] = []
    fileprivate let edge: SortKey?

    init(_ window: RowWindow) { edge = window.edge }
  }

  /// Takes changes back.
  mutating func takeBack(_ undo: Undo) {
    for (key, place) in undo.places.reversed() { places[key] = place }
    edge = undo.edge
  }
}
