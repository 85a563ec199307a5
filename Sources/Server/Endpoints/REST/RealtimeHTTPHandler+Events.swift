// A request that has become an event stream: from the listen to the end, whoever ends it.
//
// Invariants: nothing begins on a connection that drains or is gone; the listen ends with the stream, before anything
// more could be queued for it.

import Logging
import NIOCore
import NIOHTTP1
import RealtimeEngine
import RealtimeModel

/// What an event stream holds while it lasts.
final class EventStreamState {
  var stream: EventStream
  var began = false
  private let connection: RealtimeConnection
  private let sink: LoopSink
  var keepAlive: RepeatedTask?

  init(_ stream: EventStream, _ connection: RealtimeConnection, _ sink: LoopSink) {
    self.stream = stream
    self.connection = connection
    self.sink = sink
  }

  func listen() {
    connection.listen(stream.path, query: stream.query, tag: stream.tag, hash: nil, request: 0)
  }

  /// Tells on, after the peer has read.
  func resume() { sink.resume() }

  /// Ends the listen; nothing is told any more.
  func end() {
    keepAlive?.cancel()
    keepAlive = nil
    connection.close()
    sink.detach()
  }
}

extension RealtimeHTTPHandler {
  /// Opens the database of a request for an event stream, and begins the stream.
  func listen(_ request: RESTRequest, _ context: ChannelHandlerContext) {
    withDatabase(request.namespace, context) { $0.begin(request, $1) }
  }

  private func begin(_ request: RESTRequest, _ database: RealtimeDatabase) {
    guard let context else { return }
    guard !isDraining else { return answer(RESTResponse(.draining)) }
    let stream = EventStream(
      path: request.path, query: request.query ?? .default, isExport: request.isExport)
    let sink = LoopSink(endpoint.sinkGroup(of: context.eventLoop), self)
    let events = EventStreamState(stream, database.connect(as: request.caller, to: sink), sink)
    self.events = events
    events.listen()
  }

  /// Ends a stream from this side: the last events it got stand.
  func finish(_ events: EventStreamState) {
    guard let context else { return }
    events.end()
    self.events = nil
    guard events.began else { return answer(RESTResponse(.draining)) }
    // What a peer that does not read has not got by now, it does not get.
    guard context.channel.isWritable else { return context.close(promise: nil) }
    close(context, after: context.writeAndFlush(wrapOutboundOut(.end(nil))))
  }

  private func beginResponse(_ events: EventStreamState, _ context: ChannelHandlerContext) {
    events.began = true
    var headers: HTTPHeaders = [
      "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache",
      "access-control-allow-origin": "*",
    ]
    let version = head?.version ?? .http1_1
    frameByChunks(&headers, version)
    let head = HTTPResponseHead(version: version, status: .ok, headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    let period = endpoint.limits.eventStreamKeepAlive
    let this = NIOLoopBound(self, eventLoop: context.eventLoop)
    events.keepAlive = context.eventLoop.scheduleRepeatedTask(initialDelay: period, delay: period) { _ in
      this.value.send(EventStream.keepAlive)
      this.value.flush(EventStream.keepAlive.readableBytes)
    }
  }

  private func send(_ events: ByteBuffer, counted: Bool = false) {
    guard let context else { return }
    var written: EventLoopPromise<Void>?
    if counted {
      written = memory.reserve(events.readableBytes, on: context.eventLoop)
      if written == nil { return disconnect("the server holds as many bytes as it may") }
    }
    context.write(wrapOutboundOut(.body(.byteBuffer(events))), promise: written)
  }

  private func disconnect(_ reason: String) {
    guard let channel = context?.channel else { return }
    endpoint.log.info("event stream cut off: \(reason)")
    // A stream of HTTP/2 closes only when its peer lets it; nothing more may be queued until then.
    end()
    channel.close(promise: nil)
  }

  private func flush(_ bytes: Int) {
    guard let context else { return }
    context.flush()
    if budget.isExceeded(writing: bytes, to: context.channel) {
      disconnect("its peer does not read")
    }
  }
}

extension RealtimeHTTPHandler: OutputReceiver {
  var isBackpressured: Bool { context.map { !$0.channel.isWritable } ?? false }

  var maximumQueuedBytes: Int { endpoint.limits.data.queuedOutputBytes }

  func disconnectForOverflow() { disconnect("its peer does not read") }

  func receive(_ outputs: [RealtimeOutput]) {
    var bytes = 0
    for output in outputs {
      guard let context, let events else { return }
      switch events.stream.receive(output) {
      case .nothing: break
      case .reject(let error):
        events.end()
        self.events = nil
        return answer(RESTResponse(error))
      case .send(let event, let counted):
        if !events.began { beginResponse(events, context) }
        bytes += event.readableBytes
        send(event, counted: counted)
      case .finish(let event):
        if !events.began { beginResponse(events, context) }
        send(event)
        return finish(events)
      }
    }
    flush(bytes)
  }

  func encoding(of output: RealtimeOutput) -> (@Sendable () -> ByteBuffer?)? {
    guard let stream = events?.stream, case .push(let push) = output,
      push.estimatedSize >= endpoint.limits.loopEncodingBytes
    else { return nil }
    return { stream.encoded(push).bytes }
  }

  func receive(_ output: RealtimeOutput, encoded: ByteBuffer?) {
    // The push has kept what was encoded.
    receive([output])
  }
}
