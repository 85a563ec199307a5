// Clears, in the background and in small steps, rows that nobody sees any more: subtrees that were replaced, and
// generations that were begun and never put into their place.
//
// While others use the database it takes little of their time: small steps, and pauses of several times what a step took.
//
// Invariants: rows are only cleared while the row that says so stands in the state that the clearing commit sees, and a
// generation that somebody is filling is left alone; a database has one cleaner that clears, since only that knows of them.

import Locking
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
    /// A pause between two steps.
    var pause: Task<Void, Never>?
  }

  let limits: StagingLimits
  private let rows: DatabaseRows
  private let state = Guarded(State())
  /// How many operations others have asked for so far.
  private let activity: @Sendable () -> Int
  /// Called when nothing is left to be cleared.
  private let cleared: @Sendable () -> Void

  init(
    _ rows: DatabaseRows, _ limits: StagingLimits, activity: @escaping @Sendable () -> Int,
    cleared: @escaping @Sendable () -> Void
  ) {
    self.limits = limits
    self.rows = rows
    self.activity = activity
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
  func leave() {
    let pause = state.withLock { state in
      state.isStopped = true
      return state.pause
    }
    pause?.cancel()
  }

  /// Ends the clearing after the step that is under way.
  func stop() async {
    leave()
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state -> Bool in
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
    let row = RowKeys.garbage(garbage.number)
    var rest = garbage.range
    var seen = (count: activity(), at: ContinuousClock.now)
    while !state.withLock({ $0.isStopped }) {
      let began = ContinuousClock.now
      let isBusy = began - seen.at < Cleaner.quietAfter
      let most = isBusy ? min(limits.cleanedRows, limits.cleanedRowsWhenBusy) : limits.cleanedRows
      let next = try await store.execute(validating: nil) { [limits, rest] writer -> KeyRange? in
        // It may have found its place since.
        guard try writer.get(row) != nil else { return nil }
        return try Cleaner.clear(rest, in: writer, row, most, limits)
      }.result
      guard let next else { break }
      rest = next
      if isBusy { await pause(for: (ContinuousClock.now - began) * Cleaner.pauseFactor) }
      let count = activity()
      if count != seen.count { seen = (count, .now) }
    }
    return true
  }

  /// How much longer than a step others have the database to themselves.
  private static let pauseFactor = 4
  /// After how long others count as gone.
  private static let quietAfter = Duration.milliseconds(250)
  private static let longestPause = Duration.milliseconds(500)

  private func pause(for time: Duration) async {
    let pause = Task { _ = try? await Task.sleep(for: min(time, Cleaner.longestPause)) }
    let isStopped = state.withLock { state in
      state.pause = pause
      return state.isStopped
    }
    if isStopped { pause.cancel() }
    await pause.value
    state.withLock { $0.pause = nil }
  }

  /// Clears the beginning of a range; the rest of it, or nil, and its row is cleared too, if that was all. Going on from
  /// there spares a look at what was cleared before, which costs as much as rows for a while.
  private static func clear(
    _ range: KeyRange, in writer: any SequencedTransaction, _ row: [UInt8], _ most: Int,
    _ limits: StagingLimits
  ) throws -> KeyRange? {
    var keys: [[UInt8]] = []
    var bytes = 0
    var isAll = true
    try writer.scan(range, reverse: false) { key, _, _ in
      isAll = keys.count < most && bytes < limits.cleanedBytes
      if isAll {
        keys.append(Array(key))
        bytes += key.count
      }
      return isAll
    }
    for key in keys { try writer.clear(key) }
    guard let last = keys.last, !isAll else {
      try writer.clear(row)
      return nil
    }
    return KeyRange(start: last + [0], end: range.end)
  }
}
