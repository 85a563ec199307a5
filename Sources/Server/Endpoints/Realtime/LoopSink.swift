// Delivers the engine's responses and pushes to the connections of one event loop.
//
// The engine hands over a batch for all connections of a loop with one hop. Each connection then writes its
// own outputs. Connections with many outputs are scheduled (see LoopTurns), so that the loop serves others in
// between.
//
// Invariants
//   1. A receiver is used on its event loop only.
//   2. A receiver gets its outputs in order, also where a large one is first encoded off the loop.
//   3. Outputs for a client that does not read are queued and coalesced (see OutboundQueue).

import Dispatch
import NIOCore
import RealtimeEngine
import RealtimeModel

/// A connection that receives responses and pushes, on its event loop.
protocol OutputReceiver: AnyObject {
  /// Whether the client reads more slowly than the server writes. Outputs are then queued until
  /// ``LoopSink/resume()``.
  var isBackpressured: Bool { get }
  /// The maximum number of bytes queued for a client that does not read.
  var maximumQueuedBytes: Int { get }
  /// Closes the connection, for which more is queued.
  func disconnectForOverflow()
  /// Sends outputs.
  func receive(_ outputs: [RealtimeOutput])
  /// Returns how to encode an output that is too large for the event loop; nil for all others.
  func encoding(of output: RealtimeOutput) -> (@Sendable () -> ByteBuffer?)?
  /// Sends an output with its encoded bytes.
  func receive(_ output: RealtimeOutput, encoded: ByteBuffer?)
}

/// The engine's handle on one connection.
final class LoopSink: RealtimeSink, TurnTaker {
  private struct State {
    var receiver: (any OutputReceiver)?
    /// Outputs that wait for the client, for the scheduler, or for the encoding of an earlier output.
    var queue = OutboundQueue()
    var isEncoding = false
    var isHandingOver = false
    var isScheduled = false
    /// Outputs delivered while the handle waits in the queue of its event loop's deliveries; nil while it
    /// does not wait.
    var delayed: [RealtimeOutput]?
  }

  /// The maximum number of outputs handed over in one time slice.
  private static let maximumBatchCount = 64

  private let loopGroup: LoopSinkGroup
  private let state: NIOLoopBoundBox<State>

  var group: any RealtimeSinkGroup { loopGroup }

  /// Creates a handle on the receiver's event loop. ``detach()`` breaks the reference cycle between the two.
  init(_ group: LoopSinkGroup, _ receiver: any OutputReceiver) {
    loopGroup = group
    state = NIOLoopBoundBox(State(receiver: receiver), eventLoop: group.eventLoop)
  }

  /// The number of outputs that wait for the client, without the delayed ones: some of these may be coalesced
  /// later.
  var queuedCount: Int { state.value.queue.count + (state.value.isEncoding ? 1 : 0) }

  /// Delays outputs until the event loop's deliveries reach this handle. Everything delayed is handed over
  /// together, so that a busy loop writes less often.
  ///
  /// - Returns: whether the handle was queued already.
  fileprivate func enqueue(_ outputs: [RealtimeOutput]) -> Bool {
    guard state.value.delayed != nil else {
      state.value.delayed = outputs
      return false
    }
    state.value.delayed?.append(contentsOf: outputs)
    return true
  }

  /// Hands over the delayed outputs.
  fileprivate func deliverDelayed() {
    guard let outputs = state.value.delayed else { return }
    state.value.delayed = nil
    receive(outputs)
  }

  /// Hands over outputs, or queues them. Called on the event loop.
  func receive(_ outputs: [RealtimeOutput]) {
    guard let receiver = state.value.receiver else { return }
    let isBackpressured = receiver.isBackpressured
    // The end of a session does not wait for a client that does not read.
    if isBackpressured, case .ended? = outputs.last { return receiver.receive([.ended]) }
    if isBackpressured || state.value.isEncoding || state.value.isHandingOver || !state.value.queue.isEmpty
      || outputs.count > LoopSink.maximumBatchCount
    {
      for output in outputs { state.value.queue.append(output, coalescing: isBackpressured) }
      if isBackpressured, state.value.queue.bytes > receiver.maximumQueuedBytes {
        return receiver.disconnectForOverflow()
      }
      return resume()
    }
    handOver(outputs, receiver)
  }

  /// Hands over queued outputs if the client reads, and schedules the rest. Called when the client reads
  /// again.
  func resume() {
    guard !state.value.isHandingOver, !state.value.isScheduled, !state.value.isEncoding,
      let receiver = state.value.receiver, !receiver.isBackpressured
    else { return }
    var outputs: [RealtimeOutput] = []
    while outputs.count < LoopSink.maximumBatchCount, let output = state.value.queue.next() {
      outputs.append(output)
    }
    guard !outputs.isEmpty else { return }
    state.value.isHandingOver = true
    handOver(outputs, receiver)
    state.value.isHandingOver = false
    guard !state.value.queue.isEmpty, !state.value.isEncoding else { return }
    state.value.isScheduled = true
    LoopTurns.current.add(self, on: loopGroup.eventLoop)
  }

  func takeTurn() {
    state.value.isScheduled = false
    resume()
  }

  /// Hands over outputs up to the first that is encoded off the loop. The others go back to the front of the
  /// queue.
  private func handOver(_ outputs: [RealtimeOutput], _ receiver: any OutputReceiver) {
    for (index, output) in outputs.enumerated() {
      guard let encode = receiver.encoding(of: output) else { continue }
      precondition(!state.value.isEncoding, "invariant: one output of a connection is encoded at a time")
      state.value.isEncoding = true
      state.value.queue.putBack(outputs[(index + 1)...])
      if index > 0 { receiver.receive(Array(outputs[..<index])) }
      loopGroup.encode(output.estimatedSize, encode) { self.finish(output, $0) }
      return
    }
    receiver.receive(outputs)
  }

  private func finish(_ output: RealtimeOutput, _ encoded: ByteBuffer?) {
    guard let receiver = state.value.receiver else { return }
    state.value.isEncoding = false
    state.value.isHandingOver = true
    receiver.receive(output, encoded: encoded)
    state.value.isHandingOver = false
    loopGroup.releaseLater(output)
    resume()
  }

  /// Detaches the receiver, on the event loop. Later outputs are dropped.
  func detach() { state.value = State() }
}

/// The connections of one event loop.
final class LoopSinkGroup: RealtimeSinkGroup {
  let eventLoop: any EventLoop
  private let deliveries: NIOLoopBoundBox<LoopDeliveries>
  /// Encodes one output after another: a push for many connections is encoded once, and the others find the
  /// result.
  private let encoding = DispatchQueue(label: "hearth.encoding")
  /// Encodes the largest outputs, so that the others do not wait for them.
  private let largeEncoding = DispatchQueue(label: "hearth.encoding.large")
  /// The estimated size of JSON in bytes from which on an output is one of the largest.
  private static let largeBytes = 2 << 20

  init(_ eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    deliveries = .makeBoxSendingValue(LoopDeliveries(eventLoop), eventLoop: eventLoop)
  }

  func deliver(_ deliveries: [RealtimeDelivery]) {
    eventLoop.execute { self.deliveries.value.deliver(deliveries) }
  }

  /// Encodes off the event loop and continues there.
  fileprivate func encode(
    _ size: Int, _ encode: @escaping @Sendable () -> ByteBuffer?,
    then: @escaping @Sendable (ByteBuffer?) -> Void
  ) {
    (size < Self.largeBytes ? encoding : largeEncoding).async { [eventLoop] in
      let encoded = encode()
      eventLoop.execute { then(encoded) }
    }
  }

  /// Releases a large value off the event loop, after the loop's last reference is gone: it has very many
  /// objects.
  fileprivate func releaseLater(_ output: RealtimeOutput) {
    guard output.estimatedSize >= Self.largeBytes else { return }
    largeEncoding.asyncAfter(deadline: .now() + .seconds(1)) { withExtendedLifetime(output) {} }
  }
}

/// Delivers to the connections of one event loop: immediately while that takes little of the loop's time,
/// scheduled beyond.
private final class LoopDeliveries: TurnTaker {
  private let eventLoop: any EventLoop
  private var queue = CircularBuffer<LoopSink>(initialCapacity: 0)

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func deliver(_ deliveries: [RealtimeDelivery]) {
    let turns = LoopTurns.current
    for delivery in deliveries {
      guard let sink = delivery.sink as? LoopSink else { continue }
      if queue.isEmpty {
        if turns.hasTimeBesides(turns: 4) {
          turns.besides { sink.receive(delivery.outputs) }
          continue
        }
        turns.add(self, on: eventLoop)
      }
      if !sink.enqueue(delivery.outputs) { queue.append(sink) }
    }
  }

  func takeTurn() {
    let end = NIODeadline.now() + LoopTurns.turn
    repeat {
      guard let sink = queue.popFirst() else { return }
      sink.deliverDelayed()
    } while .now() < end
    if !queue.isEmpty { LoopTurns.current.add(self, on: eventLoop) }
  }
}

extension RealtimeOutput {
  /// The estimated size in bytes of JSON.
  var estimatedSize: Int {
    switch self {
    case .push(let push): push.estimatedSize
    case .response(_, .value(let node)): node.estimatedSize
    case .response, .ended: 0
    }
  }
}
