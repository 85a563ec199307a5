// What the Firestore port answers to plain HTTP: the health check that tools wait for, CORS preflights, and for
// REST and WebChannel an error that says they are not served yet. One instance serves one HTTP/1.1 connection or
// one HTTP/2 stream.

import GRPCFraming
import NIOCore
import NIOHTTP1

final class FirestoreHTTPHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private struct Answer {
    var status: HTTPResponseStatus
    var contentType: String?
    var body: String
  }

  private let limits: PortLimits
  private let isHTTP2: Bool
  private var head: HTTPRequestHead?
  private var bodyBytes = 0
  private var answered = false
  private var closing = false
  private var requestEnded = false

  init(limits: PortLimits, isHTTP2: Bool) {
    self.limits = limits
    self.isHTTP2 = isHTTP2
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      self.head = head
      bodyBytes = 0
      answered = false
      requestEnded = false
    case .body(let bytes):
      bodyBytes += bytes.readableBytes
      guard bodyBytes > limits.maximumRequestBody, !answered, let head else { return }
      closing = true
      let text = "The request is larger than \(limits.maximumRequestBody) bytes."
      respond(Self.error(413, GRPCStatus(.invalidArgument, text)), to: head, context)
    case .end:
      requestEnded = true
      guard let head, !answered else { return }
      respond(Self.answer(to: head), to: head, context)
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ChannelShouldQuiesceEvent {
      closing = true
      if head == nil { context.close(promise: nil) }
    } else if event is RequestBodyIsLate, let head, !answered {
      closing = true
      respond(
        Self.error(408, GRPCStatus(.deadlineExceeded, "The request did not arrive whole in time.")), to: head,
        context)
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  private static func answer(to head: HTTPRequestHead) -> Answer {
    let path = head.uri.prefix { $0 != "?" }
    if head.method == .OPTIONS { return Answer(status: .ok, contentType: nil, body: "") }
    if path == "/" {
      return head.method == .GET || head.method == .HEAD
        ? Answer(status: .ok, contentType: "text/plain; charset=utf-8", body: "Ok\n") : notFound
    }
    if path.hasPrefix("/v1/") || path.hasPrefix("/v1beta1/") || path.hasPrefix("/emulator/v1/") {
      return error(
        501,
        GRPCStatus(
          .unimplemented, "Firestore's REST interface is not implemented by this server yet; use gRPC."))
    }
    if path.hasPrefix("/google.firestore.v1.Firestore/") {
      return error(
        501,
        GRPCStatus(.unimplemented, "WebChannel is not implemented by this server yet; use gRPC over HTTP/2."))
    }
    return notFound
  }

  private static let notFound = Answer(
    status: .notFound, contentType: "text/plain; charset=utf-8", body: "Not Found\n")

  /// The product's error body. The messages are this file's own, without characters that JSON would escape.
  private static func error(_ status: Int, _ error: GRPCStatus) -> Answer {
    Answer(
      status: HTTPResponseStatus(statusCode: status), contentType: "application/json; charset=utf-8",
      body: """
        {"error":{"code":\(status),"message":"\(error.message)","status":"\(error.code.name)"}}

        """)
  }

  private func respond(_ answer: Answer, to request: HTTPRequestHead, _ context: ChannelHandlerContext) {
    answered = true
    let keepAlive = request.isKeepAlive && !closing
    var headers = HTTPHeaders()
    if let type = answer.contentType { headers.add(name: "content-type", value: type) }
    headers.add(name: "content-length", value: String(answer.body.utf8.count))
    Self.addCORS(request, to: &headers)
    if !keepAlive { headers.add(name: "connection", value: "close") }
    let head = HTTPResponseHead(version: request.version, status: answer.status, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    if request.method != .HEAD, !answer.body.isEmpty {
      context.write(
        wrapOutboundOut(.body(.byteBuffer(context.channel.allocator.buffer(string: answer.body)))),
        promise: nil)
    }
    let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
    self.head = nil
    if keepAlive { return }
    let channel = context.channel
    if requestEnded {
      written.whenComplete { _ in channel.close(promise: nil) }
    } else if isHTTP2 {
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      written.whenComplete { _ in bound.value.pipeline.syncOperations.stopRequestOfHTTP2() }
    } else {
      let grace = limits.lingerTimeout
      written.whenComplete { _ in channel.closeLingering(grace) }
    }
  }

  /// Reflects the origin, as the web SDK's credentialed requests need.
  private static func addCORS(_ request: HTTPRequestHead, to headers: inout HTTPHeaders) {
    guard let origin = request.headers.first(name: "origin") else { return }
    headers.add(name: "access-control-allow-origin", value: origin)
    headers.add(name: "access-control-allow-credentials", value: "true")
    headers.add(name: "vary", value: "Origin")
    guard request.method == .OPTIONS else { return }
    headers.add(name: "access-control-allow-methods", value: "DELETE,GET,HEAD,PATCH,POST,PUT")
    if let requested = request.headers.first(name: "access-control-request-headers") {
      headers.add(name: "access-control-allow-headers", value: requested)
    }
    if request.headers.contains(name: "access-control-request-private-network") {
      headers.add(name: "access-control-allow-private-network", value: "true")
    }
  }
}
