// Handles the half-closure of a connection, when its peer ends its output: closes the connection, or notifies the later
// handlers, which may still respond.
//
// The channel always allows half-closure, because the end of the input can arrive together with the first bytes, before the
// protocol of the connection is known. This handler is the first of every connection, before TLS.
//
// Invariant: a connection whose protocol does not allow half-closure closes when its peer ends its output.

import NIOCore

/// Closes a connection when its peer ends its output, unless the protocol allows half-closure.
final class HalfClosureHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  /// Whether the connection's protocol can respond to a peer that has ended its output.
  var allowsHalfClosure = false

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .inputClosed? = event as? ChannelEvent, !allowsHalfClosure {
      context.close(promise: nil)
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }
}

extension Channel {
  /// Sets whether the peer may end its output and still receive responses. If so, handlers receive
  /// `ChannelEvent.inputClosed`, and have to close a connection without a pending response.
  func allowHalfClosure(_ allowed: Bool) throws {
    try pipeline.syncOperations.handler(type: HalfClosureHandler.self).allowsHalfClosure = allowed
  }
}
