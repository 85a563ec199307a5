// From the engine's fan-out to the connections of one event loop: one hop for a whole batch, then each
// connection writes its own. Invariants: receivers are touched on their event loop only; a receiver takes what it is told
// in the order in which it is told, also where something large is encoded beside the loop first; what waits for a peer
// that does not read is merged (see PendingOutputs).

import Dispatch
import NIOCore
import RealtimeEngine
import RealtimeModel

/// A connection that is told things, on its event loop.
protocol LoopReceiver: AnyObject {
  /// Whether its peer does not read as fast as it is told: it is told no more until ``LoopSink/goOn()``.
  var isBehind: Bool { get }
  /// The most bytes that may wait for it then.
  var mostPendingBytes: Int { get }
  /// Ends the connection, for which more waits.
  func cutOff()
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
    /// What waits for the peer, or behind an output that is being encoded.
    var pending = PendingOutputs()
    var isEncoding = false
    var isHandingOver = false
  }

  /// The most outputs that a peer which was behind is given at once.
  private static let mostAtOnce = 64

  private let loopGroup: LoopSinkGroup
  private let state: NIOLoopBoundBox<State>

  var group: any RealtimeSinkGroup { loopGroup }

  /// Creates a handle on the receiver's event loop. ``detach()`` ends the cycle between the two.
  init(_ group: LoopSinkGroup, _ receiver: any LoopReceiver) {
    loopGroup = group
    state = NIOLoopBoundBox(State(receiver: receiver), eventLoop: group.eventLoop)
  }

  /// How many outputs the receiver has not been given yet.
  var waiting: Int { state.value.pending.count + (state.value.isEncoding ? 1 : 0) }

  /// Hands over, on the event loop.
  func receive(_ outputs: [RealtimeOutput]) {
    guard let receiver = state.value.receiver else { return }
    let isBehind = receiver.isBehind
    // The end of a session does not wait for a peer that does not read.
    if isBehind, case .ended? = outputs.last { return receiver.receive([.ended]) }
    if isBehind || state.value.isEncoding || state.value.isHandingOver || !state.value.pending.isEmpty {
      for output in outputs { state.value.pending.add(output, merging: isBehind) }
      if isBehind, state.value.pending.bytes > receiver.mostPendingBytes { return receiver.cutOff() }
      return goOn()
    }
    handOver(outputs, receiver)
  }

  /// Hands over what waits, as far as the peer reads; to be called when it reads again.
  func goOn() {
    guard !state.value.isHandingOver else { return }
    state.value.isHandingOver = true
    defer { state.value.isHandingOver = false }
    while let receiver = state.value.receiver, !receiver.isBehind, !state.value.isEncoding {
      var outputs: [RealtimeOutput] = []
      while outputs.count < LoopSink.mostAtOnce, let output = state.value.pending.next() {
        outputs.append(output)
      }
      guard !outputs.isEmpty else { return }
      handOver(outputs, receiver)
    }
  }

  /// Hands over outputs up to the first that has to be encoded; the others wait behind it, before what waits already.
  private func handOver(_ outputs: [RealtimeOutput], _ receiver: any LoopReceiver) {
    for (index, output) in outputs.enumerated() {
      guard let encode = receiver.encoding(of: output) else { continue }
      state.value.isEncoding = true
      state.value.pending.putBack(outputs[(index + 1)...])
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
    loopGroup.letGo(of: output)
    goOn()
  }

  /// Ends the connection's side, on the event loop: what still comes is dropped.
  func detach() { state.value = State() }
}

/// The connections of one event loop.
final class LoopSinkGroup: RealtimeSinkGroup {
  let eventLoop: any EventLoop
  /// One after the other: what is encoded for many connections is encoded once, and found by the others.
  private let encoding = DispatchQueue(label: "hearth.encoding")
  /// The same for what takes long, so that the rest does not wait for it.
  private let largeEncoding = DispatchQueue(label: "hearth.encoding.large")
  /// From how many bytes on, about.
  private static let largeBytes = 2 << 20

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
    _ size: Int, _ encode: @escaping @Sendable () -> ByteBuffer?,
    then: @escaping @Sendable (ByteBuffer?) -> Void
  ) {
    (size < Self.largeBytes ? encoding : largeEncoding).async { [eventLoop] in
      let encoded = encode()
      eventLoop.execute { then(encoded) }
    }
  }

  /// Has a large value released beside the event loop, once that has nothing of it any more: it is a great many objects.
  fileprivate func letGo(of output: RealtimeOutput) {
    guard output.estimatedSize >= Self.largeBytes else { return }
    largeEncoding.asyncAfter(deadline: .now() + .seconds(1)) { withExtendedLifetime(output) {} }
  }
}

extension RealtimeOutput {
  /// About how many bytes of JSON the output is.
  fileprivate var estimatedSize: Int {
    switch self {
    case .push(let push): push.estimatedSize
    case .response(_, .value(let node)): node.estimatedSize
    case .response, .ended: 0
    }
  }
}
