// Runs the event stream of one HTTP request, from its listen to its end.
//
// Invariants
//   1. The listen ends when the HTTP exchange ends, so nothing is written to an ended exchange.
//   2. A slow client's unread bytes are limited. Beyond the limit its connection is closed.

import Access
import Logging
import NIOCore
import NIOHTTP1
import Ports
import RealtimeEngine
import RealtimeModel

extension RealtimeHTTPService {
  /// Opens the database of a request, and begins to listen.
  func openEventStream(_ request: RESTRequest, _ exchange: HTTPExchange, _ connection: HTTPConnection) {
    exchange.endWithPeer()
    let bound = NIOLoopBound(connection, eventLoop: exchange.eventLoop)
    withDatabase(request.namespace, exchange) { exchange, database in
      guard !exchange.isOver else { return }
      guard !bound.value.isDraining else { return exchange.respond(HTTPResponse(.draining)) }
      EventStreamConnection(endpoint, request, exchange, bound.value.memory).listen(
        database, as: request.caller)
    }
  }
}

/// One event stream, confined to its event loop. The exchange and the engine retain it.
final class EventStreamConnection: OutputReceiver {
  private let endpoint: RealtimeEndpoint
  private let exchange: HTTPExchange
  private let memory: MemoryReservation
  private var stream: EventStream
  private var budget: OutputBudget
  private var hasBegun = false
  private var connection: RealtimeConnection?
  private var sink: LoopSink?
  private var keepAlive: RepeatedTask?

  init(
    _ endpoint: RealtimeEndpoint, _ request: RESTRequest, _ exchange: HTTPExchange,
    _ memory: MemoryReservation
  ) {
    self.endpoint = endpoint
    self.exchange = exchange
    self.memory = memory
    stream = EventStream(
      path: request.path, query: request.query ?? .default, isExport: request.isExport)
    budget = OutputBudget(
      limit: endpoint.limits.data.queuedOutputBytes, isMeasurable: !exchange.isHTTP2)
  }

  /// Begins to listen.
  func listen(_ database: RealtimeDatabase, as caller: Principal) {
    let sink = LoopSink(endpoint.sinkGroup(of: exchange.eventLoop), self)
    let connection = database.connect(as: caller, to: sink)
    self.sink = sink
    self.connection = connection
    exchange.onWritable { sink.resume() }
    exchange.onDrain { self.finish() }
    exchange.onEnd { self.stopListening() }
    connection.listen(stream.path, query: stream.query, tag: stream.tag, hash: nil, request: 0)
  }

  private func stopListening() {
    keepAlive?.cancel()
    keepAlive = nil
    connection?.close()
    connection = nil
    sink?.detach()
    sink = nil
  }

  /// Ends the stream. Events that a slow client has not read by now are lost.
  private func finish() {
    if hasBegun { exchange.finishOrAbort() } else { exchange.respond(HTTPResponse(.draining)) }
  }

  private func begin() {
    guard !hasBegun else { return }
    hasBegun = true
    exchange.beginEventStream([
      "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache",
      "access-control-allow-origin": "*",
    ])
    let period = endpoint.limits.eventStreamKeepAlive
    let bound = NIOLoopBound(self, eventLoop: exchange.eventLoop)
    keepAlive = exchange.eventLoop.scheduleRepeatedTask(initialDelay: period, delay: period) { _ in
      bound.value.write(EventStream.keepAlive)
      bound.value.flush(EventStream.keepAlive.readableBytes)
    }
  }

  private func write(_ events: ByteBuffer, counted: Bool = false) {
    var written: EventLoopPromise<Void>?
    if counted {
      written = memory.reserve(events.readableBytes, on: exchange.eventLoop)
      if written == nil { return disconnect("the server holds as many bytes as it may") }
    }
    exchange.writeEvent(events, written)
  }

  private func flush(_ bytes: Int) {
    guard let channel = exchange.channel else { return }
    channel.flush()
    if budget.isExceeded(writing: bytes, to: channel) { disconnect("its peer does not read") }
  }

  private func disconnect(_ reason: String) {
    guard !exchange.isOver else { return }
    endpoint.log.info("event stream cut off: \(reason)")
    exchange.abort()
  }

  // MARK: OutputReceiver

  var isBackpressured: Bool { exchange.channel.map { !$0.isWritable } ?? false }

  var maximumQueuedBytes: Int { endpoint.limits.data.queuedOutputBytes }

  func disconnectForOverflow() { disconnect("its peer does not read") }

  func receive(_ outputs: [RealtimeOutput]) {
    var bytes = 0
    for output in outputs {
      guard !exchange.isOver else { return }
      switch stream.receive(output) {
      case .nothing: break
      case .reject(let error): return exchange.respond(HTTPResponse(error))
      case .send(let event, let counted):
        begin()
        bytes += event.readableBytes
        write(event, counted: counted)
      case .finish(let event):
        begin()
        write(event)
        return finish()
      }
    }
    flush(bytes)
  }

  func encoding(of output: RealtimeOutput) -> (@Sendable () -> ByteBuffer?)? {
    guard case .push(let push) = output, push.estimatedSize >= endpoint.limits.loopEncodingBytes else {
      return nil
    }
    let stream = stream
    return { stream.encoded(push).bytes }
  }

  func receive(_ output: RealtimeOutput, encoded: ByteBuffer?) {
    // `encoded` is not needed: the push caches its encoded form, which `receive` finds.
    receive([output])
  }
}
