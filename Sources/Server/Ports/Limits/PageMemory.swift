// The memory of the results that one connection's streams hold until its client has read them. A stream reserves memory for a
// page of results before it reads them from the store, and waits while its connection has used up its share.
//
// Invariants
//   1. The held bytes stay within the connection's share, except for a single page that is larger.
//   2. Streams wait in the order of their arrival. A waiting stream holds no results.
//   3. Every waiting stream continues: when there is room, with an error after the timeout, or at the end of the connection.
//
// Decision: docs/decisions/0031-shares-of-memory.md

import NIOConcurrencyHelpers
package import NIOCore

/// The error of a stream that found no memory for its results.
package struct MemoryRefusal: Error {
  /// The text for the client.
  package let text: String
}

/// The results that one connection's streams hold. Usable from any thread.
package final class PageMemory: Sendable {
  private struct Waiting {
    var bytes: Int
    var deadline: NIODeadline
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var held = 0
    var waiting = CircularBuffer<Waiting>(initialCapacity: 0)
    var hasTimer = false
    var isClosed = false
  }

  /// Maximum number of waiting streams. Streams that the client has reset keep waiting and are included.
  private static let maximumWaiting = 4_000
  /// The pause between two checks whether other connections have released memory.
  private static let pause = TimeAmount.milliseconds(100)

  private let holder: MemoryHolder
  private let share: Int
  private let timeout: TimeAmount
  private let eventLoop: any EventLoop
  private let state = NIOLockedValueBox(State())

  /// - Parameter holder: the connection in the budget.
  package init(_ holder: MemoryHolder, _ limits: PortLimits, on eventLoop: any EventLoop) {
    self.holder = holder
    self.eventLoop = eventLoop
    share = limits.memory.connectionShare
    timeout = limits.responseTimeout
  }

  private var refusal: MemoryRefusal {
    MemoryRefusal(
      text: "The results that this connection has not read hold as many bytes as they may, \(share), or the "
        + "server has no memory for more. Read the results, or try again later.")
  }

  /// Reserves memory, and waits for it.
  /// - Throws: ``MemoryRefusal`` if there is none within the time in which clients have to read a response;
  ///   `CancellationError` after the end of the connection.
  package func reserve(_ bytes: Int) async throws {
    if reserveNow(bytes, within: share) { return }
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      let error: (any Error)? = state.withLockedValue { state in
        if state.isClosed { return CancellationError() }
        guard state.waiting.count < Self.maximumWaiting else { return refusal }
        state.waiting.append(Waiting(bytes: bytes, deadline: .now() + timeout, continuation: continuation))
        return nil
      }
      if let error { return continuation.resume(throwing: error) }
      startTimer()
    }
  }

  /// Reserves memory for results that a stream may drop, if they fit into half of the share now. Otherwise returns false
  /// and reserves nothing. The other half remains for pages of results, which every stream needs to continue.
  package func reserveNow(_ bytes: Int) -> Bool {
    reserveNow(bytes, within: share / 2)
  }

  private func reserveNow(_ bytes: Int, within share: Int) -> Bool {
    state.withLockedValue { state in
      guard state.waiting.isEmpty, !state.isClosed else { return false }
      return reserveIfPossible(bytes, within: share, &state)
    }
  }

  /// Changes reserved bytes from `old` to `new`. The bytes may grow beyond the share and the budget.
  package func resize(from old: Int, to new: Int) {
    state.withLockedValue { state in
      state.held += new - old
      precondition(state.held >= 0, "invariant: a stream releases no more than it reserved")
      if new > old { holder.reserveUnchecked(new - old) } else if new < old { holder.release(old - new) }
    }
    if new < old { resumeWaiting() }
  }

  /// Changes the counted bytes of a response that is being assembled, from `old` to `new`. The bytes count in the budget,
  /// but not against the connection's share. Otherwise a stream that holds a part of its response could not continue.
  package func count(from old: Int, to new: Int) {
    if new > old { holder.reserveUnchecked(new - old) } else if new < old { holder.release(old - new) }
  }

  /// Ends the waiting streams, at the end of the connection.
  package func close() {
    let waiting = state.withLockedValue { state in
      state.isClosed = true
      defer { state.waiting = CircularBuffer(initialCapacity: 0) }
      return state.waiting
    }
    for stream in waiting { stream.continuation.resume(throwing: CancellationError()) }
  }

  /// Reserves the bytes for a stream if the share and the budget have room. Returns false, and reserves nothing, if not.
  private func reserveIfPossible(_ bytes: Int, within share: Int, _ state: inout State) -> Bool {
    guard state.held == 0 || state.held + bytes <= share, holder.reserveResults(bytes) else { return false }
    state.held += bytes
    return true
  }

  private func resumeWaiting() {
    var resumed: [CheckedContinuation<Void, any Error>] = []
    state.withLockedValue { state in
      while let next = state.waiting.first, reserveIfPossible(next.bytes, within: share, &state) {
        state.waiting.removeFirst()
        resumed.append(next.continuation)
      }
    }
    for continuation in resumed { continuation.resume() }
  }

  // MARK: Time

  private func startTimer() {
    let starts = state.withLockedValue { state in
      guard !state.hasTimer, !state.waiting.isEmpty else { return false }
      state.hasTimer = true
      return true
    }
    if starts { eventLoop.scheduleTask(in: Self.pause) { self.check() } }
  }

  /// Resumes the streams for which there is room now, and rejects those that have waited too long.
  private func check() {
    resumeWaiting()
    var expired: [CheckedContinuation<Void, any Error>] = []
    state.withLockedValue { state in
      state.hasTimer = false
      let now = NIODeadline.now()
      while let first = state.waiting.first, first.deadline <= now {
        state.waiting.removeFirst()
        expired.append(first.continuation)
      }
    }
    for continuation in expired { continuation.resume(throwing: refusal) }
    startTimer()
  }
}
