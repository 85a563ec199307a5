// The sessions of one port, by id, counted against what all of them may hold.
//
// Invariants: there are never more sessions than the limit; what they reported to hold stays within the limit, but for
// the last report of each, which is followed by the end of some.

import NIOConcurrencyHelpers
import NIOCore

final class WebChannelSessions: Sendable {
  private struct Entry {
    let stream: FirestoreRoute.Channel
    let responder: WebChannelResponder
    var held = 0
    /// Since when it has no back channel; nil while it has one.
    var idleSince: NIODeadline?
  }

  private struct State {
    var entries: [String: Entry] = [:]
    var held = 0
  }

  let port: PortLimits
  private let state = NIOLockedValueBox(State())

  var limits: WebChannelLimits { port.webChannel }

  init(_ port: PortLimits) {
    self.port = port
  }

  /// The number of sessions.
  var count: Int { state.withLockedValue { $0.entries.count } }

  /// Bytes that they hold.
  var heldBytes: Int { state.withLockedValue { $0.held } }

  /// Adds a session; false if there is no room for one.
  func add(_ id: String, _ responder: WebChannelResponder, _ stream: FirestoreRoute.Channel) -> Bool {
    state.withLockedValue { state in
      guard state.entries.count < limits.maximumSessions else { return false }
      state.entries[id] = Entry(stream: stream, responder: responder, idleSince: .now())
      return true
    }
  }

  /// The session of an id, if it carries this stream.
  func responder(_ id: String, _ stream: FirestoreRoute.Channel) -> WebChannelResponder? {
    state.withLockedValue { state in
      guard let entry = state.entries[id], entry.stream == stream else { return nil }
      return entry.responder
    }
  }

  func remove(_ session: WebChannelConversation) {
    state.withLockedValue { state in
      if let entry = state.entries.removeValue(forKey: session.id) { state.held -= entry.held }
    }
  }

  /// Takes note of what a session holds; false if it has to end.
  func report(_ session: WebChannelConversation, held: Int, isIdle: Bool) -> Bool {
    let (fits, evicted) = state.withLockedValue { state -> (Bool, [WebChannelResponder]) in
      guard var entry = state.entries[session.id] else { return (false, []) }
      let grows = held > entry.held
      state.held += held - entry.held
      entry.held = held
      entry.idleSince = isIdle ? entry.idleSince ?? .now() : nil
      state.entries[session.id] = entry
      guard grows, state.held > limits.maximumHeldBytes else { return (true, []) }
      return Self.makeRoom(&state, limits.maximumHeldBytes, for: session.id)
    }
    for responder in evicted { responder.onLoop { $0.close() } }
    return fits
  }

  /// Takes out the sessions that have been idle for longest.
  private static func makeRoom(
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
