// Chooses the version that a new read sees: the newest durable version. If it is older than `maximumReadAge`,
// also starts to reserve a newer version, so that versions stay close to the current time.
//
// A reservation waits in the queue of the sequencer, which runs one commit of a database at a time, and for the disk
// sync in progress. If the newest version is older than a second, reads wait for one shared reservation, for at most
// `EngineLimits.readTimeout`. After that they continue with the older version, and the reservation continues in the
// background.
//
// Invariant: the chosen version is the newest durable version. Therefore a read sees every write acknowledged
// before it, and a client's read times never decrease.

import FirestoreModel
import Locking
import OrderedStore

extension FirestoreDatabase {
  /// How much older than the clock a read's version may be before a new one is reserved, in microseconds.
  /// Reads cause at most one reservation per interval, and none while commits occur.
  static let maximumReadAge: UInt64 = 100_000
  /// How much older than the clock a read's version may be before the read waits for the reservation, in
  /// microseconds.
  static let maximumUnwaitedReadAge: UInt64 = 1_000_000

  /// The newest version, for a new read. It is close to the current time even if the last commit is old.
  /// Otherwise the store could delete the version while the read continues.
  ///
  /// If the store cannot write, no version can be reserved. Then its newest version is used, since nothing is
  /// committed after it.
  ///
  /// - Parameter seconds: how many seconds the version must at least stay readable. More than half of the
  ///   history's length cannot be guaranteed.
  func recentVersion(readableFor seconds: Int = 0) async -> Version {
    if let version = rows.latestVersion(within: FirestoreDatabase.maximumReadAge) { return version }
    // A version in the older half of history could expire during the read, so the read waits for a new one.
    let history = options.limits.historySeconds
    let window = UInt64(clamping: min(history * 500_000, (history - seconds) * 1_000_000))
    guard rows.latestVersion(within: window) != nil else {
      return (try? await rows.recentVersion(within: FirestoreDatabase.maximumReadAge)) ?? rows.latestVersion
    }
    // If the newest version is younger than a second, the read does not wait. So the sequencer's queue does
    // not delay reads of a database that is read frequently.
    let reservation = reservation()
    if let version = rows.latestVersion(within: FirestoreDatabase.maximumUnwaitedReadAge) { return version }
    await reservation.wait()
    return rows.latestVersion
  }

  /// The version reservation in progress, or a new one.
  private func reservation() -> VersionReservation {
    versionReservation.withLock { current in
      if let current { return current }
      let reservation = VersionReservation()
      current = reservation
      let timeout = Task {
        // The timeout uses real time and not the engine's clock, which tests may replace: it bounds the
        // caller's actual wait.
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

/// A version reservation in progress, for which reads wait.
final class VersionReservation: Sendable {
  private struct State {
    var isComplete = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Guarded(State())

  /// Returns when the reservation completes or times out; immediately if it has.
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
