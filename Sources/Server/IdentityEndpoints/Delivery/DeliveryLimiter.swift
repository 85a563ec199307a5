// Limits the e-mails that are sent concurrently, so that many requests open few connections and processes.
//
// Invariant: at most `maximumRunning` e-mails are sent and at most `maximumWaiting` wait; a further one fails immediately.

import Locking

/// Limits concurrent deliveries.
final class DeliveryLimiter: Sendable {
  private struct State {
    var running = 0
    var waiting: [CheckedContinuation<Bool, Never>] = []
  }

  private static let maximumRunning = 8
  private static let maximumWaiting = 128

  private let state = Guarded(State())

  /// Runs a delivery when fewer than `maximumRunning` deliveries are running. Deliveries start in the order
  /// of their calls.
  /// - Throws: ``DeliveryFailure`` if too many deliveries wait, or the error of the delivery.
  func run(_ delivery: () async throws -> Void) async throws {
    let isAdmitted = await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
      enqueue(continuation)
    }
    guard isAdmitted else { throw DeliveryFailure("too many e-mails wait") }
    defer { release() }
    try await delivery()
  }

  private func enqueue(_ continuation: CheckedContinuation<Bool, Never>) {
    let isAdmitted = state.withLock { state -> Bool? in
      if state.running < Self.maximumRunning {
        state.running += 1
        return true
      }
      guard state.waiting.count < Self.maximumWaiting else { return false }
      state.waiting.append(continuation)
      return nil
    }
    if let isAdmitted { continuation.resume(returning: isAdmitted) }
  }

  /// Starts the next queued delivery, if there is one.
  private func release() {
    let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
      precondition(
        state.running > 0 && state.running <= Self.maximumRunning, "invariant: an admitted delivery ends once"
      )
      guard !state.waiting.isEmpty else {
        state.running -= 1
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.resume(returning: true)
  }
}
