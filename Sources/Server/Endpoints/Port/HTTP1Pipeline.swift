// The HTTP pipelines every plain HTTP endpoint stands on: codec, header validation, and deadlines.

import NIOCore
import NIOHTTP1
import NIOHTTP2

extension ChannelPipeline.SynchronousOperations {
  /// Adds the codec, pipelining and deadlines of an HTTP/1.1 server connection; the endpoint's handler, which takes
  /// `HTTPServerRequestPart` and answers an `HTTPParserError`, comes after.
  func addHTTP1Server(_ limits: PortLimits) throws {
    let late = LateHeadHandler(limits)
    try addHandlers([
      late,
      HTTPResponseEncoder(),
      ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)),
      HTTPServerPipelineHandler(),
      AnswerHeaders(),
    ])
    try addHandler(RequestDeadlines(limits, late))
  }

  /// Adds the translation that lets the same endpoint handler serve one HTTP/2 stream, and the deadline of its body.
  func addHTTP1Translation(_ limits: PortLimits) throws {
    try addHandler(HeaderListLimit(limits.http2))
    try addHandler(HTTP2FramePayloadToHTTP1ServerCodec())
    try addHandler(AnswerHeaders())
    try addHandler(RequestDeadlines(limits, nil))
  }

  /// Tells the peer of an HTTP/2 stream to stop sending, without calling that an error: it has its answer.
  func stopRequestOfHTTP2() {
    guard let codec = try? context(handlerType: HTTP2FramePayloadToHTTP1ServerCodec.self) else { return }
    codec.writeAndFlush(NIOAny(HTTP2Frame.FramePayload.rstStream(.noError)), promise: nil)
  }
}
