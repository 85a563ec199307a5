// What a peer sends is handled in turns. However much of it has come at once, and however much work each byte of it is
// (chunks, frames or requests of a byte each), the other connections of its event loop wait for a turn of about a
// millisecond and not for all of it.
//
// Invariants
//   1. Bytes are handed on in order and whole, and the end of the peer's direction comes behind them.
//   2. Nothing is read from the socket while bytes wait here, and none are handed on that nobody asked to read.
//   3. Between two turns of any connections the event loop looks for what others have sent.

import NIOCore

/// First in the pipeline of a connection. Small reads pass it without a look at the clock.
final class InboundTurns: ChannelDuplexHandler, TurnTaker {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer

  /// Reads of so many bytes are little work, whatever they are.
  private static let smallBytes = 1 << 10
  /// The most and the fewest bytes between two looks at the clock.
  private static let mostAtOnce = 16 << 10
  private static let fewestAtOnce = 128
  /// What is still handed on of a connection that was reset: it has been sent in order, and nobody can ask for it again.
  private static let mostAfterReset = 256 << 10

  /// Whether the end of what the peer sends ends the connection, or is told to the handlers behind.
  var endsWithPeer = true

  private let limits: PortLimits
  private var waiting = CircularBuffer<ByteBuffer>(initialCapacity: 0)
  private var waitingBytes = 0
  /// What the connection holds of the server's memory for bytes that wait; nil while that was never much.
  private var memory: MemoryReservation?
  /// How many bytes have been about half a turn's work. Of a new connection nobody knows: a hundred bytes may be a request.
  private var quota = InboundTurns.smallBytes
  /// When the turn of the reads under way is over.
  private var turnEnds: NIODeadline?
  private var hasHandedOn = false
  private var isAsked = false
  private var isQueued = false
  private var inputHasEnded = false
  private var isClosing = false
  private var context: ChannelHandlerContext?

  init(_ limits: PortLimits) { self.limits = limits }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    drop()
  }

  // MARK: From the socket

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let bytes = unwrapInboundIn(data)
    if waiting.isEmpty, bytes.readableBytes <= Self.smallBytes {
      hasHandedOn = true
      return context.fireChannelRead(data)
    }
    guard hold(bytes) else { return context.close(promise: nil) }
    // Who has waited longer comes first.
    guard waiting.count == 1, LoopTurns.current.isIdle else { return }
    handOn(context)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    turnEnds = nil
    completeRead(context)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case .inputClosed? = event as? ChannelEvent else {
      return context.fireUserInboundEventTriggered(event)
    }
    inputHasEnded = true
    if waiting.isEmpty { endInput(context) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    if !isClosing {
      var left = Self.mostAfterReset
      while left > 0, let piece = next(left) {
        left -= piece.readableBytes
        context.fireChannelRead(wrapInboundOut(piece))
      }
    }
    drop()
    context.fireChannelInactive()
  }

  // MARK: From the handlers behind

  func read(context: ChannelHandlerContext) {
    if waiting.isEmpty { return context.read() }
    isAsked = true
    guard !isQueued else { return }
    isQueued = true
    LoopTurns.current.add(self, on: context.eventLoop)
  }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    if mode != .output {
      isClosing = true
      drop()
    }
    context.close(mode: mode, promise: promise)
  }

  /// Closes the connection at once: nothing that waits is handed on, and TLS says no goodbye.
  fileprivate func cutOff() {
    guard let context else { return }
    close(context: context, mode: .all, promise: nil)
  }

  // MARK: Turns

  /// Hands on some of what waits.
  func takeTurn() {
    isQueued = false
    guard let context, isAsked, !waiting.isEmpty else { return }
    isAsked = false
    handOn(context)
    turnEnds = nil
    completeRead(context)
    if waiting.isEmpty, inputHasEnded {
      endInput(context)
    } else if isAsked, waiting.isEmpty {
      isAsked = false
      context.read()
    } else if (try? context.channel.syncOptions?.getOption(.autoRead)) == true {
      context.channel.read()
    }
  }

  private func handOn(_ context: ChannelHandlerContext) {
    var now = NIODeadline.now()
    let end = turnEnds ?? now + LoopTurns.turn
    turnEnds = end
    while now < end, let piece = next(quota) {
      let count = piece.readableBytes
      hasHandedOn = true
      context.fireChannelRead(wrapInboundOut(piece))
      let then = NIODeadline.now()
      adapt(to: then - now, for: count)
      now = then
    }
  }

  private func adapt(to time: TimeAmount, for count: Int) {
    let half = LoopTurns.turn.nanoseconds / 2
    if time.nanoseconds > half {
      quota = max(Self.fewestAtOnce, Int(Int64(count) * half / time.nanoseconds))
    } else if time.nanoseconds < half / 2, count == quota {
      quota = min(Self.mostAtOnce, quota * 2)
    }
  }

  private func completeRead(_ context: ChannelHandlerContext) {
    guard hasHandedOn else { return }
    hasHandedOn = false
    context.fireChannelReadComplete()
  }

  private func endInput(_ context: ChannelHandlerContext) {
    if endsWithPeer {
      context.close(promise: nil)
    } else {
      context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }
  }

  // MARK: What waits

  /// Keeps bytes that wait; false if the server has no room for them.
  private func hold(_ bytes: ByteBuffer) -> Bool {
    let before = waitingBytes
    if before + bytes.readableBytes > limits.freeBytes, memory == nil { memory = MemoryReservation(limits) }
    guard memory?.hold(before + bytes.readableBytes, insteadOf: before) ?? true else { return false }
    waitingBytes += bytes.readableBytes
    waiting.append(bytes)
    return true
  }

  /// Takes the next bytes, at most so many.
  private func next(_ most: Int) -> ByteBuffer? {
    guard var first = waiting.first else { return nil }
    let piece: ByteBuffer
    if first.readableBytes <= most {
      piece = waiting.removeFirst()
    } else {
      piece = first.readSlice(length: most) ?? ByteBuffer()
      waiting[waiting.startIndex] = first
    }
    waitingBytes -= piece.readableBytes
    release()
    return piece
  }

  private func drop() {
    waiting.removeAll()
    waitingBytes = 0
    release()
  }

  private func release() {
    guard let memory else { return }
    _ = memory.hold(waitingBytes, insteadOf: memory.held)
    if waitingBytes == 0 { self.memory = nil }
  }
}

extension Channel {
  /// Closes a connection whose peer deserves no more work, on its event loop.
  func cutOff() {
    if let turns = try? pipeline.syncOperations.handler(type: InboundTurns.self) {
      turns.cutOff()
    } else {
      close(promise: nil)
    }
  }
}

extension ChannelPipeline.SynchronousOperations {
  /// Whether a peer that has finished sending may still be answered. The handlers behind are told, and close a
  /// connection that nobody waits for an answer on; under TLS they are told by its own end, and a mere end of the
  /// connection is an error.
  func allowHalfClosure(_ allowed: Bool) throws {
    try handler(type: InboundTurns.self).endsWithPeer = !allowed
  }
}
