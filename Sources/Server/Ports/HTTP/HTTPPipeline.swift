// Installs the channel handlers of HTTP: the codec, header validation, deadlines and the request handler.

package import NIOCore
import NIOHTTP1
import NIOHTTP2

extension HTTPService {
  /// Returns the initializer of HTTP/1.1 connections.
  package func http1(_ limits: PortLimits) -> @Sendable (any Channel) throws -> Void {
    { channel in
      let connection = HTTPConnection(self, limits, channel)
      let pipeline = channel.pipeline.syncOperations
      try pipeline.addHandler(HTTPDrainHandler(connection))
      try pipeline.addHTTP1Server(limits)
      try pipeline.addHandler(HTTPRequestHandler(connection, isHTTP2: false))
      try channel.allowHalfClosure(true)
    }
  }

  /// Returns a function that is called once per HTTP/2 connection and returns the initializer of the connection's
  /// streams.
  package func http2(_ limits: PortLimits)
    -> @Sendable (any Channel) throws -> @Sendable (any Channel) throws -> Void
  {
    { channel in
      let connection = HTTPConnection(self, limits, channel)
      try channel.pipeline.syncOperations.addHandler(HTTPDrainHandler(connection))
      let bound = NIOLoopBound(connection, eventLoop: channel.eventLoop)
      return { stream in
        try stream.pipeline.syncOperations.addHTTP1Translation(limits)
        try stream.pipeline.syncOperations.addHandler(HTTPRequestHandler(bound.value, isHTTP2: true))
      }
    }
  }
}

extension ChannelPipeline.SynchronousOperations {
  /// Adds the codec, pipelining and deadlines of an HTTP/1.1 server connection. The request handler follows. It receives
  /// `HTTPServerRequestPart`, responds to an `HTTPParserError`, and adds the headers that frame a response's body.
  func addHTTP1Server(_ limits: PortLimits) throws {
    let headTimeoutHandler = RequestHeadTimeoutHandler(limits)
    var framing = HTTPResponseEncoder.Configuration()
    // Otherwise the encoder would add `transfer-encoding` to a response to HEAD that has no content-length.
    framing.automaticallySetFramingHeaders = false
    try addHandlers([
      headTimeoutHandler,
      HTTPResponseEncoder(configuration: framing),
      // Bytes after a request to upgrade belong to the next protocol.
      ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes)),
      HTTPServerPipelineHandler(),
      ResponseHeaderFilter(),
    ])
    try addHandler(RequestDeadlines(limits, headTimeoutHandler))
  }

  /// Adds the handlers that translate one HTTP/2 stream to HTTP/1.1 messages for the request handler, and enforce the
  /// deadline of its body.
  func addHTTP1Translation(_ limits: PortLimits) throws {
    try addHandler(HeaderListLimit(limits.http2))
    try addHandler(HTTP2FramePayloadToHTTP1ServerCodec())
    try addHandler(ResponseHeaderFilter())
    try addHandler(RequestDeadlines(limits, nil))
  }

  /// Replaces all HTTP/1.1 handlers by the handlers of another protocol. Bytes that arrived after the request are
  /// passed to `decoder`.
  /// - Parameter readComplete: called after those bytes were passed, since no `channelReadComplete` follows them.
  package func replaceHTTP1(
    by decoder: some ByteToMessageDecoder, _ lastHandler: some ChannelHandler,
    readComplete: @escaping () -> Void
  ) throws {
    try addHandler(ByteToMessageHandler(decoder))
    removeHandler(try handler(type: HTTPRequestHandler.self), promise: nil)
    removeHandler(try handler(type: RequestDeadlines.self), promise: nil)
    removeHandler(try handler(type: ResponseHeaderFilter.self), promise: nil)
    removeHandler(try handler(type: HTTPServerPipelineHandler.self), promise: nil)
    removeHandler(try handler(type: HTTPResponseEncoder.self), promise: nil)
    removeHandler(try handler(type: RequestHeadTimeoutHandler.self), promise: nil)
    removeHandler(try handler(type: HTTPDrainHandler.self), promise: nil)
    // `lastHandler` is added after the HTTP handlers are removed, since it may write as soon as it is added.
    try addHandler(lastHandler)
    // The decoder is removed last: on removal it forwards its remaining bytes to the next handler.
    let requests = try handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
    let removed = try context(handler: requests).eventLoop.makePromise(of: Void.self)
    removed.futureResult.assumeIsolated().whenComplete { _ in readComplete() }
    removeHandler(requests, promise: removed)
  }

  /// Asks the client of an HTTP/2 stream to stop sending. The RST_STREAM carries NO_ERROR, since the client has
  /// received its response.
  func stopHTTP2Request() {
    guard let codec = try? context(handlerType: HTTP2FramePayloadToHTTP1ServerCodec.self) else { return }
    codec.writeAndFlush(NIOAny(HTTP2Frame.FramePayload.rstStream(.noError)), promise: nil)
  }
}
