// The end of an HTTP/1.1 connection whose next request's head does not come whole in time. A peer that has begun one is told
// why, beneath the codec, for which there is no request to answer; one that has not is just closed, since an answer could
// be taken for that of a request that crosses it.

import NIOCore

/// First of the handlers of HTTP/1.1.
final class LateHeadHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private static let text = "The request's head did not arrive whole in time.\n"
  private static let answer =
    "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
    + "content-length: \(text.utf8.count)\r\n\r\n\(text)"

  private let grace: TimeAmount
  /// Whether anything has come behind the last request.
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

  /// The head, or the body, of a request has come whole. What came with it of the next counts for nothing, until more of
  /// that comes.
  func headIsWhole() { hasBegun = false }

  /// Ends the connection.
  func headIsLate() {
    guard !isOver, let context else { return }
    isOver = true
    guard hasBegun else { return context.channel.close(promise: nil) }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: Self.answer)), promise: nil)
    context.channel.closeLingering(grace)
  }
}
