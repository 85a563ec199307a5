// Registers the open connections of one port: enforces the connection limits, and drains the connections at shutdown.

import NIOConcurrencyHelpers
import NIOCore

/// The number of connections that all ports of a process may hold together.
package final class ConnectionBudget: Sendable {
  private let maximum: Int
  private let available: NIOLockedValueBox<Int>

  /// Creates a budget of `connections` connections.
  package init(_ connections: Int) {
    maximum = connections
    available = NIOLockedValueBox(connections)
  }

  /// Reserves one connection. Returns false if none is available.
  func reserve() -> Bool {
    available.withLockedValue { available in
      guard available > 0 else { return false }
      available -= 1
      return true
    }
  }

  /// Releases one connection.
  func release() {
    let released = available.withLockedValue { available in
      available += 1
      return available
    }
    precondition(released <= maximum, "invariant: a connection budget releases no more than it reserved")
  }
}

/// The open connections of one port.
final class ConnectionRegistry: Sendable {
  private struct State {
    var channels: [ObjectIdentifier: any Channel] = [:]
    var drained: EventLoopPromise<Void>?
  }

  private let maximum: Int
  private let budget: ConnectionBudget?
  private let state = NIOLockedValueBox(State())

  init(maximum: Int, budget: ConnectionBudget?) {
    self.maximum = maximum
    self.budget = budget
  }

  /// The number of open connections.
  var count: Int { state.withLockedValue { $0.channels.count } }

  /// Whether the port rejects connections because it is shutting down.
  var isDraining: Bool { state.withLockedValue { $0.drained != nil } }

  /// Registers a connection until it closes. Returns false if the connection has to be rejected.
  func admit(_ channel: any Channel) -> Bool {
    let id = ObjectIdentifier(channel)
    let admitted = state.withLockedValue { state in
      guard state.drained == nil, state.channels.count < maximum, budget?.reserve() ?? true else {
        return false
      }
      state.channels[id] = channel
      return true
    }
    if admitted {
      channel.closeFuture.whenComplete { _ in self.remove(id) }
    }
    return admitted
  }

  /// Asks every connection to finish, and waits until all are closed. Closes the remaining ones after `grace`. A later call
  /// only waits for the end of the first drain.
  func drain(grace: TimeAmount, on eventLoop: any EventLoop) async {
    let promise = eventLoop.makePromise(of: Void.self)
    let (earlier, open) = state.withLockedValue { state in
      defer { state.drained = state.drained ?? promise }
      return (state.drained, Array(state.channels.values))
    }
    if let earlier {
      promise.succeed(())
      try? await earlier.futureResult.get()
      return
    }
    if open.isEmpty { promise.succeed(()) }
    for channel in open {
      channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
    }
    let closing = eventLoop.scheduleTask(in: grace) { self.closeAll() }
    try? await promise.futureResult.get()
    closing.cancel()
  }

  /// Closes the remaining connections immediately. No TLS close alert is sent, since stalled peers would not answer it.
  private func closeAll() {
    for channel in state.withLockedValue({ Array($0.channels.values) }) {
      channel.eventLoop.execute { channel.disconnect() }
    }
  }

  private func remove(_ id: ObjectIdentifier) {
    let drained = state.withLockedValue { state -> EventLoopPromise<Void>? in
      if state.channels.removeValue(forKey: id) != nil { budget?.release() }
      return state.channels.isEmpty ? state.drained : nil
    }
    drained?.succeed(())
  }
}
