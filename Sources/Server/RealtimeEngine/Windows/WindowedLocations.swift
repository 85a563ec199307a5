// Records the large locations whose windows are updated from rows. Each location has the windows of the queries that
// clients listen to; a window is the children that a query selects. The fan-out stage, which sends pushes to clients,
// has only the children in these windows (see `RowWindowHandler`).
//
// Decision: docs/decisions/0015-windows-by-rows.md

import RealtimeModel

/// A change of a location's filtered value, relative to the location.
typealias WindowChange = (path: Path, value: Node)

/// The locations with row windows.
///
/// `@unchecked Sendable`: only batches, which execute one at a time, and the batch loop between them access
/// it.
final class WindowedLocations: @unchecked Sendable {
  struct Location {
    var windows: [QuerySpec: RowWindow] = [:]
    /// Number of listens for each query.
    fileprivate var listens: [QuerySpec: Int] = [:]
    /// Whether the complete value is being read, because the windows can no longer be updated from rows.
    fileprivate(set) var isReadingFullValue = false

    /// Whether some window shows a child.
    func shows(_ key: ChildKey) -> Bool { windows.values.contains { $0.sortKeys[key] != nil } }
  }

  private(set) var locations: [Path: Location] = [:]
  /// Number of these locations at each path and below it.
  private var countsBelow: [Path: Int] = [:]

  var isEmpty: Bool { locations.isEmpty }

  subscript(path: Path) -> Location? { locations[path] }

  /// The locations with row windows at a path and below it.
  func inside(_ path: Path) -> [Path] {
    countsBelow[path] == nil ? [] : locations.keys.filter { path.contains($0) }
  }

  /// Adds a listen.
  ///
  /// - Parameter window: the window of its query; nil if another listen of the same query has added it.
  func addListen(_ path: Path, _ query: QuerySpec, _ window: RowWindow?, _ journal: SessionJournal) {
    if locations[path] == nil {
      set(path, to: Location())
      journal.record { self.set(path, to: nil) }
    }
    let count = locations[path]?.listens[query]
    precondition(
      (window == nil) == (count != nil), "invariant: a followed query has one window and at least one listen")
    if let window { locations[path]?.windows[query] = window }
    locations[path]?.listens[query] = (count ?? 0) + 1
    journal.record {
      if window != nil { self.locations[path]?.windows[query] = nil }
      self.locations[path]?.listens[query] = count
    }
  }

  /// Removes a listen, if its location has row windows.
  func removeListen(_ path: Path, _ query: QuerySpec, _ journal: SessionJournal) {
    guard let location = locations[path], let count = location.listens[query] else { return }
    if count > 1 {
      locations[path]?.listens[query] = count - 1
      return journal.record { self.locations[path]?.listens[query] = count }
    }
    if location.listens.count == 1 { return remove(path, journal) }
    locations[path]?.listens[query] = nil
    locations[path]?.windows[query] = nil
    let window = location.windows[query]
    journal.record {
      self.locations[path]?.listens[query] = count
      self.locations[path]?.windows[query] = window
    }
  }

  /// Removes a location, because the fan-out stage has its complete value from now on or its last filtered
  /// listen has ended.
  func remove(_ path: Path, _ journal: SessionJournal) {
    guard let location = locations[path] else { return }
    set(path, to: nil)
    journal.record { self.set(path, to: location) }
  }

  /// Changes a window in place, and records how to undo the change.
  func change<Result>(
    _ path: Path, _ query: QuerySpec, _ journal: SessionJournal,
    _ body: (inout RowWindow, inout RowWindow.Undo) throws -> Result
  ) rethrows -> Result? {
    guard var window = locations[path]?.windows[query] else { return nil }
    // The window is removed from the dictionary, so that its reference is unique and the change copies no window. It
    // is copied only if the caller holds another copy.
    locations[path]?.windows[query] = nil
    var undo = RowWindow.Undo(window)
    defer {
      locations[path]?.windows[query] = window
      journal.record { [undo] in self.locations[path]?.windows[query]?.rollBack(undo) }
    }
    return try body(&window, &undo)
  }

  /// Records that the complete value of a location is being read. Returns false if a read is in progress
  /// already.
  func beginReadingFullValue(_ path: Path, _ journal: SessionJournal) -> Bool {
    guard let location = locations[path], !location.isReadingFullValue else { return false }
    locations[path]?.isReadingFullValue = true
    journal.record { self.locations[path]?.isReadingFullValue = false }
    return true
  }

  private func set(_ path: Path, to location: Location?) {
    let change = (location == nil ? 0 : 1) - (locations[path] == nil ? 0 : 1)
    locations[path] = location
    guard change != 0 else { return }
    for count in 0...path.count {
      let above = Path(keys: Array(path.keys.prefix(count)))
      let now = countsBelow[above, default: 0] + change
      precondition(now >= 0, "invariant: counts below a path match the followed locations")
      countsBelow[above] = now == 0 ? nil : now
    }
  }
}
