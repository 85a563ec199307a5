// From the engine's fan-out to the connections of one event loop: one hop for a whole batch, then each
// connection writes its own. Invariants: receivers are touched on their event loop only; a receiver takes what it is told
// in the order in which it is told, also where something large is encoded beside the loop first; what waits for a peer
// that does not read is merged (see PendingOutputs); and what there is much of is told in turns, whose event loop serves others
// in between.

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
final class LoopSink: RealtimeSink, TurnTaker {
  private struct State {
    var receiver: (any LoopReceiver)?
    /// What waits for the peer, for a turn, or behind an output that is being encoded.
    var pending = PendingOutputs()
    var isEncoding = false
    var isHandingOver = false
    var isAwaitingTurn = false
    /// What has come while it stands in the line of its event loop's deliveries; nil while it does not.
    var inLine: [RealtimeOutput]?
  }

  /// The most outputs that a peer is given at once: a part of a turn.
  private static let mostAtOnce = 64

  private let loopGroup: LoopSinkGroup
  private let state: NIOLoopBoundBox<State>

  var group: any RealtimeSinkGroup { loopGroup }

  /// Creates a handle on the receiver's event loop. ``detach()`` ends the cycle between the two.
  init(_ group: LoopSinkGroup, _ receiver: any LoopReceiver) {
    loopGroup = group
    state = NIOLoopBoundBox(State(receiver: receiver), eventLoop: group.eventLoop)
  }

  /// How many outputs wait for the peer. Not those that stand in line: some of them may be merged once they are taken.
  var waiting: Int { state.value.pending.count + (state.value.isEncoding ? 1 : 0) }

  /// Keeps outputs until the handle's turn comes; whether it stood in line before. What has come until then is handed over
  /// together, so that a loop with much to deliver writes less often.
  fileprivate func lineUp(_ outputs: [RealtimeOutput]) -> Bool {
    guard state.value.inLine != nil else {
      state.value.inLine = outputs
      return false
    }
    state.value.inLine?.append(contentsOf: outputs)
    return true
  }

  /// Hands over what has come while it stood in line.
  fileprivate func leaveLine() {
    guard let outputs = state.value.inLine else { return }
    state.value.inLine = nil
    receive(outputs)
  }

  /// Hands over, on the event loop.
  func receive(_ outputs: [RealtimeOutput]) {
    guard let receiver = state.value.receiver else { return }
    let isBehind = receiver.isBehind
    // The end of a session does not wait for a peer that does not read.
    if isBehind, case .ended? = outputs.last { return receiver.receive([.ended]) }
    if isBehind || state.value.isEncoding || state.value.isHandingOver || !state.value.pending.isEmpty
      || outputs.count > LoopSink.mostAtOnce
    {
      for output in outputs { state.value.pending.add(output, merging: isBehind) }
      if isBehind, state.value.pending.bytes > receiver.mostPendingBytes { return receiver.cutOff() }
      return goOn()
    }
    handOver(outputs, receiver)
  }

  /// Hands over some of what waits if the peer reads, and the rest in turns; to be called when it reads again.
  func goOn() {
    guard !state.value.isHandingOver, !state.value.isAwaitingTurn, !state.value.isEncoding,
      let receiver = state.value.receiver, !receiver.isBehind
    else { return }
    var outputs: [RealtimeOutput] = []
    while outputs.count < LoopSink.mostAtOnce, let output = state.value.pending.next() {
      outputs.append(output)
    }
    guard !outputs.isEmpty else { return }
    state.value.isHandingOver = true
    handOver(outputs, receiver)
    state.value.isHandingOver = false
    guard !state.value.pending.isEmpty, !state.value.isEncoding else { return }
    state.value.isAwaitingTurn = true
    LoopTurns.current.add(self, on: loopGroup.eventLoop)
  }

  func takeTurn() {
    state.value.isAwaitingTurn = false
    goOn()
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
  private let deliveries: NIOLoopBoundBox<LoopDeliveries>
  /// One after the other: what is encoded for many connections is encoded once, and found by the others.
  private let encoding = DispatchQueue(label: "hearth.encoding")
  /// The same for what takes long, so that the rest does not wait for it.
  private let largeEncoding = DispatchQueue(label: "hearth.encoding.large")
  /// From how many bytes on, about.
  private static let largeBytes = 2 << 20

  init(_ eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    deliveries = .makeBoxSendingValue(LoopDeliveries(eventLoop), eventLoop: eventLoop)
  }

  func deliver(_ deliveries: [RealtimeDelivery]) {
    eventLoop.execute { self.deliveries.value.deliver(deliveries) }
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

/// What the connections of one event loop are told: at once while that takes little of the loop's time, in turns beyond.
private final class LoopDeliveries: TurnTaker {
  private let eventLoop: any EventLoop
  private var line = CircularBuffer<LoopSink>(initialCapacity: 0)

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func deliver(_ deliveries: [RealtimeDelivery]) {
    let turns = LoopTurns.current
    for delivery in deliveries {
      guard let sink = delivery.sink as? LoopSink else { continue }
      if line.isEmpty {
        if turns.hasTimeBesides(turns: 4) {
          turns.besides { sink.receive(delivery.outputs) }
          continue
        }
        turns.add(self, on: eventLoop)
      }
      if !sink.lineUp(delivery.outputs) { line.append(sink) }
    }
  }

  func takeTurn() {
    let end = NIODeadline.now() + LoopTurns.turn
    repeat {
      guard let sink = line.popFirst() else { return }
      sink.leaveLine()
    } while .now() < end
    if !line.isEmpty { LoopTurns.current.add(self, on: eventLoop) }
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
