// Clears, in the background and in small steps, rows that nobody sees any more: subtrees that were replaced, and
// generations that were begun and never put into their place.
//
// Invariants: rows are only cleared while the row that says so stands in the state that the clearing commit sees, and a
// generation that somebody is filling is left alone; a database has one cleaner that clears, since only that knows of them.

import OrderedStore

/// The clearing of one database.
final class Cleaner: Sendable {
  private struct State {
    var isRunning = false
    var isWanted = false
    var isStopped = false
    /// Generations that are being filled, or wait to be put into their place.
    var active: Set<UInt64> = []
    var idle: [CheckedContinuation<Void, Never>] = []
  }

  let limits: StagingLimits
  private let rows: DatabaseRows
  private let state = Guarded(State())
  /// Called when nothing is left to be cleared.
  private let cleared: @Sendable () -> Void

  init(_ rows: DatabaseRows, _ limits: StagingLimits, cleared: @escaping @Sendable () -> Void) {
    self.limits = limits
    self.rows = rows
    self.cleared = cleared
  }

  /// Has a generation left alone.
  func begin(_ number: UInt64) { state.withLock { _ = $0.active.insert(number) } }

  /// Looks after a generation that was left alone, should it not have found its place.
  func end(_ number: UInt64) {
    state.withLock { _ = $0.active.remove(number) }
    wake()
  }

  /// Looks for what is to be cleared, soon.
  func wake() {
    let starts = state.withLock { state -> Bool in
      guard !state.isStopped else { return false }
      state.isWanted = true
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if starts { Task { await self.run() } }
  }

  /// Has the clearing end after the step that is under way: another cleaner of the same rows, which comes with the next
  /// who opens them, knows of generations that this one would take for left behind.
  func leave() { state.withLock { $0.isStopped = true } }

  /// Ends the clearing after the step that is under way.
  func stop() async {
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state -> Bool in
        state.isStopped = true
        if state.isRunning { state.idle.append(continuation) }
        return !state.isRunning
      }
      if isIdle { continuation.resume() }
    }
  }

  private func run() async {
    while next() {
      do {
        var hasCleared = false
        while try await clearSome() { hasCleared = true }
        if hasCleared { cleared() }
      } catch {
        // The store cannot be read or written now: whatever is left is found again at the next start.
        state.withLock { $0.isStopped = true }
      }
    }
    let waiting = state.withLock { state in
      defer { state.idle = [] }
      return state.idle
    }
    for continuation in waiting { continuation.resume() }
  }

  private func next() -> Bool {
    state.withLock { state in
      let goesOn = state.isWanted && !state.isStopped
      state.isWanted = false
      if !goesOn { state.isRunning = false }
      return goesOn
    }
  }

  /// Clears a few rows; whether there may be more.
  private func clearSome() async throws -> Bool {
    guard let store = rows.current, !state.withLock({ $0.isStopped }) else { return false }
    let found = try await store.read(at: nil) { view in
      var found: [(number: UInt64, range: KeyRange)] = []
      try view.scan(RowKeys.garbage, reverse: false) { key, value, _ in
        guard key.count == 9 else { throw NodeDecoder.damaged }
        let number = UInt64(bigEndian: key.loadUnaligned(fromByteOffset: 1, as: UInt64.self))
        found.append((number, try GenerationRows.decode(Array(value))))
        return found.count < 64
      }
      return found
    }
    let active = state.withLock { $0.active }
    guard let garbage = found.first(where: { !active.contains($0.number) }) else { return false }
    while !state.withLock({ $0.isStopped }) {
      let row = RowKeys.garbage(garbage.number)
      let isDone = try await store.execute(validating: nil) { [limits] writer in
        // It may have found its place since.
        guard try writer.get(row) != nil else { return true }
        return try Cleaner.clear(garbage.range, in: writer, row, limits)
      }.result
      if isDone { break }
    }
    return true
  }

  /// Clears the beginning of a range; true, and its row is cleared too, if that was all.
  private static func clear(
    _ range: KeyRange, in writer: any Sequenced, _ row: [UInt8], _ limits: StagingLimits
  ) throws -> Bool {
    var keys: [[UInt8]] = []
    var bytes = 0
    var isAll = true
    try writer.scan(range, reverse: false) { key, _, _ in
      isAll = keys.count < limits.cleanedRows && bytes < limits.cleanedBytes
      if isAll {
        keys.append(Array(key))
        bytes += key.count
      }
      return isAll
    }
    for key in keys { try writer.clear(key) }
    if isAll { try writer.clear(row) }
    return isAll
  }
}
