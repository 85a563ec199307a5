// Serves one gRPC stream: passes bytes between the HTTP/2 stream, the framing state machine and the method.
//
// A call passes these files in this order:
//   1. Ports/HTTP2/HTTP2Connection accepts the stream, and GRPCConnection adds this handler to it.
//   2. This file receives the head. A stream without gRPC goes to the fallback handlers. GRPCMethods finds the method.
//   3. GRPCServerStream (module GRPCFraming) parses the messages. GRPCStreamHandler+Compression decompresses them.
//   4. GRPCStreamHandler+Calls starts the method when GRPCResponseQueue has capacity. LoopTasks runs it on the event loop.
//   5. The method, for example of Methods/FirestoreService, responds through GRPCResponder.
//   6. This file writes the responses and the status, and releases everything.
//
// Invariants
//   1. A call ends exactly once, with one status. The end of the stream cancels the call.
//   2. A malformed or oversized request ends its own stream and no other.
//   3. A unary method runs only when its request is complete: one message, then the half-close.
//   4. A unary method runs only when its connection has capacity for the response.
//   5. Nothing here blocks. All functions run on the stream's event loop.
//
// Decision: docs/decisions/0002-own-grpc-framing.md

import FirestoreEngine
import GRPCFraming
import Logging
import NIOCore
import NIOHPACK
import NIOHTTP2
import Ports

/// One gRPC stream. Confined to its event loop.
final class GRPCStreamHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  enum Phase {
    case awaitingHead
    /// The request of a method that takes one message is incomplete, or its message is being decompressed.
    case collecting(GRPCRequestHead, GRPCMethods.Method)
    case duplex(any GRPCCall)
    /// The request is complete. The call waits for capacity.
    case waiting(GRPCMethods.Method, GRPCRequestHead, ByteBuffer)
    case running
    case ended
    /// The stream does not carry gRPC: the fallback handlers serve it.
    case delegated
  }

  let connection: GRPCConnection
  var phase = Phase.awaitingHead
  private var stream: GRPCServerStream
  private var request: ByteBuffer?
  /// Whether `request` is compressed. It is decompressed when the request is complete.
  private var isRequestCompressed = false
  /// The algorithm of the call's compressed messages.
  private(set) var compression: CompressionAlgorithm?
  /// The decompression of a message on another thread; nil for none. Later messages of the stream wait for it.
  var decompression: DecompressionQueue.Job?
  /// The compressed size of the message in `decompression`.
  var compressedBytes = 0
  /// The request bytes that the connection counts for this stream.
  private var heldBytes = 0
  /// The bytes reserved in the connection's response queue.
  var expectedBytes = 0
  /// The bytes reserved in the server's memory.
  var reservedBytes = 0
  /// Bytes written since `countBytes` last counted a write against the server's memory.
  private var uncountedBytes = 0
  private var hasRequestEnded = false
  private var isReading = true
  /// The method in progress; cancelled when the call ends.
  var task: (any CancellableCall)?
  private var deadline: Scheduled<Void>?
  var requestDeadline: Scheduled<Void>?
  private var waiters: [CheckedContinuation<Void, any Error>] = []
  /// Request bytes that arrived after the response.
  private var discardedBytes = 0
  /// Resets a stream whose client does not end its request after the response.
  private var resetDeadline: Scheduled<Void>?
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
    if case .delegated = phase {} else { endCall() }
    resetDeadline?.cancel()
    self.context = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if case .delegated = phase { return context.fireChannelRead(data) }
    if case .ended = phase { return discard(unwrapInboundIn(data)) }
    switch unwrapInboundIn(data) {
    case .headers(let block):
      if case .awaitingHead = phase {
        receive(head: block.headers, endStream: block.endStream, data: data, context: context)
      } else if block.endStream {
        hasRequestEnded = true
        stream.receiveEnd()
        deliver()
      }
    case .data(let block):
      guard case .byteBuffer(let bytes) = block.data else { return }
      if block.endStream { hasRequestEnded = true }
      stream.receive(data: bytes, endStream: block.endStream)
      deliver()
    case .rstStream:
      endCall()
    default:
      break
    }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    // A request that arrives in one read needs no timer.
    if case .collecting = phase, requestDeadline == nil, !hasRequestEnded {
      let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
      requestDeadline = context.eventLoop.scheduleTask(in: connection.limits.requestTimeout) {
        handler.value.requestTimedOut()
      }
    }
    context.fireChannelReadComplete()
  }

  func channelInactive(context: ChannelHandlerContext) {
    if case .delegated = phase {} else { endCall() }
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if case .delegated = phase { return context.fireErrorCaught(error) }
    endCall()
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
    guard GRPCRequestHead.isGRPC(headers) else { return delegate(data, context: context) }
    hasRequestEnded = endStream
    do {
      let head = try stream.receive(headers: headers, endStream: endStream)
      if let timeout = head.timeout { startDeadline(timeout, on: context.eventLoop) }
      if let encoding = head.encoding { compression = CompressionAlgorithm(encoding) }
      do {
        let method = try connection.methods.method(of: head)
        try connection.methods.admit(head)
        // The server does no work for a deadline that has passed.
        if head.timeout?.nanoseconds == 0 { throw GRPCStreamHandler.deadlinePassed }
        guard connection.openStream() else { throw connection.outOfMemory }
        reservedBytes = connection.limits.streamBytes
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

  /// Passes a stream without gRPC to the fallback handlers.
  private func delegate(_ data: NIOAny, context: ChannelHandlerContext) {
    phase = .delegated
    do {
      try connection.fallback(context.channel)
    } catch {
      context.close(promise: nil)
      return
    }
    context.fireChannelRead(data)
    context.pipeline.syncOperations.removeHandler(self, promise: nil)
  }

  /// Passes the parsed messages to the call, until none remains or the call pauses.
  func deliver() {
    do {
      while isReading, decompression == nil, let event = try stream.next() {
        switch (phase, event) {
        case (.duplex, .message(let message)), (.collecting, .message(let message)): try accept(message)
        case (.duplex, .compressedMessage(let compressed)):
          if let message = try decompress(compressed) { try acceptDecompressed(message) }
        case (.collecting, .compressedMessage(let compressed)):
          try accept(compressed)
          isRequestCompressed = true
        case (_, .oversizedMessage(let bytes)): try rejectOversized(bytes)
        case (.duplex(let call), .halfClose): call.halfClose()
        case (.collecting, .halfClose): try startIfCollected()
        default: return
        }
      }
    } catch {
      return fail(error)
    }
    updateHeldBytes()
  }

  /// Accepts a message of the request.
  func accept(_ message: ByteBuffer) throws(GRPCStatus) {
    if case .duplex(let call) = phase { return call.receive(message) }
    guard request == nil else {
      throw GRPCStatus(.internal, "The method takes one request message, and more arrived.")
    }
    request = message
  }

  /// Rejects a message above the limit, and discards the rest of the request.
  ///
  /// A duplex call ends after it has served the earlier messages: clients attribute its status to the first
  /// message without a response.
  ///
  /// - Parameter bytes: the size of the message, if known.
  func rejectOversized(_ bytes: Int?) throws(GRPCStatus) {
    let rejection = connection.methods.oversized(bytes)
    guard case .duplex(let call) = phase else { throw rejection }
    stream.discardRequest()
    call.receive(rejection: rejection)
  }

  /// Starts the method of a complete request when its message is decompressed.
  func startIfCollected() throws(GRPCStatus) {
    guard case .collecting(let head, let method) = phase else { return }
    guard let request else {
      throw GRPCStatus(.internal, "The method takes one request message, and none arrived.")
    }
    guard isRequestCompressed else { return start(method, head, request) }
    self.request = nil
    isRequestCompressed = false
    guard let message = try decompress(request) else { return }
    try acceptDecompressed(message)
    try startIfCollected()
  }

  /// Reports the request bytes that this stream holds to the connection. Ends the call if they exceed a limit.
  func updateHeldBytes() {
    if case .ended = phase { return }
    var held = stream.bufferedBytes + (request?.readableBytes ?? 0) + compressedBytes
    if case .duplex(let call) = phase { held += call.heldBytes }
    guard held != heldBytes else { return }
    if let refusal = connection.resizeRequest(from: heldBytes, to: held) { return finish(refusal) }
    heldBytes = held
  }

  private func startDeadline(_ timeout: GRPCTimeout, on eventLoop: any EventLoop) {
    let handler = NIOLoopBound(self, eventLoop: eventLoop)
    deadline = eventLoop.scheduleTask(in: .nanoseconds(timeout.nanoseconds)) {
      handler.value.finish(GRPCStreamHandler.deadlinePassed)
    }
  }

  private static let deadlinePassed = GRPCStatus(
    .deadlineExceeded, "The deadline passed before the call was done.")

  private func requestTimedOut() {
    guard case .collecting = phase, !hasRequestEnded else { return }
    finish(GRPCStatus(.deadlineExceeded, "The request did not arrive completely in time."))
  }

  func setReading(_ enabled: Bool) {
    guard isReading != enabled, let context else { return }
    isReading = enabled
    try? context.channel.syncOptions?.setOption(.autoRead, value: enabled)
    if enabled {
      deliver()
      // A stream channel does not resume reading by itself when automatic reading is enabled.
      context.read()
    }
  }

  /// Asks a duplex call to finish.
  func drain() {
    if case .duplex(let call) = phase { call.drain() }
  }

  // MARK: The response

  /// Writes framed messages. Returns false if the caller has to wait before it writes more.
  /// - Throws: `CancellationError` after the end of the call.
  func send(_ framed: ByteBuffer) throws -> Bool {
    guard !stream.isFinished, let context else { throw CancellationError() }
    let written = try countBytes(framed.readableBytes, context)
    writeStart(context)
    context.writeAndFlush(wrapOutboundOut(.data(.init(data: .byteBuffer(framed)))), promise: written)
    return context.channel.isWritable
  }

  /// The number of written bytes after which they are counted against the server's memory.
  private static let countingStep = 16 << 10

  /// Counts written bytes in steps, and ends the call if the server has no memory for them. Returns a promise for
  /// the write if it is counted. The writes of a stream complete in order, so one promise covers the earlier
  /// writes of its step.
  private func countBytes(_ bytes: Int, _ context: ChannelHandlerContext) throws -> EventLoopPromise<Void>? {
    uncountedBytes += bytes
    guard uncountedBytes >= Self.countingStep else { return nil }
    let counted = uncountedBytes
    uncountedBytes = 0
    guard connection.memory.reserve(counted) else {
      finish(connection.outOfMemory)
      throw CancellationError()
    }
    return connection.responses.trackStreamWrite(counted)
  }

  func waitUntilWritable(_ continuation: CheckedContinuation<Void, any Error>) {
    guard let context, !stream.isFinished else { return continuation.resume(throwing: CancellationError()) }
    if context.channel.isWritable { return continuation.resume() }
    waiters.append(continuation)
  }

  /// Writes the response message of a unary call and the status OK in one flush.
  ///
  /// - Parameter isRead: whether the call changed nothing. Its response is then replaced by an error if the
  ///   server has no memory for it. The response to a write reports completed work and is always sent.
  func complete(_ framed: ByteBuffer, isRead: Bool) {
    guard !stream.isFinished, let context else { return }
    if !isRead {
      connection.memory.reserveUnchecked(framed.readableBytes)
    } else if !connection.memory.reserve(
      framed.readableBytes, leavingRoom: connection.responses.hasUnreadResponses)
    {
      return finish(connection.outOfMemory)
    }
    writeStart(context)
    let written = connection.responses.trackResponse(framed.readableBytes)
    context.write(wrapOutboundOut(.data(.init(data: .byteBuffer(framed)))), promise: written)
    finish(.ok)
  }

  /// Ends the call with a status. Later calls have no effect.
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
    if hasRequestEnded {
      context.writeAndFlush(payload, promise: nil)
    } else {
      // The stream is not reset before the trailers are written: a reset drops bytes that wait for the client's
      // flow-control window.
      let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
      context.writeAndFlush(payload).whenSuccess { handler.value.awaitRequestEnd() }
    }
    endCall()
  }

  /// Reads the rest of a request after its response. A client that continues to send receives RST_STREAM without
  /// an error.
  ///
  /// Bytes that arrive after a reset would reduce the connection's window permanently.
  private func awaitRequestEnd() {
    guard !hasRequestEnded, let context else { return }
    if !isReading {
      isReading = true
      try? context.channel.syncOptions?.setOption(.autoRead, value: true)
      context.read()
    }
    let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
    resetDeadline = context.eventLoop.scheduleTask(in: .seconds(1)) { handler.value.resetRequest() }
  }

  private func discard(_ frame: HTTP2Frame.FramePayload) {
    switch frame {
    case .headers(let block): hasRequestEnded = hasRequestEnded || block.endStream
    case .data(let block):
      hasRequestEnded = hasRequestEnded || block.endStream
      if case .byteBuffer(let bytes) = block.data { discardedBytes += bytes.readableBytes }
    case .rstStream: hasRequestEnded = true
    default: break
    }
    if discardedBytes > Self.maximumDiscardedBytes { resetRequest() }
  }

  /// Maximum request bytes that are discarded before the reset: more than a client sends until it receives the
  /// response.
  private static let maximumDiscardedBytes = 64 << 10

  private func resetRequest() {
    resetDeadline?.cancel()
    resetDeadline = nil
    guard !hasRequestEnded, let context else { return }
    hasRequestEnded = true
    context.channel.writeAndFlush(HTTP2Frame.FramePayload.rstStream(.noError), promise: nil)
  }

  /// Releases everything the call holds, however it ended.
  private func endCall() {
    if case .ended = phase { return }
    if case .waiting = phase { connection.responses.remove(self) }
    let call: (any GRPCCall)? = if case .duplex(let call) = phase { call } else { nil }
    phase = .ended
    _ = stream.finish(.ok)
    deadline?.cancel()
    deadline = nil
    requestDeadline?.cancel()
    task?.cancel()
    task = nil
    request = nil
    // A message that another thread decompresses is still held.
    let held = decompression?.bytes ?? 0
    _ = connection.resizeRequest(from: heldBytes, to: held)
    heldBytes = 0
    if let decompression {
      self.decompression = nil
      connection.decompressions.cancel(decompression) { [connection] in
        _ = connection.resizeRequest(from: held, to: 0)
      }
    }
    if reservedBytes > 0 { connection.closeStream() }
    connection.memory.release(reservedBytes)
    reservedBytes = 0
    let expected = expectedBytes
    expectedBytes = 0
    connection.responses.release(expected)
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
    let hasEnded = stream.isFinished
    for waiter in resumed {
      if hasEnded { waiter.resume(throwing: CancellationError()) } else { waiter.resume() }
    }
  }
}
