// Refuses a request of HTTP/2 whose headers are larger than clients are told. They have been unpacked by then, as those of
// every stream have to be; here they are dropped.

import GRPCFraming
import NIOCore
import NIOHPACK
import NIOHTTP2

/// First in the pipeline of a stream of plain HTTP.
final class HeaderListLimit: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  private let limit: Int
  private var hasBegun = false
  private var isRefused = false

  init(_ limits: HTTP2Limits) { limit = limits.maximumHeaderListSize }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isRefused else { return }
    if !hasBegun, case .headers(let block) = unwrapInboundIn(data) {
      hasBegun = true
      if block.headers.listSize > limit { return refuse(context, isWhole: block.endStream) }
    }
    context.fireChannelRead(data)
  }

  private func refuse(_ context: ChannelHandlerContext, isWhole: Bool) {
    isRefused = true
    let text = ByteBuffer(string: "The request's headers take more than \(limit) bytes.\n")
    let headers: HPACKHeaders = [
      ":status": "431", "content-type": "text/plain; charset=utf-8",
      "content-length": String(text.readableBytes),
    ]
    context.write(wrapOutboundOut(.headers(.init(headers: headers))), promise: nil)
    let written = context.writeAndFlush(
      wrapOutboundOut(.data(.init(data: .byteBuffer(text), endStream: true))))
    guard !isWhole else { return }
    // Nothing more of it is wanted.
    written.assumeIsolated().whenSuccess {
      context.writeAndFlush(self.wrapOutboundOut(.rstStream(.noError)), promise: nil)
    }
  }
}
