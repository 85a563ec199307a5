// Enforces the deadlines of requests, so that a slow or silent client cannot hold a connection or HTTP/2 stream.
//
// Invariant: the deadline of a head starts when the connection opens, and again at the end of each response. The deadline
// of a body starts at the end of the head. A client that sends single bytes does not extend a deadline. Only a body that
// arrives at the minimum rate has more time.

import NIOCore
import NIOHTTP1

/// An event for inbound handlers: a request's body did not arrive in time.
///
/// `HTTPRequestHandler` responds and ends the connection or stream. If that takes longer than the body's timeout,
/// `RequestDeadlines` closes the connection or stream.
struct RequestBodyTimeout {}

/// Watches the requests of one HTTP/1.1 connection or HTTP/2 stream.
final class RequestDeadlines: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  private let headTimeout: TimeAmount
  private let headTimeoutHandler: RequestHeadTimeoutHandler?
  private let bodyTimeout: TimeAmount
  private let bytesPerSecond: Int
  private var deadline: Scheduled<Void>?
  private var isReceiving = false
  private var bodyStart = NIODeadline.now()
  private var receivedBytes = 0

  /// - Parameter headTimeoutHandler: ends a connection whose head is late. Nil for an HTTP/2 stream, which begins with a
  ///   complete head.
  init(_ limits: PortLimits, _ headTimeoutHandler: RequestHeadTimeoutHandler?) {
    headTimeout = limits.requestHeadTimeout
    self.headTimeoutHandler = headTimeoutHandler
    bodyTimeout = limits.requestBodyTimeout
    bytesPerSecond = limits.requestBodyRate
  }

  func channelActive(context: ChannelHandlerContext) {
    startHeadDeadline(context)
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    cancel()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { cancel() }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head:
      cancel()
      headTimeoutHandler?.partCompleted()
      isReceiving = true
      bodyStart = .now()
      receivedBytes = 0
    case .body(let bytes): receivedBytes += bytes.readableBytes
    case .end:
      headTimeoutHandler?.partCompleted()
      isReceiving = false
      cancel()
    }
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    // A request that arrives in one read needs no timer.
    if isReceiving, deadline == nil { startBodyDeadline(context) }
    context.fireChannelReadComplete()
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .end = unwrapOutboundIn(data), !isReceiving { startHeadDeadline(context) }
    context.write(data, promise: promise)
  }

  private func cancel() {
    deadline?.cancel()
    deadline = nil
  }

  private func startHeadDeadline(_ context: ChannelHandlerContext) {
    guard let headTimeoutHandler else { return }
    cancel()
    let bound = NIOLoopBound(headTimeoutHandler, eventLoop: context.eventLoop)
    deadline = context.eventLoop.scheduleTask(in: headTimeout) { bound.value.headTimedOut() }
  }

  private func close(_ context: ChannelHandlerContext, in time: TimeAmount) {
    cancel()
    let channel = context.channel
    deadline = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }

  private func startBodyDeadline(_ context: ChannelHandlerContext) {
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    deadline = context.eventLoop.scheduleTask(deadline: bodyDeadline) {
      let (handler, context) = bound.value
      handler.checkBody(context)
    }
  }

  /// The deadline of the body, which each received byte extends at the minimum rate.
  private var bodyDeadline: NIODeadline {
    bodyStart + bodyTimeout + .milliseconds(Int64(receivedBytes) * 1000 / Int64(max(1, bytesPerSecond)))
  }

  private func checkBody(_ context: ChannelHandlerContext) {
    deadline = nil
    guard isReceiving else { return }
    if bodyDeadline > .now() { return startBodyDeadline(context) }
    close(context, in: bodyTimeout)
    context.fireUserInboundEventTriggered(RequestBodyTimeout())
  }
}
