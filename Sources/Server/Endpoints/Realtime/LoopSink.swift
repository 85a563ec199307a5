// From the engine's fan-out to the connections of one event loop: one hop for a whole batch, then each
// connection writes its own. Invariants: receivers are touched on their event loop only; a receiver takes what it is told
// in the order in which it is told, also where something large is encoded beside the loop first.

import Dispatch
import NIOCore
import RealtimeEngine

/// A connection that is told things, on its event loop.
protocol LoopReceiver: AnyObject {
  /// Takes outputs.
  func receive(_ outputs: [RealtimeOutput])
  /// How to encode an output that is too large for the event loop; nil for all others.
  func encoding(of output: RealtimeOutput) -> (@Sendable () -> ByteBuffer?)?
  /// Takes an output with what its encoding made.
  func receive(_ output: RealtimeOutput, encoded: ByteBuffer?)
}

/// The engine's handle on one connection.
final class LoopSink: RealtimeSink {
  private struct State {
    var receiver: (any LoopReceiver)?
    /// What waits behind an output that is being encoded; nil while nothing is.
    var held: [RealtimeOutput]?
  }

  private let loopGroup: LoopSinkGroup
  private let state: NIOLoopBoundBox<State>

  var group: any RealtimeSinkGroup { loopGroup }

  /// Creates a handle on the receiver's event loop. ``detach()`` ends the cycle between the two.
  init(_ group: LoopSinkGroup, _ receiver: any LoopReceiver) {
    loopGroup = group
    state = NIOLoopBoundBox(State(receiver: receiver), eventLoop: group.eventLoop)
  }

  /// Hands over, on the event loop.
  func receive(_ outputs: [RealtimeOutput]) {
    guard let receiver = state.value.receiver else { return }
    if state.value.held != nil {
      state.value.held?.append(contentsOf: outputs)
      return
    }
    for (index, output) in outputs.enumerated() {
      guard let encode = receiver.encoding(of: output) else { continue }
      if index > 0 { receiver.receive(Array(outputs[..<index])) }
      state.value.held = Array(outputs[(index + 1)...])
      loopGroup.encode(encode) { self.finish(output, $0) }
      return
    }
    receiver.receive(outputs)
  }

  private func finish(_ output: RealtimeOutput, _ encoded: ByteBuffer?) {
    guard let receiver = state.value.receiver, let rest = state.value.held else { return }
    state.value.held = nil
    receiver.receive(output, encoded: encoded)
    if !rest.isEmpty { receive(rest) }
  }

  /// Ends the connection's side, on the event loop: what still comes is dropped.
  func detach() { state.value = State() }
}

/// The connections of one event loop.
final class LoopSinkGroup: RealtimeSinkGroup {
  let eventLoop: any EventLoop
  /// One after the other: what is encoded for many connections is encoded once, and found by the others.
  private let encoding = DispatchQueue(label: "hearth.encoding")

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func deliver(_ deliveries: [RealtimeDelivery]) {
    eventLoop.execute {
      for delivery in deliveries {
        (delivery.sink as? LoopSink)?.receive(delivery.outputs)
      }
    }
  }

  /// Encodes beside the event loop and goes on there.
  fileprivate func encode(
    _ encode: @escaping @Sendable () -> ByteBuffer?, then: @escaping @Sendable (ByteBuffer?) -> Void
  ) {
    encoding.async { [eventLoop] in
      let encoded = encode()
      eventLoop.execute { then(encoded) }
    }
  }
}
