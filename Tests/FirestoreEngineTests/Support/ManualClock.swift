// A clock that advances only on request.

import Locking
import OrderedStore

@testable import FirestoreEngine

/// A clock whose time changes only by `advance`.
final class ManualClock: EngineClock {
  private struct Sleeper {
    var id: Int
    var deadline: UInt64
    var resume: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var now: UInt64 = 1_000_000_000
    var wallStart = SystemClock().wallTime() - 1_000_000_000
    var sleepers: [Sleeper] = []
    var nextID = 0
    var cancelled: Set<Int> = []
  }

  private let state = Guarded(State())

  func now() -> UInt64 { state.withLock { $0.now } }

  /// The wall clock's time. It starts at the machine's time and advances with `now`.
  func wallTime() -> Int64 { state.withLock { $0.wallStart + Int64($0.now) } }

  /// Moves the wall clock only, as an administrator of the machine may do. No sleep ends.
  func setWallClock(forwardBy microseconds: Int64) { state.withLock { $0.wallStart += microseconds } }

  /// The number of suspended sleeps.
  var sleepers: Int { state.withLock { $0.sleepers.count } }

  func advance(by microseconds: UInt64) {
    let woken = state.withLock { state in
      state.now += microseconds
      let now = state.now
      let woken = state.sleepers.filter { $0.deadline <= now }
      state.sleepers.removeAll { $0.deadline <= now }
      return woken
    }
    for sleeper in woken { sleeper.resume.resume() }
  }

  func sleep(until deadline: UInt64) async throws {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (resume: CheckedContinuation<Void, any Error>) in
        let outcome: Result<Void, any Error>? = state.withLock { state in
          if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
          if deadline <= state.now { return .success(()) }
          state.sleepers.append(Sleeper(id: id, deadline: deadline, resume: resume))
          return nil
        }
        if let outcome { resume.resume(with: outcome) }
      }
    } onCancel: {
      let sleeper = state.withLock { state -> Sleeper? in
        guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
          state.cancelled.insert(id)
          return nil
        }
        return state.sleepers.remove(at: index)
      }
      sleeper?.resume.resume(throwing: CancellationError())
    }
  }
}
