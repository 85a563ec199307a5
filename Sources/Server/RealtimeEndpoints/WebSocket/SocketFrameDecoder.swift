// Decodes WebSocket frames. It also knows the number of bytes buffered for an incomplete frame, for the
// memory budget.

import NIOCore
import NIOWebSocket

/// The frame decoder of one connection; confined to its event loop.
final class SocketFrameDecoder: ByteToMessageDecoder {
  typealias InboundOut = WebSocketFrame

  private let decoder: WebSocketFrameDecoder
  private(set) var heldBytes = 0
  /// Whether the decoder discards all further input.
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
    // An incomplete frame at the end of input is dropped.
    .needMoreData
  }
}
