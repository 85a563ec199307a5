// One session of protocol v5, whatever carries it: requests to the engine, its answers and pushes to the transport.
//
// Invariants
//   1. Requests go to the engine in the order in which they came; answers leave in that order too, also those
//      that the session gives itself; and none leaves before a push that was there earlier.
//   2. How many requests, and how many bytes of them, wait for answers is known, so that a transport stops reading.
//   3. Confined to one event loop; after `end()` nothing reaches the transport.

import JSON
import Logging
import NIOCore
import RealtimeEngine
import RealtimeModel
import RealtimeWire

final class RealtimeSession {
  let endpoint: RealtimeEndpoint
  /// How the transport wants messages.
  private let form: MessageForm
  private var transport: (any SessionTransport)?
  private var connection: RealtimeConnection?
  private var sink: LoopSink?

  /// Requests handed to the engine, and answers that came back.
  private(set) var submitted = 0
  private(set) var answered = 0
  /// The requests that the engine has not answered, in order, with their bytes, and the sum of these.
  private var outstanding = CircularBuffer<(size: Int, request: SessionListens.Request)>(initialCapacity: 0)
  private(set) var outstandingBytes = 0
  /// The bytes of the message being handled.
  private var messageBytes = 0
  /// How many pushes and answers the engine has handed over.
  private var received = 0
  /// The session's own answers that wait for the engine's before them, and for what the peer has yet to read.
  private var waiting: [(after: Int, place: Int, message: ByteBuffer)] = []
  /// What the engine's plain success means for requests that promise more than that.
  var successTexts: [Int64: [UInt8]] = [:]
  private var listens = SessionListens()

  init(_ endpoint: RealtimeEndpoint, form: MessageForm) {
    self.endpoint = endpoint
    self.form = form
  }

  // MARK: Life

  /// Begins a session, which ends the one that the client had before.
  ///
  /// - Returns: the session's name.
  func open(
    _ database: RealtimeDatabase, lastSession: String?, on eventLoop: any EventLoop,
    over transport: any SessionTransport
  ) -> String {
    self.transport = transport
    let sink = LoopSink(endpoint.sinkGroup(of: eventLoop), self)
    self.sink = sink
    if let lastSession { database.takeOver(session: lastSession) }
    let connection = database.connect(as: .anonymous, to: sink)
    self.connection = connection
    return connection.session
  }

  /// Ends the session in the engine, and all that goes to the transport.
  func end() {
    connection?.close()
    connection = nil
    sink?.detach()
    sink = nil
    transport = nil
    waiting = []
  }

  /// Whether every request was answered.
  var isIdle: Bool { submitted == answered && waiting.isEmpty }

  /// Whether so many requests, or so many bytes of them, wait for their answers.
  func isFull(_ requests: Int, _ bytes: Int) -> Bool {
    submitted - answered + waiting.count >= requests || outstandingBytes >= bytes
  }

  // MARK: Requests

  /// Reads a message and does what it asks; a control message is the transport's own affair.
  func receive(_ bytes: UnsafeRawBufferPointer) -> ClientControl? {
    do throws(WireError) {
      switch try ClientMessage(json: bytes, limits: endpoint.limits.data) {
      case .control(let control): return control
      case .request(let request): perform(request, size: bytes.count)
      }
    } catch {
      transport?.refuse(error.reason, code: error.closeCode)
    }
    return nil
  }

  /// Does what a request asks; it counts as `size` bytes until it is answered.
  func perform(_ request: ClientRequest, size: Int) {
    guard let connection else { return }
    messageBytes = size
    perform(request, on: connection)
  }

  /// Answers a message that was too large to be kept, by the number of its request.
  func receiveOversized(request: Int64?) {
    if let request {
      reply(ServerResponse(request, .writeTooBig).json())
    } else {
      transport?.refuse("The message is too large.", code: 1009)
    }
  }

  /// Counts a request that the engine will answer.
  func willBeAnswered(_ request: SessionListens.Request = .other) {
    submitted += 1
    outstanding.append((messageBytes, request))
    outstandingBytes += messageBytes
  }

  /// Sends the session's own answer to a request, behind the answers to the requests before it, and behind what waits.
  func reply(_ message: [UInt8]) {
    guard let bytes = form.bytes(message) else { return }
    let place = received + (sink?.waiting ?? 0)
    if answered == submitted, place == received, waiting.isEmpty {
      transport?.write(bytes, counted: false)
    } else {
      waiting.append((submitted, place, bytes))
    }
  }
}

// MARK: Answers and pushes

extension RealtimeSession: LoopReceiver {
  var isBehind: Bool { transport?.isBehind ?? false }

  var mostPendingBytes: Int { endpoint.limits.data.queuedOutputBytes }

  func cutOff() { transport?.cutOff() }

  /// Goes on telling, after the peer has read.
  func goOn() { sink?.goOn() }

  func receive(_ outputs: [RealtimeOutput]) {
    for output in outputs {
      received += 1
      switch output {
      case .push(let push): self.push(push)
      case .response(let request, let response): answer(request, response)
      case .ended:
        transport?.sessionWasTakenOver()
        return
      }
      writeOwnAnswers()
    }
    transport?.flush()
    transport?.requestsWereAnswered()
  }

  func encoding(of output: RealtimeOutput) -> (@Sendable () -> ByteBuffer?)? {
    let form = form
    switch output {
    case .push(let push) where push.estimatedSize >= endpoint.limits.loopEncodingBytes:
      return { form.encoded(push).bytes }
    case .response(let request, .value(let node))
    where node.estimatedSize >= endpoint.limits.loopEncodingBytes:
      guard node.estimatedSize <= endpoint.limits.data.responseBytes else { return nil }
      return { form.bytes(ServerResponse(request, .ok, node).json()) }
    default: return nil
    }
  }

  func receive(_ output: RealtimeOutput, encoded: ByteBuffer?) {
    received += 1
    switch output {
    // The push has kept what was encoded.
    case .push(let push): self.push(push)
    case .response(let request, let response):
      answer(request, encoded == nil ? .failure(.tooBig) : response, encoded)
    case .ended: break
    }
    writeOwnAnswers()
    transport?.flush()
    transport?.requestsWereAnswered()
  }

  /// Writes the engine's answer to the oldest request.
  private func answer(_ request: Int64, _ response: RealtimeResponse, _ encoded: ByteBuffer? = nil) {
    answered += 1
    guard let (size, asked) = outstanding.popFirst() else { return }
    outstandingBytes -= size
    switch listens.outcome(of: asked, response) {
    case .answer(let response):
      var message = encoded ?? bytes(of: response, to: request)
      if transport?.takes(message) == false { message = failure(.tooBig, request) }
      transport?.write(message, counted: message.readableBytes >= EncodedPush.countedBytes)
    case .cancel(let name, let queryText): cancel(name, queryText)
    case .goesOn: transport?.refuse("A listen could not be ended.", code: 1011)
    case .nothing: break
    }
  }

  /// Writes those of the session's own answers before which nothing is left.
  private func writeOwnAnswers() {
    while let first = waiting.first, first.after <= answered, first.place <= received {
      waiting.removeFirst()
      transport?.write(first.message, counted: false)
    }
  }

  private func push(_ push: RealtimePush) {
    if case .cancel = push.body {
      // Of one that ended because of its size the client was told.
      let name = SessionListens.Name(path: push.path, tag: push.tag)
      if let queryText = listens.remove(name) { cancel(name, queryText) }
      return
    }
    guard listens.wants(push) else { return }
    let encoded = form.encoded(push)
    if let bytes = encoded.bytes, transport?.takes(bytes) ?? true {
      transport?.write(bytes, counted: encoded.mustBeCounted())
    } else {
      end(toldBy: push)
    }
  }

  /// Ends what would be told a push that has more pieces than a client can count: going on without it would show the
  /// client a state that never was.
  private func end(toldBy push: RealtimePush) {
    if push.isFirst {
      guard !outstanding.isEmpty, case .listen(let name, _) = outstanding[outstanding.startIndex].request
      else { return }
      outstanding[outstanding.startIndex].request = .tooLarge(name)
      listens.remove(name)
      return endInEngine(name)
    }
    for (name, queryText) in listens.remove(toldBy: push) {
      cancel(name, queryText)
      endInEngine(name)
    }
  }

  private func endInEngine(_ name: SessionListens.Name) {
    guard let connection else { return }
    listens.willEnd()
    messageBytes = 0
    willBeAnswered(.end(name))
    connection.unlisten(name.path, tag: name.tag, request: 0)
  }

  /// Tells the client that a listen has ended.
  private func cancel(_ name: SessionListens.Name, _ queryText: [UInt8]?) {
    if let bytes = form.bytes(ServerPush.cancel(path: name.path, queryText: queryText).json()) {
      transport?.write(bytes, counted: false)
    }
  }

  private func bytes(of response: RealtimeResponse, to request: Int64) -> ByteBuffer {
    switch response {
    case .done:
      if !successTexts.isEmpty, let text = successTexts.removeValue(forKey: request) {
        return form.bytes(text) ?? ByteBuffer()
      }
      return form.success(request)
    case .listening(let warnings):
      return form.bytes(ServerResponse.json(request, .ok) { $0.warnings(warnings) }) ?? ByteBuffer()
    case .value(let node):
      guard node.estimatedSize <= endpoint.limits.data.responseBytes else { return failure(.tooBig, request) }
      return form.bytes(ServerResponse(request, .ok, node).json()) ?? failure(.tooBig, request)
    case .failure(let error):
      successTexts[request] = nil
      return failure(error, request)
    }
  }

  private func failure(_ error: RealtimeError, _ request: Int64) -> ByteBuffer {
    form.bytes(ServerResponse(request, error).json()) ?? ByteBuffer()
  }
}

extension WireError {
  /// What a client is told that sent this.
  var reason: String {
    switch self {
    case .notJSON(let error): "The message is not JSON: \(error)"
    case .notAMessage(let reason): "The message is not one of protocol version 5: \(reason)"
    }
  }

  /// The close code of a WebSocket for it (RFC 6455, section 7.4.1).
  var closeCode: UInt16 {
    switch self {
    case .notJSON: 1007
    case .notAMessage: 1002
    }
  }
}

extension JSONWriter {
  /// Writes the payload of a listen's success.
  fileprivate mutating func warnings(_ warnings: [String]) {
    beginObject()
    if !warnings.isEmpty {
      key("w")
      beginArray()
      for warning in warnings { string(warning) }
      endArray()
    }
    endObject()
  }
}
