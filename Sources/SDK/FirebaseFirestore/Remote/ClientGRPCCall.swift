// The client's end of one gRPC call on an HTTP/2 stream.
//
// The client reads from the stream only when the caller has handled every received message. The flow control
// of HTTP/2 then stops a server that sends faster than the client stores.
//
// Invariants
//   1. The observer receives `.opened` at most once and first, and `.ended` exactly once and last. It
//      receives all events on the connection's event loop.
//   2. While a message is unhandled, at most one more stream window of data arrives, and it is not delivered.
//      Exception: when the server ends the stream, NIOHTTP2 delivers the remaining data without a read.

import FirestoreModel
import GRPCFraming
import NIOCore
import NIOHPACK
import NIOHTTP2

/// An event of a call.
enum CallEvent: Sendable {
  case opened
  case message(ByteBuffer)
  case ended(FirestoreError)
}

/// One gRPC call, for its caller.
final class ClientGRPCCall: Sendable {
  /// Receives the events of a call. The caller confirms every message with ``ClientGRPCCall/messageHandled()``.
  typealias Observer = @Sendable (ClientGRPCCall, CallEvent) -> Void

  /// The number of bytes that a server may send on a stream before the client reads them.
  static let windowBytes = 1 << 20

  private let eventLoop: any EventLoop
  private let state: NIOLoopBoundBox<State>

  private final class State {
    var channel: (any Channel)?
    var isClosed = false
    var isFinished = false
    var unsentMessages: [ByteBuffer] = []
    var observer: Observer?
    /// The number of delivered messages that the caller has not handled yet.
    var unhandledMessages = 0

    init(observer: @escaping Observer) { self.observer = observer }
  }

  init(eventLoop: any EventLoop, observer: @escaping Observer) {
    self.eventLoop = eventLoop
    let state = State(observer: observer)
    self.state = NIOLoopBoundBox.makeBoxSendingValue(state, eventLoop: eventLoop)
  }

  // MARK: The caller's side, from any thread

  /// Sends a message. Messages wait until the stream is open.
  func send(_ message: [UInt8]) {
    eventLoop.execute { [self] in
      guard !state.value.isClosed, !state.value.isFinished else { return }
      var buffer = ByteBufferAllocator().buffer(capacity: message.count + GRPCMessageParser.prefixLength)
      buffer.writeGRPCMessage(bytes: message)
      if let channel = state.value.channel {
        channel.writeAndFlush(HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(buffer))), promise: nil)
      } else {
        state.value.unsentMessages.append(buffer)
      }
    }
  }

  /// Half-closes the call: no more messages are sent.
  func finishSending() {
    eventLoop.execute { [self] in
      guard !state.value.isClosed, !state.value.isFinished else { return }
      state.value.isFinished = true
      if let channel = state.value.channel { ClientGRPCCall.writeEnd(to: channel) }
    }
  }

  /// Confirms one message that the observer received. After the last one, the stream is read again.
  func messageHandled() {
    eventLoop.execute { [self] in
      guard state.value.unhandledMessages > 0 else { return }
      state.value.unhandledMessages -= 1
      if state.value.unhandledMessages == 0 { state.value.channel?.read() }
    }
  }

  /// Ends the call. The observer receives no more events.
  func cancel() {
    eventLoop.execute { [self] in
      state.value.observer = nil
      state.value.unhandledMessages = 0
      state.value.isClosed = true
      guard let channel = state.value.channel else { return }
      state.value.channel = nil
      if state.value.isFinished {
        channel.close(promise: nil)
      } else {
        // Reads again, so that the end of the stream is received.
        channel.read()
        // Half-closes the stream first, so that messages that were sent are still delivered.
        ClientGRPCCall.writeEnd(to: channel)
        channel.eventLoop.scheduleTask(in: .seconds(1)) { channel.close(promise: nil) }
      }
    }
  }

  private static func writeEnd(to channel: any Channel) {
    let empty = channel.allocator.buffer(capacity: 0)
    let payload = HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(empty), endStream: true))
    channel.writeAndFlush(payload, promise: nil)
  }

  // MARK: The stream's side, on the event loop

  fileprivate func opened(_ channel: any Channel) {
    guard !state.value.isClosed else {
      channel.close(promise: nil)
      return
    }
    state.value.channel = channel
    for buffer in state.value.unsentMessages {
      channel.write(HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(buffer))), promise: nil)
    }
    state.value.unsentMessages = []
    if state.value.isFinished { ClientGRPCCall.writeEnd(to: channel) }
    channel.flush()
    state.value.observer?(self, .opened)
  }

  fileprivate func received(_ buffer: ByteBuffer) {
    guard let observer = state.value.observer else { return }
    state.value.unhandledMessages += 1
    observer(self, .message(buffer))
  }

  /// Whether the client has half-closed the open stream.
  fileprivate var hasFinishedSending: Bool { state.value.channel != nil && state.value.isFinished }

  /// Whether the caller has handled every message.
  fileprivate var mayRead: Bool { state.value.unhandledMessages == 0 }

  func ended(_ error: FirestoreError) {
    let observer = state.value.observer
    state.value.observer = nil
    state.value.isClosed = true
    state.value.channel = nil
    observer?(self, .ended(error))
  }
}

/// Encodes and decodes a gRPC call on one HTTP/2 stream.
final class GRPCCallHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private let call: ClientGRPCCall
  private let head: HPACKHeaders
  private var stream = GRPCClientStream()
  private var isOpen = false
  /// Whether the server has sent the last frame of the stream.
  private var isEndReceived = false

  init(call: ClientGRPCCall, head: HPACKHeaders) {
    self.call = call
    self.head = head
  }

  func channelActive(context: ChannelHandlerContext) {
    open(context)
    context.fireChannelActive()
  }

  func handlerAdded(context: ChannelHandlerContext) {
    if context.channel.isActive { open(context) }
  }

  private func open(_ context: ChannelHandlerContext) {
    guard !isOpen else { return }
    isOpen = true
    context.writeAndFlush(wrapOutboundOut(.headers(.init(headers: head))), promise: nil)
    call.opened(context.channel)
  }

  /// Drops a read while the caller has unhandled messages. ``ClientGRPCCall/messageHandled()`` reads again.
  func read(context: ChannelHandlerContext) { if call.mayRead { context.read() } }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let headers):
      isEndReceived = isEndReceived || headers.endStream
      stream.receive(headers: headers.headers, endStream: headers.endStream)
    case .data(let data):
      isEndReceived = isEndReceived || data.endStream
      if case .byteBuffer(let buffer) = data.data { stream.receive(data: buffer, endStream: data.endStream) }
    case .rstStream(let code): stream.receiveReset(http2Code: UInt32(code.networkCode))
    default: return
    }
    deliver(context)
  }

  func channelInactive(context: ChannelHandlerContext) {
    stream.receiveConnectionLoss("The connection to the server was lost.")
    deliver(context)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    stream.receiveConnectionLoss("The connection to the server failed: \(error)")
    deliver(context)
    context.close(promise: nil)
  }

  private func deliver(_ context: ChannelHandlerContext) {
    while let event = stream.next() {
      switch event {
      case .metadata: continue
      case .message(let buffer): call.received(buffer)
      case .end(let status, _):
        let isClosed = isEndReceived && call.hasFinishedSending
        call.ended(FirestoreError(status))
        // A stream that both sides have ended closes without a reset. Servers count resets, and close
        // connections with many resets.
        if !isClosed { context.close(promise: nil) }
      }
    }
  }
}

extension FirestoreError {
  /// The status with which a call ended. A status code that gRPC does not define becomes `unknown`.
  init(_ status: GRPCStatus) {
    let code = Int32(exactly: status.code.rawValue).map { StatusCode(rawValue: $0) } ?? .unknown
    self.init(code.rawValue <= StatusCode.unauthenticated.rawValue ? code : .unknown, status.message)
  }
}
