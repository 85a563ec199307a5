// The HTTP/1.1 pipeline every plain HTTP endpoint stands on: codec, header validation, and the deadlines that keep
// a slow or silent peer from holding a connection.

import NIOCore
import NIOHTTP1
import NIOHTTP2

extension ChannelPipeline.SynchronousOperations {
  /// Adds the codec, pipelining and deadlines of an HTTP/1.1 server connection; the endpoint's handler, which takes
  /// `HTTPServerRequestPart`, comes after.
  func addHTTP1Server(_ limits: PortLimits) throws {
    try addHandlers([
      HTTPResponseEncoder(),
      ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)),
      HTTPServerPipelineHandler(),
      HTTPServerProtocolErrorHandler(),
      NIOHTTPResponseHeadersValidator(),
    ])
    try addHandler(HTTP1Deadlines(head: limits.requestHeadTimeout, body: limits.requestBodyTimeout))
  }

  /// Adds the translation that lets the same endpoint handler serve one HTTP/2 stream.
  func addHTTP1Translation() throws {
    try addHandler(HTTP2FramePayloadToHTTP1ServerCodec())
  }
}

/// Closes a connection whose next request does not arrive in time. The head's deadline runs from the end of the
/// previous request, so that a peer that sends a byte now and then gains nothing.
final class HTTP1Deadlines: ChannelDuplexHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  private let head: TimeAmount
  private let body: TimeAmount
  private var deadline: Scheduled<Void>?

  init(head: TimeAmount, body: TimeAmount) {
    self.head = head
    self.body = body
  }

  func channelActive(context: ChannelHandlerContext) {
    arm(head, context)
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    deadline?.cancel()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head: arm(body, context)
    case .body: break
    case .end: deadline?.cancel()
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .end = unwrapOutboundIn(data) { arm(head, context) }
    context.write(data, promise: promise)
  }

  private func arm(_ time: TimeAmount, _ context: ChannelHandlerContext) {
    deadline?.cancel()
    let channel = context.channel
    deadline = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }
}
