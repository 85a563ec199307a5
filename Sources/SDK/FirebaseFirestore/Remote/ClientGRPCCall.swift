// One gRPC call on an HTTP/2 stream.
//
// Invariant: the observer receives `.opened` at most once and first, `.ended` exactly once and last, and everything on
// the connection's event loop.

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

/// The caller's end of a call.
final class ClientGRPCCall: Sendable {
  typealias Observer = @Sendable (CallEvent) -> Void

  private let eventLoop: any EventLoop
  private let state: NIOLoopBoundBox<State>

  private final class State {
    var channel: (any Channel)?
    var isClosed = false
    var isFinished = false
    var waiting: [ByteBuffer] = []
    var observer: Observer?

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
        state.value.waiting.append(buffer)
      }
    }
  }

  /// Half-closes the call: no further message is sent.
  func finishSending() {
    eventLoop.execute { [self] in
      guard !state.value.isClosed, !state.value.isFinished else { return }
      state.value.isFinished = true
      if let channel = state.value.channel { ClientGRPCCall.writeEnd(to: channel) }
    }
  }

  /// Ends the call; the observer receives no more events.
  func cancel() {
    eventLoop.execute { [self] in
      state.value.observer = nil
      state.value.isClosed = true
      guard let channel = state.value.channel else { return }
      state.value.channel = nil
      if state.value.isFinished {
        channel.close(promise: nil)
      } else {
        // Half-closing first delivers the messages sent, including the last one.
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
    for buffer in state.value.waiting {
      channel.write(HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(buffer))), promise: nil)
    }
    state.value.waiting = []
    if state.value.isFinished { ClientGRPCCall.writeEnd(to: channel) }
    channel.flush()
    state.value.observer?(.opened)
  }

  fileprivate func received(_ buffer: ByteBuffer) { state.value.observer?(.message(buffer)) }

  func ended(_ error: FirestoreError) {
    let observer = state.value.observer
    state.value.observer = nil
    state.value.isClosed = true
    state.value.channel = nil
    observer?(.ended(error))
  }
}

/// Speaks gRPC on one HTTP/2 stream for a call.
final class GRPCCallHandler: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private let call: ClientGRPCCall
  private let head: HPACKHeaders
  private var stream = GRPCClientStream()
  private var isOpen = false

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

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let headers): stream.receive(headers: headers.headers, endStream: headers.endStream)
    case .data(let data):
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
        call.ended(FirestoreError(status))
        context.close(promise: nil)
      }
    }
  }
}

extension FirestoreError {
  /// How a call ended. A server may send any number for a status; those beyond the canonical ones mean nothing here.
  init(_ status: GRPCStatus) {
    let code = Int32(exactly: status.code.rawValue).map { StatusCode(rawValue: $0) } ?? .unknown
    self.init(code.rawValue <= StatusCode.unauthenticated.rawValue ? code : .unknown, status.message)
  }
}
