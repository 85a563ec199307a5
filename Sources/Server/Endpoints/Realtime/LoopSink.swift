// From the engine's fan-out to the connections of one event loop: one hop for a whole batch, then each
// connection writes its own. Invariant: receivers are touched on their event loop only.

import NIOCore
import RealtimeEngine

/// A connection that is told things, on its event loop.
protocol LoopReceiver: AnyObject {
  func receive(_ outputs: [RealtimeOutput])
}

/// The engine's handle on one connection.
final class LoopSink: RealtimeSink {
  let group: any RealtimeSinkGroup
  private let receiver: NIOLoopBoundBox<(any LoopReceiver)?>

  /// Creates a handle on the receiver's event loop. ``detach()`` ends the cycle between the two.
  init(_ group: LoopSinkGroup, _ receiver: any LoopReceiver) {
    self.group = group
    self.receiver = NIOLoopBoundBox(receiver, eventLoop: group.eventLoop)
  }

  /// Hands over, on the event loop.
  func receive(_ outputs: [RealtimeOutput]) { receiver.value?.receive(outputs) }

  /// Ends the connection's side, on the event loop: what still comes is dropped.
  func detach() { receiver.value = nil }
}

/// The connections of one event loop.
final class LoopSinkGroup: RealtimeSinkGroup {
  let eventLoop: any EventLoop

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func deliver(_ deliveries: [RealtimeDelivery]) {
    eventLoop.execute {
      for delivery in deliveries {
        (delivery.sink as? LoopSink)?.receive(delivery.outputs)
      }
    }
  }
}
