// Chooses the version that a new read sees: the newest durable version, close to the current time if that is
// available quickly.
//
// A reservation of a version waits in the sequencer's queue and for the sync in progress. Reads that find no
// version of the last second wait for one shared reservation, for at most `EngineLimits.readTimeout` in all.
// The reservation continues in the background.
//
// Invariant: the version is the newest durable one. Therefore a read sees every write acknowledged before it,
// and a client's read times never decrease.

import FirestoreModel
import Locking
import OrderedStore

extension FirestoreDatabase {
  /// How much older than the clock a read's version may be before a new one is reserved, in microseconds.
  /// Reads cause at most one reservation per interval, and none while commits occur.
  static let maximumReadAge: UInt64 = 100_000
  /// How much older it may be before a read waits for the reservation, in microseconds.
  static let maximumUnwaitedReadAge: UInt64 = 1_000_000

  /// The newest version, for a new read. It is close to the current time even if the last commit is old, so
  /// that it stays in history while the read continues.
  ///
  /// A store that cannot write commits nothing above its newest version, which then is as good.
  ///
  /// - Parameter seconds: how long the version must stay in history, at least; half of the history at most.
  func recentVersion(keptFor seconds: Int = 0) async -> Version {
    if let version = rows.latestVersion(within: FirestoreDatabase.maximumReadAge) { return version }
    // A version in the older half of history could expire during the read, so the read waits for a new one.
    let history = options.limits.historySeconds
    let window = UInt64(clamping: min(history * 500_000, (history - seconds) * 1_000_000))
    guard rows.latestVersion(within: window) != nil else {
      return (try? await rows.recentVersion(within: FirestoreDatabase.maximumReadAge)) ?? rows.latestVersion
    }
    // Work in the sequencer's queue does not delay frequent readers.
    let reservation = reservation()
    if let version = rows.latestVersion(within: FirestoreDatabase.maximumUnwaitedReadAge) { return version }
    await reservation.wait()
    return rows.latestVersion
  }

  /// The reservation in progress, or a new one.
  private func reservation() -> VersionReservation {
    versionReservation.withLock { current in
      if let current { return current }
      let reservation = VersionReservation()
      current = reservation
      let timeout = Task {
        // Real time, not the engine's clock: it bounds the caller's actual wait.
        try? await Task.sleep(nanoseconds: EngineLimits.readTimeout * 1_000)
        reservation.end()
      }
      Task { [rows, versionReservation] in
        _ = try? await rows.recentVersion(within: FirestoreDatabase.maximumReadAge)
        versionReservation.withLock { $0 = nil }
        reservation.end()
        timeout.cancel()
      }
      return reservation
    }
  }
}

/// A version reservation that reads wait for.
final class VersionReservation: Sendable {
  private struct State {
    var isComplete = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Guarded(State())

  /// Returns once it completes; immediately if it has.
  func wait() async {
    await withCheckedContinuation { continuation in
      let isComplete = state.withLock { state in
        if !state.isComplete { state.waiting.append(continuation) }
        return state.isComplete
      }
      if isComplete { continuation.resume() }
    }
  }

  /// Resumes all waiting reads.
  func end() {
    let waiting = state.withLock { state in
      state.isComplete = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}
