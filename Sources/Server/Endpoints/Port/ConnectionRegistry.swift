// The open connections of one port: counted against the limit, told to finish on drain, closed in the end.

import NIOConcurrencyHelpers
import NIOCore

final class ConnectionRegistry: Sendable {
  private struct State {
    var channels: [ObjectIdentifier: any Channel] = [:]
    var drained: EventLoopPromise<Void>?
  }

  private let maximum: Int
  private let state = NIOLockedValueBox(State())

  init(maximum: Int) {
    self.maximum = maximum
  }

  /// The number of open connections.
  var count: Int { state.withLockedValue { $0.channels.count } }

  /// Adds a connection until it closes; false if it must be refused.
  func admit(_ channel: any Channel) -> Bool {
    let id = ObjectIdentifier(channel)
    let admitted = state.withLockedValue { state in
      guard state.drained == nil, state.channels.count < maximum else { return false }
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

  private func closeAll() {
    for channel in state.withLockedValue({ Array($0.channels.values) }) { channel.close(promise: nil) }
  }

  private func remove(_ id: ObjectIdentifier) {
    let drained = state.withLockedValue { state -> EventLoopPromise<Void>? in
      state.channels[id] = nil
      return state.channels.isEmpty ? state.drained : nil
    }
    drained?.succeed(())
  }
}
