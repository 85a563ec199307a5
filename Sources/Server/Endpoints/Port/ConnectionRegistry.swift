// The open connections of one port: counted against the limit, told to finish on drain, closed in the end.

import NIOConcurrencyHelpers
import NIOCore

/// The connections that all ports of a process may hold together.
public final class ConnectionBudget: Sendable {
  private let left: NIOLockedValueBox<Int>

  /// A budget of so many connections.
  public init(_ connections: Int) { left = NIOLockedValueBox(connections) }

  /// Takes one; false if none is left.
  func take() -> Bool {
    left.withLockedValue { left in
      guard left > 0 else { return false }
      left -= 1
      return true
    }
  }

  /// Gives one back.
  func giveBack() { left.withLockedValue { $0 += 1 } }
}

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

  /// Whether the port takes no more connections because it is shutting down.
  var isDraining: Bool { state.withLockedValue { $0.drained != nil } }

  /// Adds a connection until it closes; false if it must be refused.
  func admit(_ channel: any Channel) -> Bool {
    let id = ObjectIdentifier(channel)
    let admitted = state.withLockedValue { state in
      guard state.drained == nil, state.channels.count < maximum, budget?.take() ?? true else { return false }
      state.channels[id] = channel
      return true
    }
    if admitted {
      channel.closeFuture.whenComplete { _ in self.remove(id) }
    }
    return admitted
  }

  /// Asks every connection to finish and waits until all are closed, closing what is left after `grace`.
  func drain(grace: TimeAmount, on eventLoop: any EventLoop) async {
    let promise = eventLoop.makePromise(of: Void.self)
    let open: [any Channel]? = state.withLockedValue { state in
      guard state.drained == nil else { return nil }
      state.drained = promise
      return Array(state.channels.values)
    }
    guard let open else {
      promise.succeed(())
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

  /// Closes what is left at once. Under TLS too: whoever stalls would not answer its end either.
  private func closeAll() {
    for channel in state.withLockedValue({ Array($0.channels.values) }) {
      channel.eventLoop.execute { channel.cutOff() }
    }
  }

  private func remove(_ id: ObjectIdentifier) {
    let drained = state.withLockedValue { state -> EventLoopPromise<Void>? in
      if state.channels.removeValue(forKey: id) != nil { budget?.giveBack() }
      return state.channels.isEmpty ? state.drained : nil
    }
    drained?.succeed(())
  }
}
