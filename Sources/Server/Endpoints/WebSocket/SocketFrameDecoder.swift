// Decodes frames of a WebSocket, and knows how much of one has come in that is not whole yet.

import NIOCore
import NIOWebSocket

/// The decoder of one connection. Confined to its event loop.
final class SocketFrameDecoder: ByteToMessageDecoder {
  typealias InboundOut = WebSocketFrame

  private let decoder: WebSocketFrameDecoder
  private(set) var heldBytes = 0
  /// Whether what still comes is of no interest.
  var isDiscarding = false

  init(maximumFrameBytes: Int) {
    decoder = WebSocketFrameDecoder(maxFrameSize: maximumFrameBytes)
  }

  func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
    if isDiscarding {
      buffer.clear()
      heldBytes = 0
      return .needMoreData
    }
    let state = try decoder.decode(context: context, buffer: &buffer)
    heldBytes = buffer.readableBytes
    return state
  }

  func decodeLast(
    context: ChannelHandlerContext, buffer: inout ByteBuffer, seenEOF: Bool
  ) throws -> DecodingState {
    // A frame that the peer did not finish says nothing.
    .needMoreData
  }
}
