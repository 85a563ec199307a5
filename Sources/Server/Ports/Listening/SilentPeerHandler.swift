// Closes an HTTP/2 connection whose peer sends nothing for too long, not even an answer to a PING.
//
// The peer of a half-open connection sends no close either. NIOHTTP2's management handler sends the PING frames. Without an
// answer it only begins a graceful shutdown, which such a peer never completes.

import NIOCore

/// Sits before the HTTP/2 handler. It reads the clock once per read, and has one timer.
final class SilentPeerHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let timeout: TimeAmount
  private var lastRead = NIODeadline.now()
  private var timer: Scheduled<Void>?

  init(timeout: TimeAmount) {
    self.timeout = timeout
  }

  func handlerAdded(context: ChannelHandlerContext) {
    startTimer(timeout, context)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timer?.cancel()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    lastRead = .now()
    context.fireChannelRead(data)
  }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    context.fireChannelInactive()
  }

  private func startTimer(_ time: TimeAmount, _ context: ChannelHandlerContext) {
    let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: time) {
      let (handler, context) = bound.value
      let remaining = handler.lastRead + handler.timeout - .now()
      if remaining > .zero {
        handler.startTimer(remaining, context)
      } else {
        context.close(promise: nil)
      }
    }
  }
}
