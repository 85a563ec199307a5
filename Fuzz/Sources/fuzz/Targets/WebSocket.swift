// Fuzz target: WebSocket frames of a client, up to the protocol's messages.

import NIOCore
import NIOEmbedded
import NIOWebSocket
import RealtimeWire

func fuzzWebSocket(_ input: UnsafeRawBufferPointer) throws {
  // The same bytes as frames, split at the position in the first byte, and as one text payload.
  let channel = EmbeddedChannel(
    handler: ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: 1 << 20)))
  defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
  var assembler = MessageAssembler(maximumBytes: 1 << 16)
  let cut = min(Int(input.first ?? 0), input.count)
  for part in [input[..<cut], input[cut...]] {
    guard (try? channel.writeInbound(ByteBuffer(bytes: part))) != nil else { break }
    while let frame = try? channel.readInbound(as: WebSocketFrame.self) {
      var payload = frame.data
      if let key = frame.maskKey { payload.webSocketUnmask(key) }
      try payload.withUnsafeReadableBytes { try receive($0, &assembler) }
    }
  }
  try receive(input, &assembler)
}

private func receive(_ frame: UnsafeRawBufferPointer, _ assembler: inout MessageAssembler) throws {
  switch assembler.receive(frame) {
  case .nothing: break
  case .message: _ = try? ClientMessage(json: frame)
  case .assembled(let bytes):
    try require(bytes.count <= assembler.maximumBytes, "an assembled message is larger than the limit")
    bytes.withUnsafeBytes { _ = try? ClientMessage(json: $0) }
  case .oversized: try require(assembler.heldBytes == 0, "an oversized message was kept")
  }
}
