// Closes a connection whose peer has been silent for too long, pings included: the other end of a half-open
// connection says nothing, not even goodbye. The lifetime handler sends the pings; without an answer it only begins a
// graceful shutdown, which such a peer never completes.

import NIOCore

/// Sits before the HTTP/2 handler. It costs a clock reading for each read, and one timer a connection.
final class SilentPeerHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let allowed: TimeAmount
  private var lastRead = NIODeadline.now()
  private var timer: Scheduled<Void>?

  init(allowed: TimeAmount) {
    self.allowed = allowed
  }

  func handlerAdded(context: ChannelHandlerContext) {
    arm(allowed, context)
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

  private func arm(_ time: TimeAmount, _ context: ChannelHandlerContext) {
    let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: time) {
      let (handler, context) = bound.value
      let left = handler.lastRead + handler.allowed - .now()
      if left > .zero {
        handler.arm(left, context)
      } else {
        context.close(promise: nil)
      }
    }
  }
}
