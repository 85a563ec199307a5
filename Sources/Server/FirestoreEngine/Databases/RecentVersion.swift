// Which version a read sees that begins now: one of about the time that it is, unless that takes long to have.
//
// Invariant: it is the newest durable one, so that a read sees all that was acknowledged before it and no client's times go
// back. A reservation waits in the sequencer's line and for the sync under way, which others may hold up: reads that find no
// time of the last second wait for it together, and for `EngineLimits.readPatience` in all; it goes on in the background.

import FirestoreModel
import Locking
import OrderedStore

extension FirestoreDatabase {
  /// How much older than the clock a read's time may be without a new one being reserved, in microseconds. Reading costs a
  /// reservation this often at most, and none while there are commits.
  static let readAge: UInt64 = 100_000
  /// How much older it may be without the read waiting for that, in microseconds.
  static let unwaitedAge: UInt64 = 1_000_000

  /// The newest state's version, for a read that begins now: of about the time that it is, however long ago the last
  /// commit was, so that it does not fall out of history while its reader goes on.
  ///
  /// A store that cannot write any more commits nothing above the version that it stands at, which is as good then.
  ///
  /// - Parameter seconds: how long at least the version has to stay in history, half of that at the least.
  func recentVersion(keptFor seconds: Int = 0) async -> Version {
    if let version = rows.latestVersion(within: FirestoreDatabase.readAge) { return version }
    // What lies in the older half of history might be forgotten while its reader goes on: that is waited out.
    let history = options.limits.historySeconds
    let window = UInt64(clamping: min(history * 500_000, (history - seconds) * 1_000_000))
    guard rows.latestVersion(within: window) != nil else {
      return (try? await rows.recentVersion(within: FirestoreDatabase.readAge)) ?? rows.latestVersion
    }
    // What others do in the sequencer's line holds up nobody who reads all the time.
    let reservation = reservation()
    if let version = rows.latestVersion(within: FirestoreDatabase.unwaitedAge) { return version }
    await reservation.wait()
    return rows.latestVersion
  }

  /// The reservation under way, or a new one.
  private func reservation() -> Reservation {
    reserving.withLock { current in
      if let current { return current }
      let reservation = Reservation()
      current = reservation
      let patience = Task {
        // The machine's time, whatever the engine's clock: it bounds how long a caller really waits.
        try? await Task.sleep(nanoseconds: EngineLimits.readPatience * 1_000)
        reservation.end()
      }
      Task { [rows, reserving] in
        _ = try? await rows.recentVersion(within: FirestoreDatabase.readAge)
        reserving.withLock { $0 = nil }
        reservation.end()
        patience.cancel()
      }
      return reservation
    }
  }
}

/// A reservation that reads wait for.
final class Reservation: Sendable {
  private struct State {
    var isOver = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Guarded(State())

  /// Returns once it is over; at once if it is.
  func wait() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if !state.isOver { state.waiting.append(continuation) }
        return state.isOver
      }
      if isOver { continuation.resume() }
    }
  }

  /// Nobody waits any longer.
  func end() {
    let waiting = state.withLock { state in
      state.isOver = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}
