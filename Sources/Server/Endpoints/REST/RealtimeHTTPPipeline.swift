// The HTTP/1.1 pipeline of the Realtime Database's port. It differs from that of plain HTTP ports in two things: the bytes
// behind a request to upgrade are kept and given to the WebSocket that takes the connection over, and the handler says
// itself how a body is framed. The encoder would end the answer to a HEAD that tells no length as a body of chunks.

import NIOCore
import NIOHTTP1

extension ChannelPipeline.SynchronousOperations {
  /// Adds the codec, pipelining, deadlines and the endpoint's handler.
  func addRealtimeHTTP1(_ connection: RealtimeHTTPConnection) throws {
    let late = LateHeadHandler(connection.port)
    var framing = HTTPResponseEncoder.Configuration()
    framing.automaticallySetFramingHeaders = false
    try addHandlers([
      RealtimeHTTPDrainHandler(connection),
      late,
      HTTPResponseEncoder(configuration: framing),
      ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes)),
      HTTPServerPipelineHandler(),
      AnswerHeaders(),
    ])
    try addHandler(RequestDeadlines(connection.port, late))
    try addHandler(RealtimeHTTPHandler(connection, isHTTP2: false))
    try allowHalfClosure(true)
  }

  /// Takes everything of HTTP out of the pipeline and puts a WebSocket in its place. An idle connection then
  /// carries the frame decoder and its own handler alone.
  func replaceRealtimeHTTP1(
    by decoder: SocketFrameDecoder, _ socket: SocketHandler
  ) throws {
    try addHandler(ByteToMessageHandler(decoder))
    removeHandler(try handler(type: RealtimeHTTPHandler.self), promise: nil)
    removeHandler(try handler(type: RequestDeadlines.self), promise: nil)
    removeHandler(try handler(type: AnswerHeaders.self), promise: nil)
    removeHandler(try handler(type: HTTPServerPipelineHandler.self), promise: nil)
    removeHandler(try handler(type: HTTPResponseEncoder.self), promise: nil)
    removeHandler(try handler(type: LateHeadHandler.self), promise: nil)
    removeHandler(try handler(type: RealtimeHTTPDrainHandler.self), promise: nil)
    // It writes frames as soon as it is there, which nothing of HTTP may see.
    try addHandler(socket)
    // Last, since it forwards what it holds to whoever then comes next.
    let requests = try handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
    let removed = try context(handler: socket).eventLoop.makePromise(of: Void.self)
    // No end of a read follows what it held, and the answers wait for one.
    removed.futureResult.assumeIsolated().whenComplete { _ in socket.readIsComplete() }
    removeHandler(requests, promise: removed)
  }
}
