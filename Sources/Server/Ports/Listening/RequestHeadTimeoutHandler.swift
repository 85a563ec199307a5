// Ends an HTTP/1.1 connection whose next request head does not arrive in time.
//
// A client that has sent a part of a head receives 408. The handler writes the bytes of the response directly to the
// socket, since the HTTP codec has no request to respond to. If no byte of the head has arrived, the connection closes
// without a response. If the handler sent a response then, a client that sends a request at that moment could mistake the
// 408 for its response.

import NIOCore

/// Writes 408 or closes. It is the first handler of HTTP/1.1.
final class RequestHeadTimeoutHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private static let text = "The request's head did not arrive completely in time.\n"
  private static let response =
    "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
    + "content-length: \(text.utf8.count)\r\n\r\n\(text)"

  private let grace: TimeAmount
  /// Whether bytes arrived after the last request.
  private var hasBegun = false
  private var isOver = false
  private var context: ChannelHandlerContext?

  init(_ limits: PortLimits) { grace = limits.lingerTimeout }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isOver else { return }
    hasBegun = true
    context.fireChannelRead(data)
  }

  /// Called when the head or the body of a request is complete. Bytes of the next request in the same read do not count
  /// as a begun head until more of them arrive.
  func partCompleted() { hasBegun = false }

  /// Ends the connection.
  func headTimedOut() {
    guard !isOver, let context else { return }
    isOver = true
    guard hasBegun else { return context.channel.close(promise: nil) }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: Self.response)), promise: nil)
    context.channel.closeLingering(grace)
  }
}
