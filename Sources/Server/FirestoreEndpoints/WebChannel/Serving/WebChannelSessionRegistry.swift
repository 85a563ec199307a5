// The WebChannel sessions of one port, by ID, with the accounting of their memory.
//
// Invariants: the number of sessions never exceeds its limit. The reported bytes exceed their limit only until the
// evictions that follow the report. `longHoldCount` is the number of entries with `isLongHold`, and none of them is idle.

import NIOConcurrencyHelpers
import NIOCore
import Ports

/// The registry of open sessions.
final class WebChannelSessionRegistry: Sendable {
  private struct Entry {
    let stream: FirestoreRoute.Channel
    let responder: WebChannelResponder
    var held = 0
    /// The time at which the session's last back channel (its open GET request) ended; nil while one is open.
    var idleSince: NIODeadline?
    /// Whether the open back channel may occupy its connection for the full time.
    var isLongHold = false
  }

  private struct State {
    var entries: [String: Entry] = [:]
    var held = 0
    /// The number of sessions whose open back channel may occupy its connection for the full time.
    var longHoldCount = 0

    /// Records whether a session's open back channel may occupy its connection for the full time.
    mutating func setLongHold(_ id: String, _ isLongHold: Bool) {
      guard let entry = entries[id], entry.isLongHold != isLongHold else { return }
      entries[id]?.isLongHold = isLongHold
      longHoldCount += isLongHold ? 1 : -1
    }
  }

  let port: PortLimits
  let limits: WebChannelLimits
  private let state = NIOLockedValueBox(State())

  init(_ port: PortLimits, _ limits: WebChannelLimits) {
    self.port = port
    self.limits = limits
  }

  /// The number of sessions.
  var count: Int { state.withLockedValue { $0.entries.count } }

  /// Bytes that all sessions hold.
  var heldBytes: Int { state.withLockedValue { $0.held } }

  /// Adds a session; false if the number of sessions is at its limit.
  func add(_ id: String, _ responder: WebChannelResponder, _ stream: FirestoreRoute.Channel) -> Bool {
    state.withLockedValue { state in
      guard state.entries.count < limits.maximumSessions else { return false }
      state.entries[id] = Entry(stream: stream, responder: responder, idleSince: .now())
      return true
    }
  }

  /// Returns the session with an ID; nil if it does not exist or belongs to the other stream.
  func responder(_ id: String, _ stream: FirestoreRoute.Channel) -> WebChannelResponder? {
    state.withLockedValue { state in
      guard let entry = state.entries[id], entry.stream == stream else { return nil }
      return entry.responder
    }
  }

  /// Closes a session asynchronously. May be called on any thread.
  func close(_ id: String) { state.withLockedValue { $0.entries[id]?.responder }?.close() }

  /// Records that a session opens a back channel. Returns false if the back channel occupies a connection, and as many others
  /// as a browser has connections, except one, may occupy theirs for the full time.
  func mayHoldLong(_ session: WebChannelSessionHandler, occupiesConnection: Bool) -> Bool {
    state.withLockedValue { state in
      state.entries[session.id]?.idleSince = nil
      state.setLongHold(session.id, false)
      guard occupiesConnection else { return true }
      guard state.longHoldCount < WebChannelLimits.browserConnections - 1 else { return false }
      state.setLongHold(session.id, true)
      return true
    }
  }

  func remove(_ session: WebChannelSessionHandler) {
    state.withLockedValue { state in
      state.setLongHold(session.id, false)
      if let entry = state.entries.removeValue(forKey: session.id) { state.held -= entry.held }
    }
  }

  /// Records the bytes that a session holds, and evicts idle sessions above the limit. Returns false if the session must
  /// end.
  func report(_ session: WebChannelSessionHandler, held: Int, isIdle: Bool) -> Bool {
    let (fits, evicted) = state.withLockedValue { state -> (Bool, [WebChannelResponder]) in
      guard var entry = state.entries[session.id] else { return (false, []) }
      let grows = held > entry.held
      state.held += held - entry.held
      entry.held = held
      entry.idleSince = isIdle ? entry.idleSince ?? .now() : nil
      state.entries[session.id] = entry
      if isIdle { state.setLongHold(session.id, false) }
      guard grows, state.held > limits.maximumHeldBytes else { return (true, []) }
      return Self.evictIdle(&state, limits.maximumHeldBytes, for: session.id)
    }
    for responder in evicted { responder.onLoop { $0.close() } }
    return fits
  }

  /// Removes idle sessions, longest idle first, until the total is within the limit.
  private static func evictIdle(
    _ state: inout State, _ limit: Int, for id: String
  ) -> (fits: Bool, evicted: [WebChannelResponder]) {
    let idle = state.entries.filter { $0.key != id && $0.value.held > 0 }
      .compactMap { key, entry in entry.idleSince.map { (key, $0) } }
      .sorted { $0.1 < $1.1 }
    var evicted: [WebChannelResponder] = []
    for (key, _) in idle {
      guard state.held > limit else { break }
      guard let entry = state.entries.removeValue(forKey: key) else { continue }
      state.held -= entry.held
      evicted.append(entry.responder)
    }
    return (state.held <= limit, evicted)
  }
}
