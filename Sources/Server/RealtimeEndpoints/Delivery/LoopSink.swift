// A loop sink delivers the engine's outputs to one connection. A loop sink group delivers them to all
// connections of one event loop.
//
// An output is a response to a request, a push (the notification that a listen's data has changed), or the
// end of the session. The engine delivers the outputs for all connections of a loop together, with one hop to
// that loop. Each connection then writes its outputs. A connection with many outputs writes them in batches,
// and the loop serves other connections between the batches.
//
// Invariants
//   1. A receiver is used on its event loop only.
//   2. A receiver gets its outputs in order. While a large output is encoded off the loop, later outputs
//      wait.
//   3. Outputs for a client that does not read are queued, and pushes are coalesced (see OutboundQueue).

import Dispatch
import NIOConcurrencyHelpers
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
  /// Closes the connection because its queue exceeds ``maximumQueuedBytes``.
  func disconnectForOverflow()
  /// Sends outputs.
  func receive(_ outputs: [RealtimeOutput])
  /// Returns a closure that encodes a given output, if encoding it on the event loop would take too long; nil
  /// otherwise.
  func encoding(of output: RealtimeOutput) -> (@Sendable () -> ByteBuffer?)?
  /// Sends an output that was encoded off the event loop. `encoded` is nil if the output is too large for the
  /// client.
  func receive(_ output: RealtimeOutput, encoded: ByteBuffer?)
}

/// The engine's handle on one connection.
final class LoopSink: RealtimeSink {
  private struct State {
    var receiver: (any OutputReceiver)?
    /// Outputs that wait for the client, for the scheduler, or for the encoding of an earlier output.
    var queue = OutboundQueue()
    var isEncoding = false
    var isHandingOver = false
    var isScheduled = false
  }

  /// The maximum number of outputs handed over in one time slice.
  private static let maximumBatchCount = 64
  /// The pause between two batches. An event loop polls its sockets only when no task is due, so an immediate
  /// next batch would keep it from polling.
  private static let pause = TimeAmount.microseconds(50)

  private let loopGroup: LoopSinkGroup
  private let state: NIOLoopBoundBox<State>

  var group: any RealtimeSinkGroup { loopGroup }

  /// Creates a handle on the receiver's event loop. ``detach()`` breaks the reference cycle.
  init(_ group: LoopSinkGroup, _ receiver: any OutputReceiver) {
    loopGroup = group
    state = NIOLoopBoundBox(State(receiver: receiver), eventLoop: group.eventLoop)
  }

  /// The number of outputs that wait in the queue or for their encoding. A push that is coalesced later does
  /// not change it.
  var queuedCount: Int { state.value.queue.count + (state.value.isEncoding ? 1 : 0) }

  /// Hands over outputs, or queues them. Called on the event loop.
  func receive(_ outputs: [RealtimeOutput]) {
    guard let receiver = state.value.receiver else { return }
    let isBackpressured = receiver.isBackpressured
    // A client that does not read would delay the end of its session, so queued outputs are skipped.
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

  /// Hands over one batch of queued outputs if the client reads, and schedules the next batch. Called when
  /// the client reads again.
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
    loopGroup.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) {
      self.state.value.isScheduled = false
      self.resume()
    }
  }

  /// Hands over outputs up to the first one that must be encoded off the loop. The outputs after it return to
  /// the front of the queue.
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
  /// Deliveries that the event loop has not handed over yet.
  private let waiting = NIOLockedValueBox<[RealtimeDelivery]>([])
  /// A serial queue that encodes outputs. The first connection's job encodes a shared push, and the jobs of
  /// the other connections reuse its bytes.
  private let encoding = DispatchQueue(label: "hearth.encoding")
  /// A serial queue for the largest outputs, so that smaller outputs do not wait for them.
  private let largeEncoding = DispatchQueue(label: "hearth.encoding.large")
  /// The minimum estimated JSON size of an output that uses the queue for the largest outputs, in bytes.
  private static let largeBytes = 2 << 20

  init(_ eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
  }

  func deliver(_ deliveries: [RealtimeDelivery]) {
    let isFirst = waiting.withLockedValue { waiting in
      defer { waiting += deliveries }
      return waiting.isEmpty
    }
    if isFirst { eventLoop.execute { self.deliverWaiting() } }
  }

  /// Hands over all waiting deliveries. It groups them by connection, so that a busy loop writes once for
  /// each connection.
  private func deliverWaiting() {
    let deliveries = waiting.withLockedValue { waiting in
      defer { waiting = [] }
      return waiting
    }
    var sinks: [LoopSink] = []
    var outputs: [ObjectIdentifier: [RealtimeOutput]] = [:]
    for delivery in deliveries {
      guard let sink = delivery.sink as? LoopSink else { continue }
      if outputs[ObjectIdentifier(sink)] == nil { sinks.append(sink) }
      outputs[ObjectIdentifier(sink), default: []] += delivery.outputs
    }
    for sink in sinks {
      if let outputs = outputs[ObjectIdentifier(sink)] { sink.receive(outputs) }
    }
  }

  /// Encodes an output off the event loop, then calls `then` on the event loop.
  fileprivate func encode(
    _ size: Int, _ encode: @escaping @Sendable () -> ByteBuffer?,
    then: @escaping @Sendable (ByteBuffer?) -> Void
  ) {
    (size < Self.largeBytes ? encoding : largeEncoding).async { [eventLoop] in
      let encoded = encode()
      eventLoop.execute { then(encoded) }
    }
  }

  /// Releases a large value off the event loop, because freeing its many objects takes long. Waits a second,
  /// so that this reference is the last one.
  fileprivate func releaseLater(_ output: RealtimeOutput) {
    guard output.estimatedSize >= Self.largeBytes else { return }
    largeEncoding.asyncAfter(deadline: .now() + .seconds(1)) { withExtendedLifetime(output) {} }
  }
}

extension RealtimeOutput {
  /// The estimated size of the output's JSON, in bytes.
  var estimatedSize: Int {
    switch self {
    case .push(let push): push.estimatedSize
    case .response(_, .value(let node)): node.estimatedSize
    case .response, .authRevoked, .ended: 0
    }
  }
}
