// The HTTP/1.1 pipeline of the Realtime Database's port. It differs from that of plain HTTP ports in one
// thing: the bytes behind a request to upgrade are kept and given to the WebSocket that takes the connection over.

import NIOCore
import NIOHTTP1
import NIOWebSocket

extension HTTP1Deadlines: RemovableChannelHandler {}

extension ChannelPipeline.SynchronousOperations {
  /// Adds the codec, pipelining and deadlines; the endpoint's handler comes after.
  func addRealtimeHTTP1(_ limits: PortLimits) throws {
    try addHandlers([
      HTTPResponseEncoder(),
      ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes)),
      HTTPServerPipelineHandler(),
      HTTPServerProtocolErrorHandler(),
      NIOHTTPResponseHeadersValidator(),
    ])
    try addHandler(HTTP1Deadlines(head: limits.requestHeadTimeout, body: limits.requestBodyTimeout))
  }

  /// Takes everything of HTTP out of the pipeline and puts a WebSocket in its place. An idle connection then
  /// carries the frame decoder and its own handler alone.
  func replaceRealtimeHTTP1(
    by decoder: ByteToMessageHandler<WebSocketFrameDecoder>, _ socket: SocketHandler
  ) throws {
    try addHandler(decoder)
    removeHandler(try handler(type: RealtimeHTTPHandler.self), promise: nil)
    removeHandler(try handler(type: HTTP1Deadlines.self), promise: nil)
    removeHandler(try handler(type: NIOHTTPResponseHeadersValidator.self), promise: nil)
    removeHandler(try handler(type: HTTPServerProtocolErrorHandler.self), promise: nil)
    removeHandler(try handler(type: HTTPServerPipelineHandler.self), promise: nil)
    removeHandler(try handler(type: HTTPResponseEncoder.self), promise: nil)
    // It writes frames as soon as it is there, which nothing of HTTP may see.
    try addHandler(socket)
    // Last, since it forwards what it holds to whoever then comes next.
    removeHandler(try handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self), promise: nil)
  }
}
