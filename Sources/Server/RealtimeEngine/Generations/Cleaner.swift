// Clears invisible rows in the background: the rows of replaced subtrees, and of staged generations that were never
// installed. A staged generation is a subtree whose rows are stored under a separate prefix, before one commit installs
// it in the tree. A pending delete is a row that names a range of invisible rows.
//
// While clients use the database, the cleaner works in small steps, and pauses four times as long as each
// step takes.
//
// Invariants
//   1. A commit clears rows only if their pending delete still exists in it.
//   2. A generation that is being staged is not cleared.
//   3. A database has one active cleaner, because only this cleaner knows the staged generations.

import Locking
import OrderedStore

/// Clears the pending deletes of one database.
final class Cleaner: Sendable {
  private struct State {
    var isRunning = false
    var hasWork = false
    var isStopped = false
    /// The generations that are being staged or wait to be installed.
    var active: Set<UInt64> = []
    var idle: [CheckedContinuation<Void, Never>] = []
    /// The pause between two steps.
    var pause: Task<Void, Never>?
  }

  let limits: StagingLimits
  private let rows: DatabaseRows
  private let state = Guarded(State())
  /// Returns the number of client operations so far.
  private let activity: @Sendable () -> Int
  /// Called when no pending delete is left.
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

  /// Protects a generation while it is staged.
  func protect(_ number: UInt64) { state.withLock { _ = $0.active.insert(number) } }

  /// Ends the protection of a generation, and clears it unless it was installed.
  func unprotect(_ number: UInt64) {
    state.withLock { _ = $0.active.remove(number) }
    wake()
  }

  /// Starts clearing.
  func wake() {
    let starts = state.withLock { state -> Bool in
      guard !state.isStopped else { return false }
      state.hasWork = true
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if starts { Task { await self.run() } }
  }

  /// Stops after the current step. If the database is opened again, a new cleaner starts. This cleaner does
  /// not know the new one's staged generations, and would clear them.
  func stopAfterStep() {
    let pause = state.withLock { state in
      state.isStopped = true
      return state.pause
    }
    pause?.cancel()
  }

  /// Stops, and waits for the current step.
  func stop() async {
    stopAfterStep()
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state -> Bool in
        if state.isRunning { state.idle.append(continuation) }
        return !state.isRunning
      }
      if isIdle { continuation.resume() }
    }
  }

  private func run() async {
    while consumeWake() {
      do {
        var hasCleared = false
        while try await clearNext() { hasCleared = true }
        if hasCleared { cleared() }
      } catch {
        // The store cannot be read or written, so this cleaner stops. The next start finds the pending
        // deletes again.
        state.withLock { $0.isStopped = true }
      }
    }
    let waiting = state.withLock { state in
      defer { state.idle = [] }
      return state.idle
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Returns whether `wake()` was called since the last pass, so that another pass has to follow. Ends the run otherwise.
  private func consumeWake() -> Bool {
    state.withLock { state in
      let continues = state.hasWork && !state.isStopped
      state.hasWork = false
      if !continues { state.isRunning = false }
      return continues
    }
  }

  /// Clears one pending delete. Returns whether there may be more.
  private func clearNext() async throws -> Bool {
    guard let store = rows.current, !state.withLock({ $0.isStopped }) else { return false }
    let found = try await store.read(at: nil) { view in
      var found: [(number: UInt64, range: KeyRange)] = []
      try view.scan(RowKeys.pendingDeletes, reverse: false) { key, value, _ in
        guard key.count == 9 else { throw NodeDecoder.corrupted }
        let number = UInt64(bigEndian: key.loadUnaligned(fromByteOffset: 1, as: UInt64.self))
        found.append((number, try GenerationRows.decode(Array(value))))
        return found.count < 64
      }
      return found
    }
    let active = state.withLock { $0.active }
    guard let pending = found.first(where: { !active.contains($0.number) }) else { return false }
    let row = RowKeys.pendingDelete(pending.number)
    var rest = pending.range
    var lastActivity = (count: activity(), at: ContinuousClock.now)
    while !state.withLock({ $0.isStopped }) {
      let began = ContinuousClock.now
      let isBusy = began - lastActivity.at < Cleaner.idleAfter
      let maximum = isBusy ? min(limits.cleanedRows, limits.cleanedRowsWhenBusy) : limits.cleanedRows
      let next = try await store.execute(validating: nil) { [limits, rest] writer -> KeyRange? in
        // If the pending delete is gone, the generation has been installed, and its rows must stay.
        guard try writer.get(row) != nil else { return nil }
        return try Cleaner.clear(rest, in: writer, row, maximum, limits)
      }.result
      guard let next else { break }
      rest = next
      if isBusy { await pause(for: (ContinuousClock.now - began) * Cleaner.pauseFactor) }
      let count = activity()
      if count != lastActivity.count { lastActivity = (count, .now) }
    }
    return true
  }

  /// The length of a pause relative to its step.
  private static let pauseFactor = 4
  /// The time without client operations after which the database counts as idle.
  private static let idleAfter = Duration.milliseconds(250)
  private static let maximumPause = Duration.milliseconds(500)

  private func pause(for time: Duration) async {
    let pause = Task { _ = try? await Task.sleep(for: min(time, Cleaner.maximumPause)) }
    let isStopped = state.withLock { state in
      state.pause = pause
      return state.isStopped
    }
    if isStopped { pause.cancel() }
    await pause.value
    state.withLock { $0.pause = nil }
  }

  /// Clears the first rows of a range. Returns the remaining range; nil if no rows remain and the pending
  /// delete is cleared too. The next step starts at the remaining range, because scanning cleared rows again
  /// costs as much as scanning live rows until the store compacts them.
  private static func clear(
    _ range: KeyRange, in writer: any SequencedTransaction, _ row: [UInt8], _ maximum: Int,
    _ limits: StagingLimits
  ) throws -> KeyRange? {
    var keys: [[UInt8]] = []
    var bytes = 0
    var isAll = true
    try writer.scan(range, reverse: false) { key, _, _ in
      isAll = keys.count < maximum && bytes < limits.cleanedBytes
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
