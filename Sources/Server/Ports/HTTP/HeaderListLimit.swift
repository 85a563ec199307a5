// Rejects HTTP/2 requests whose headers exceed the announced limit, with 431.
//
// HPACK requires that the headers of every stream are decoded, even of a rejected one. This handler then drops them.

import GRPCFraming
import NIOCore
import NIOHPACK
import NIOHTTP2

/// The first handler of an HTTP/2 stream that does not carry gRPC.
final class HeaderListLimit: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private let limit: Int
  private var hasBegun = false
  private var isRejected = false

  init(_ limits: HTTP2Limits) { limit = limits.maximumHeaderListSize }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isRejected else { return }
    if !hasBegun, case .headers(let block) = unwrapInboundIn(data) {
      hasBegun = true
      if block.headers.listSize > limit { return reject(context, isComplete: block.endStream) }
    }
    context.fireChannelRead(data)
  }

  private func reject(_ context: ChannelHandlerContext, isComplete: Bool) {
    isRejected = true
    let text = ByteBuffer(string: "The request's headers take more than \(limit) bytes.\n")
    let headers: HPACKHeaders = [
      ":status": "431", "content-type": "text/plain; charset=utf-8",
      "content-length": String(text.readableBytes),
    ]
    context.write(wrapOutboundOut(.headers(.init(headers: headers))), promise: nil)
    let written = context.writeAndFlush(
      wrapOutboundOut(.data(.init(data: .byteBuffer(text), endStream: true))))
    guard !isComplete else { return }
    // Asks the client to stop sending the request.
    written.assumeIsolated().whenSuccess {
      context.writeAndFlush(self.wrapOutboundOut(.rstStream(.noError)), promise: nil)
    }
  }
}
