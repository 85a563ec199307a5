// The stream state: the state of one stream, over successive connections and back-off delays.
//
//   stopped --start--> connecting --opened--> open
//      ^                   |                    |
//      |<------stop--------+--------------------+
//                          +------failed--------+--> failed --start--> waiting --backoffDone--> connecting
//
// Invariant: every connection has a distinct number. Events of earlier connections are ignored.

import FirebaseCore
import FirestoreModel

struct StreamState: Sendable {
  private enum State { case stopped, connecting, open, failed, waiting }

  let kind: StreamKind
  private(set) var number = 0
  private(set) var hasHandshake = false
  private var state = State.stopped
  private var backoff: Backoff
  private var isIdleTimerRunning = false

  init(_ kind: StreamKind, seed: UInt64) {
    self.kind = kind
    backoff = .firestore(seed: seed)
  }

  var isOpen: Bool { state == .open }
  var isStarted: Bool { state == .connecting || state == .open || state == .waiting }

  mutating func start() -> [EngineAction] {
    switch state {
    case .failed:
      state = .waiting
      return [.startTimer(.backoff(kind), seconds: backoff.next())]
    case .stopped: return connect()
    case .connecting, .open, .waiting: return []
    }
  }

  private mutating func connect() -> [EngineAction] {
    state = .connecting
    hasHandshake = false
    number += 1
    return [.connect(kind, number)]
  }

  mutating func backoffDone() -> [EngineAction] { state == .waiting ? connect() : [] }

  /// Called when a connection has opened. Returns whether it is the current one.
  mutating func opened(_ number: Int) -> Bool {
    guard number == self.number, state == .connecting else { return false }
    state = .open
    return true
  }

  mutating func handshakeDone() {
    hasHandshake = true
    backoff.reset()
  }

  /// Called when the server has sent a message. The delays after the next failure begin at the minimum.
  mutating func messageReceived() { backoff.reset() }

  /// The next start has no delay.
  mutating func skipBackoff() {
    if state == .failed { state = .stopped }
    backoff.reset()
  }

  mutating func failed(_ error: FirestoreError) -> [EngineAction] {
    var actions = cancelIdle()
    if error.code == .unauthenticated { actions.append(.renewToken) }
    if error.code == .resourceExhausted { backoff.useMaximum() }
    state = .failed
    hasHandshake = false
    return actions
  }

  mutating func stop() -> [EngineAction] {
    var actions = cancelIdle()
    switch state {
    case .open:
      // The client ends the write stream with an empty message.
      if kind == .write, hasHandshake { actions.append(.send(.write, .writes([]))) }
      actions.append(.disconnect(kind, number))
    case .connecting: actions.append(.disconnect(kind, number))
    case .waiting: actions.append(.stopTimer(.backoff(kind)))
    case .stopped, .failed: break
    }
    state = .stopped
    hasHandshake = false
    backoff.reset()
    return actions
  }

  // MARK: Idleness

  mutating func markIdle() -> [EngineAction] {
    guard isOpen, !isIdleTimerRunning else { return [] }
    isIdleTimerRunning = true
    return [.startTimer(.idle(kind), seconds: SyncEngine.idleSeconds)]
  }

  mutating func cancelIdle() -> [EngineAction] {
    guard isIdleTimerRunning else { return [] }
    isIdleTimerRunning = false
    return [.stopTimer(.idle(kind))]
  }

  mutating func idleTimeout() -> [EngineAction] {
    guard isIdleTimerRunning else { return [] }
    isIdleTimerRunning = false
    return isOpen ? stop() : []
  }
}

extension Backoff {
  /// The delays in seconds between attempts of a stream or a transaction: 0, then 1, then 1.5 times the
  /// previous one, up to 60. Each delay varies by ±50 %.
  static func firestore(seed: UInt64) -> Backoff {
    Backoff(initial: 1, maximum: 60, factor: 1.5, jitter: 0.5...1.5, seed: seed)
  }
}
