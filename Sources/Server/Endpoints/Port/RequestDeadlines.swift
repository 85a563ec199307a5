// The deadlines that keep a slow or silent peer from holding a connection, or a stream of HTTP/2.
//
// Invariant: the head's deadline runs from the end of the previous request and the body's from the end of the head, so
// that a peer that sends a byte now and then gains nothing; only a body that comes at a fair rate has longer.

import NIOCore
import NIOHTTP1

/// Sent inwards when a request's body did not arrive in time. The endpoint answers and ends the connection or stream;
/// if it is still there after as much time again, it is closed.
struct RequestBodyIsLate {}

/// Watches the requests of one HTTP/1.1 connection or one HTTP/2 stream.
final class RequestDeadlines: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  private let head: TimeAmount
  private let late: LateHeadHandler?
  private let body: TimeAmount
  private let bytesPerSecond: Int
  private var deadline: Scheduled<Void>?
  private var isReceiving = false
  private var began = NIODeadline.now()
  private var received = 0

  /// - Parameter late: ends the connection whose request's head is late; nil for a stream, which begins with a whole one.
  init(_ limits: PortLimits, _ late: LateHeadHandler?) {
    head = limits.requestHeadTimeout
    self.late = late
    body = limits.requestBodyTimeout
    bytesPerSecond = limits.requestBodyRate
  }

  func channelActive(context: ChannelHandlerContext) {
    awaitHead(context)
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
      late?.headIsWhole()
      isReceiving = true
      began = .now()
      received = 0
    case .body(let bytes): received += bytes.readableBytes
    case .end:
      late?.headIsWhole()
      isReceiving = false
      cancel()
    }
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    // Only a request that did not come whole at once is worth a timer.
    if isReceiving, deadline == nil { awaitBody(context) }
    context.fireChannelReadComplete()
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .end = unwrapOutboundIn(data), !isReceiving { awaitHead(context) }
    context.write(data, promise: promise)
  }

  private func cancel() {
    deadline?.cancel()
    deadline = nil
  }

  private func awaitHead(_ context: ChannelHandlerContext) {
    guard let late else { return }
    cancel()
    let bound = NIOLoopBound(late, eventLoop: context.eventLoop)
    deadline = context.eventLoop.scheduleTask(in: head) { bound.value.headIsLate() }
  }

  private func close(_ context: ChannelHandlerContext, in time: TimeAmount) {
    cancel()
    let channel = context.channel
    deadline = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }

  private func awaitBody(_ context: ChannelHandlerContext) {
    let earned = TimeAmount.milliseconds(Int64(received) * 1000 / Int64(max(1, bytesPerSecond)))
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    deadline = context.eventLoop.scheduleTask(deadline: began + body + earned) {
      let (handler, context) = bound.value
      handler.bodyIsDue(context)
    }
  }

  private func bodyIsDue(_ context: ChannelHandlerContext) {
    deadline = nil
    guard isReceiving else { return }
    let earned = Int64(received) * 1000 / Int64(max(1, bytesPerSecond))
    if began + body + .milliseconds(earned) > .now() { return awaitBody(context) }
    close(context, in: body)
    context.fireUserInboundEventTriggered(RequestBodyIsLate())
  }
}
