// The large locations that are followed by their rows: of each, the windows of the queries that somebody listens to. The
// fan-out stage has the children in these windows and no others.

import RealtimeModel

/// A change of the part of a location that somebody sees, relative to the location.
typealias WindowChange = (path: Path, value: Node)

/// The locations that are followed by rows.
///
/// `@unchecked Sendable`: touched in sequenced bodies, which run one at a time, and by the pump while none runs.
final class WindowedLocations: @unchecked Sendable {
  struct Location {
    var windows: [QuerySpec: RowWindow] = [:]
    fileprivate var listens: [QuerySpec: Int] = [:]
    /// Whether all of the location is being read, since its rows no longer say what is in its windows.
    fileprivate(set) var isLeaving = false

    /// Whether somebody sees a child.
    func shows(_ key: ChildKey) -> Bool { windows.values.contains { $0.places[key] != nil } }
  }

  private(set) var locations: [Path: Location] = [:]
  /// How many of them lie at each location or below it.
  private var below: [Path: Int] = [:]

  var isEmpty: Bool { locations.isEmpty }

  subscript(path: Path) -> Location? { locations[path] }

  /// The locations at a path and below it.
  func inside(_ path: Path) -> [Path] {
    below[path] == nil ? [] : locations.keys.filter { path.contains($0) }
  }

  /// Has a location followed for one more listen, whose window is given unless it is known.
  func join(_ path: Path, _ query: QuerySpec, _ window: RowWindow?, _ journal: SessionJournal) {
    if locations[path] == nil {
      set(path, to: Location())
      journal.note { self.set(path, to: nil) }
    }
    let count = locations[path]?.listens[query]
    if let window { locations[path]?.windows[query] = window }
    locations[path]?.listens[query] = (count ?? 0) + 1
    journal.note {
      if window != nil { self.locations[path]?.windows[query] = nil }
      self.locations[path]?.listens[query] = count
    }
  }

  /// Hears that a listen ended which may have been one on such a location.
  func leave(_ path: Path, _ query: QuerySpec, _ journal: SessionJournal) {
    guard let location = locations[path], let count = location.listens[query] else { return }
    if count > 1 {
      locations[path]?.listens[query] = count - 1
      return journal.note { self.locations[path]?.listens[query] = count }
    }
    if location.listens.count == 1 { return remove(path, journal) }
    locations[path]?.listens[query] = nil
    locations[path]?.windows[query] = nil
    let window = location.windows[query]
    journal.note {
      self.locations[path]?.listens[query] = count
      self.locations[path]?.windows[query] = window
    }
  }

  /// Has a location followed in another way.
  func remove(_ path: Path, _ journal: SessionJournal) {
    guard let location = locations[path] else { return }
    set(path, to: nil)
    journal.note { self.set(path, to: location) }
  }

  /// Changes a window in place.
  func change<Result>(
    _ path: Path, _ query: QuerySpec, _ journal: SessionJournal,
    _ body: (inout RowWindow, inout RowWindow.Undo) throws -> Result
  ) rethrows -> Result? {
    guard var window = locations[path]?.windows[query] else { return nil }
    // The dictionary lets go of it meanwhile: unless its caller holds what was before, changing it copies nothing.
    locations[path]?.windows[query] = nil
    var undo = RowWindow.Undo(window)
    defer {
      locations[path]?.windows[query] = window
      journal.note { [undo] in self.locations[path]?.windows[query]?.takeBack(undo) }
    }
    return try body(&window, &undo)
  }

  /// Takes note that a location is to be read whole; false if that is under way.
  func beginLeaving(_ path: Path, _ journal: SessionJournal) -> Bool {
    guard let location = locations[path], !location.isLeaving else { return false }
    locations[path]?.isLeaving = true
    journal.note { self.locations[path]?.isLeaving = false }
    return true
  }

  private func set(_ path: Path, to location: Location?) {
    let change = (location == nil ? 0 : 1) - (locations[path] == nil ? 0 : 1)
    locations[path] = location
    guard change != 0 else { return }
    for count in 0...path.count {
      let above = Path(keys: Array(path.keys.prefix(count)))
      let now = below[above, default: 0] + change
      below[above] = now == 0 ? nil : now
    }
  }
}
