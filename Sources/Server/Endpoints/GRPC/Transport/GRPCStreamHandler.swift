// One gRPC stream: moves bytes between the HTTP/2 stream channel, the framing state machine and the method.
//
// Invariants
//   1. A call ends exactly once, with one status; a call whose client is gone is cancelled.
//   2. A malformed or oversized request ends its own stream and no other.
//   3. A unary method runs only when its request is complete: one message, then the half-close.
//   4. A method with one answer runs only when its connection has room for that (see GRPCStreamHandler+Calls).
//   5. Nothing here blocks; everything runs on the stream's event loop.

import FirestoreEngine
import GRPCFraming
import Logging
import NIOCore
import NIOHPACK
import NIOHTTP2

final class GRPCStreamHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  enum Phase {
    case awaitingHead
    case collecting(GRPCRequestHead, GRPCMethods.Method)
    case duplex(any GRPCCall)
    case waiting(GRPCMethods.Method, GRPCRequestHead, ByteBuffer)
    case running
    case ended
    case handedOver
  }

  let connection: GRPCConnection
  var phase = Phase.awaitingHead
  private var stream: GRPCServerStream
  private var request: ByteBuffer?
  /// Whether the request is kept as it came, compressed, until it is whole.
  private var requestIsPacked = false
  /// How the call's messages are compressed that are.
  private(set) var packing: CompressionAlgorithm?
  /// A message that is being unpacked elsewhere, and its size; what follows it waits.
  var unpacking: DecompressionQueue.Job?
  var packedBytes = 0
  private var heldBytes = 0
  /// Bytes of the answer that room was made for, in the connection's queue and in the server's memory.
  var expectedBytes = 0
  var takenBytes = 0
  /// Bytes that were written since the last that are counted.
  private var uncountedBytes = 0
  private var requestEnded = false
  private var reading = true
  /// The method in progress; cancelled when the call ends.
  var task: (any CancellableCall)?
  private var deadline: Scheduled<Void>?
  var requestDeadline: Scheduled<Void>?
  private var waiters: [CheckedContinuation<Void, any Error>] = []
  /// What came behind the answer, and until when more may.
  private var discardedBytes = 0
  private var reset: Scheduled<Void>?
  private(set) var context: ChannelHandlerContext?

  init(_ connection: GRPCConnection) {
    self.connection = connection
    self.stream = GRPCServerStream(
      maximumMessageSize: connection.limits.maximumMessageSize,
      maximumHeaderListSize: connection.limits.maximumHeaderListSize, encodings: .accepted)
  }

  // MARK: Channel events

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    if case .handedOver = phase {} else { abandon() }
    reset?.cancel()
    self.context = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .handedOver = phase { return context.fireChannelRead(data) }
    if case .ended = phase { return discard(unwrapInboundIn(data)) }
    switch unwrapInboundIn(data) {
    case .headers(let block):
      if case .awaitingHead = phase {
        receive(head: block.headers, endStream: block.endStream, data: data, context: context)
      } else if block.endStream {
        requestEnded = true
        stream.receiveEnd()
        deliver()
      }
    case .data(let block):
      guard case .byteBuffer(let bytes) = block.data else { return }
      if block.endStream { requestEnded = true }
      stream.receive(data: bytes, endStream: block.endStream)
      deliver()
    case .rstStream:
      abandon()
    default:
      break
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    // Only a request that did not come whole at once is worth a timer.
    if case .collecting = phase, requestDeadline == nil, !requestEnded {
      let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
      requestDeadline = context.eventLoop.scheduleTask(in: connection.limits.requestTimeout) {
        handler.value.requestIsLate()
      }
    }
    context.fireChannelReadComplete()
  }

  func channelInactive(context: ChannelHandlerContext) {
    if case .handedOver = phase {} else { abandon() }
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if case .handedOver = phase { return context.fireErrorCaught(error) }
    abandon()
    context.close(promise: nil)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { resumeWaiters() }
    context.fireChannelWritabilityChanged()
  }

  // MARK: The request

  private func receive(
    head headers: HPACKHeaders, endStream: Bool, data: NIOAny, context: ChannelHandlerContext
  ) {
    guard GRPCRequestHead.isGRPC(headers) else { return handOver(data, context: context) }
    requestEnded = endStream
    do {
      let head = try stream.receive(headers: headers, endStream: endStream)
      if let timeout = head.timeout { start(timeout, on: context.eventLoop) }
      if let encoding = head.encoding { packing = CompressionAlgorithm(encoding) }
      do {
        let method = try connection.methods.method(of: head)
        try connection.methods.admit(head)
        // Nothing is done for a deadline that has passed.
        if head.timeout?.nanoseconds == 0 { throw GRPCStreamHandler.deadlinePassed }
        guard connection.memory.reserve(connection.limits.streamBytes) else { throw connection.noMemory }
        takenBytes = connection.limits.streamBytes
        switch method {
        case .duplex(let make):
          phase = .duplex(try make(head, GRPCResponder(self, on: context.eventLoop, tasks: connection.tasks)))
          connection.add(self)
        default: phase = .collecting(head, method)
        }
      } catch {
        return fail(error)
      }
      deliver()
    } catch {
      write(final: error.headers)
    }
  }

  /// Gives a stream of another protocol to the handlers that speak it.
  private func handOver(_ data: NIOAny, context: ChannelHandlerContext) {
    phase = .handedOver
    do {
      try connection.fallback(context.channel)
    } catch {
      context.close(promise: nil)
      return
    }
    context.fireChannelRead(data)
    context.pipeline.syncOperations.removeHandler(self, promise: nil)
  }

  /// Hands on what the framing has, until it has no more or the call does not want more now.
  func deliver() {
    do {
      while reading, unpacking == nil, let event = try stream.next() {
        switch (phase, event) {
        case (.duplex, .message(let message)), (.collecting, .message(let message)): try take(message)
        case (.duplex, .compressedMessage(let packed)):
          if let message = try unpack(packed) { try takeUnpacked(message) }
        case (.collecting, .compressedMessage(let packed)):
          try take(packed)
          requestIsPacked = true
        case (_, .oversizedMessage(let bytes)): try refuse(bytes)
        case (.duplex(let call), .halfClose): call.halfClose()
        case (.collecting, .halfClose): try startWhole()
        default: return
        }
      }
    } catch {
      return fail(error)
    }
    account()
  }

  func take(_ message: ByteBuffer) throws(GRPCStatus) {
    if case .duplex(let call) = phase { return call.receive(message) }
    guard request == nil else {
      throw GRPCStatus(.internal, "The method takes one request message, and more arrived.")
    }
    request = message
  }

  /// Refuses a message above the limit, and drops the rest of the request as it comes. A conversation ends in the message's
  /// turn: clients take its end for the answer to the first message that was not answered.
  func refuse(_ bytes: Int?) throws(GRPCStatus) {
    let refusal = connection.methods.oversized(bytes)
    guard case .duplex(let call) = phase else { throw refusal }
    stream.discardRequest()
    call.receive(refusal: refusal)
  }

  /// Runs the method on its request, which is whole, once that is unpacked.
  func startWhole() throws(GRPCStatus) {
    guard case .collecting(let head, let method) = phase else { return }
    guard let request else {
      throw GRPCStatus(.internal, "The method takes one request message, and none arrived.")
    }
    guard requestIsPacked else { return start(method, head, request) }
    self.request = nil
    requestIsPacked = false
    guard let message = try unpack(request) else { return }
    try takeUnpacked(message)
    try startWhole()
  }

  /// Tells the connection how many bytes of requests this stream holds.
  func account() {
    if case .ended = phase { return }
    var held = stream.bufferedBytes + (request?.readableBytes ?? 0) + packedBytes
    if case .duplex(let call) = phase { held += call.heldBytes }
    guard held != heldBytes else { return }
    if let refusal = connection.hold(held, insteadOf: heldBytes) { return finish(refusal) }
    heldBytes = held
  }

  private func start(_ timeout: GRPCTimeout, on eventLoop: any EventLoop) {
    let handler = NIOLoopBound(self, eventLoop: eventLoop)
    deadline = eventLoop.scheduleTask(in: .nanoseconds(timeout.nanoseconds)) {
      handler.value.finish(GRPCStreamHandler.deadlinePassed)
    }
  }

  private static let deadlinePassed = GRPCStatus(
    .deadlineExceeded, "The deadline passed before the call was done.")

  private func requestIsLate() {
    guard case .collecting = phase, !requestEnded else { return }
    finish(GRPCStatus(.deadlineExceeded, "The request did not arrive whole in time."))
  }

  func setReading(_ enabled: Bool) {
    guard reading != enabled, let context else { return }
    reading = enabled
    try? context.channel.syncOptions?.setOption(.autoRead, value: enabled)
    if enabled {
      deliver()
      // A stream channel does not start to read by itself when automatic reading comes back.
      context.read()
    }
  }

  /// Asks a conversation to end soon.
  func drain() {
    if case .duplex(let call) = phase { call.drain() }
  }

  // MARK: The answer

  /// Writes framed messages; false if the caller should wait before it writes more.
  func send(_ framed: ByteBuffer) throws -> Bool {
    guard !stream.isFinished, let context else { throw CancellationError() }
    let written = try count(framed.readableBytes, context)
    writeStart(context)
    context.writeAndFlush(wrapOutboundOut(.data(.init(data: .byteBuffer(framed)))), promise: written)
    return context.channel.isWritable
  }

  /// From so many bytes on, what a stream has written is counted until it has gone out.
  private static let countedBytes = 16 << 10

  /// Counts what is written now and then, and ends the call if there is no room for it. What a stream writes goes out in
  /// order, so that the last write stands for those before it.
  private func count(_ bytes: Int, _ context: ChannelHandlerContext) throws -> EventLoopPromise<Void>? {
    uncountedBytes += bytes
    guard uncountedBytes >= Self.countedBytes else { return nil }
    let (counted, memory) = (uncountedBytes, connection.memory)
    uncountedBytes = 0
    guard memory.reserve(counted) else {
      finish(connection.noMemory)
      throw CancellationError()
    }
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { _ in memory.release(counted) }
    return written
  }

  func waitUntilWritable(_ continuation: CheckedContinuation<Void, any Error>) {
    guard let context, !stream.isFinished else { return continuation.resume(throwing: CancellationError()) }
    if context.channel.isWritable { return continuation.resume() }
    waiters.append(continuation)
  }

  /// Writes the only message and OK in one flush. An answer that only tells what there is gives way if there is no room
  /// for it.
  func complete(_ framed: ByteBuffer, mayGiveWay: Bool) {
    guard !stream.isFinished, let context else { return }
    if !mayGiveWay {
      connection.memory.reserveUnchecked(framed.readableBytes)
    } else if !connection.memory.reserve(framed.readableBytes) {
      return finish(connection.noMemory)
    }
    writeStart(context)
    let written = connection.answers.add(framed.readableBytes)
    context.write(wrapOutboundOut(.data(.init(data: .byteBuffer(framed)))), promise: written)
    finish(.ok)
  }

  func finish(_ status: GRPCStatus) {
    guard let trailers = stream.finish(status) else { return }
    write(final: trailers)
  }

  func fail(_ error: any Error) {
    finish(GRPCStatus(of: error, connection.log, nil))
  }

  private func writeStart(_ context: ChannelHandlerContext) {
    if let headers = stream.start() {
      context.write(wrapOutboundOut(.headers(.init(headers: headers))), promise: nil)
    }
  }

  private func write(final headers: HPACKHeaders) {
    guard let context else { return }
    let payload = wrapOutboundOut(.headers(.init(headers: headers, endStream: true)))
    if requestEnded {
      context.writeAndFlush(payload, promise: nil)
    } else {
      // Not before the trailers have gone out: a reset drops what still waits for the client's window.
      let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
      context.writeAndFlush(payload).whenSuccess { handler.value.awaitEnd() }
    }
    abandon()
  }

  /// The client may still be sending. What is on its way is read, since what comes behind a reset is taken from the
  /// connection's window for good; a client that goes on is told to stop, without calling that an error.
  private func awaitEnd() {
    guard !requestEnded, let context else { return }
    if !reading {
      reading = true
      try? context.channel.syncOptions?.setOption(.autoRead, value: true)
      context.read()
    }
    let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
    reset = context.eventLoop.scheduleTask(in: .seconds(1)) { handler.value.resetRequest() }
  }

  private func discard(_ frame: HTTP2Frame.FramePayload) {
    switch frame {
    case .headers(let block): requestEnded = requestEnded || block.endStream
    case .data(let block):
      requestEnded = requestEnded || block.endStream
      if case .byteBuffer(let bytes) = block.data { discardedBytes += bytes.readableBytes }
    case .rstStream: requestEnded = true
    default: break
    }
    if discardedBytes > Self.mostDiscardedBytes { resetRequest() }
  }

  /// What a client may have sent before it hears of the answer, and a little more.
  private static let mostDiscardedBytes = 64 << 10

  private func resetRequest() {
    reset?.cancel()
    reset = nil
    guard !requestEnded, let context else { return }
    requestEnded = true
    context.channel.writeAndFlush(HTTP2Frame.FramePayload.rstStream(.noError), promise: nil)
  }

  /// Releases everything the call holds, however it ended.
  private func abandon() {
    if case .ended = phase { return }
    if case .waiting = phase { connection.answers.stopWaiting(self) }
    let call: (any GRPCCall)? = if case .duplex(let call) = phase { call } else { nil }
    phase = .ended
    _ = stream.finish(.ok)
    deadline?.cancel()
    deadline = nil
    requestDeadline?.cancel()
    task?.cancel()
    task = nil
    request = nil
    // What may be on a thread is still held.
    let packed = unpacking?.bytes ?? 0
    _ = connection.hold(packed, insteadOf: heldBytes)
    heldBytes = 0
    if let unpacking {
      self.unpacking = nil
      connection.inflations.cancel(unpacking) { [connection] in _ = connection.hold(0, insteadOf: packed) }
    }
    connection.memory.release(takenBytes)
    takenBytes = 0
    let expected = expectedBytes
    expectedBytes = 0
    connection.answers.forget(expected)
    if let call {
      connection.remove(self)
      call.end()
    }
    resumeWaiters()
  }

  private func resumeWaiters() {
    guard !waiters.isEmpty else { return }
    let resumed = waiters
    waiters = []
    let gone = stream.isFinished
    for waiter in resumed {
      if gone { waiter.resume(throwing: CancellationError()) } else { waiter.resume() }
    }
  }
}
