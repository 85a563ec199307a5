// A Realtime Database session runs protocol v5 with one client over any transport. It hands requests to the
// engine, and the engine's responses and pushes to the transport.
//
// A listen is a client's subscription to a location or query. A push is a message of the server without a
// request: it reports a change to a listen. Most responses come from the engine; the session itself responds
// to requests about the connection.
//
// Invariants
//   1. Requests reach the engine in the order of arrival. All responses are sent in the same order, including
//      those of the session itself. No response overtakes a push that was queued before it.
//   2. The number and the bytes of unanswered requests are known, so that a transport can stop reading.
//   3. The session is confined to one event loop. After `end()` nothing reaches the transport.

import Access
import JSON
import Logging
import NIOCore
import RealtimeEngine
import RealtimeModel
import RealtimeWire

final class RealtimeSession {
  let endpoint: RealtimeEndpoint
  /// The encoding that the transport expects.
  private let messageEncoding: MessageEncoding
  private var transport: (any SessionTransport)?
  private var connection: RealtimeConnection?
  private var sink: LoopSink?

  /// The number of requests handed to the engine so far. `answeredCount` is the number of its responses.
  private(set) var submittedCount = 0
  private(set) var answeredCount = 0
  /// The requests without a response in order, with their sizes in bytes. `outstandingBytes` is the sum of
  /// the sizes.
  private var outstanding = CircularBuffer<(size: Int, request: SessionListens.Request)>(initialCapacity: 0)
  private(set) var outstandingBytes = 0
  /// The size of the message that is being handled, in bytes.
  private var messageBytes = 0
  /// The number of pushes and responses that the engine has delivered.
  private var deliveredCount = 0
  /// Responses of the session itself that are deferred. Each is sent after the engine has given `after` responses and
  /// delivered `position` outputs.
  private var delayedReplies: [(after: Int, position: Int, message: ByteBuffer)] = []
  /// For some requests, the message to send instead of the plain response for success.
  var successMessages: [Int64: [UInt8]] = [:]
  private var listens = SessionListens()

  init(_ endpoint: RealtimeEndpoint, encoding messageEncoding: MessageEncoding) {
    self.endpoint = endpoint
    self.messageEncoding = messageEncoding
  }

  // MARK: Lifecycle

  /// Opens a session, and ends the client's previous one.
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
    let connection = database.connect(as: .nobody, to: sink)
    self.connection = connection
    return connection.session
  }

  /// Ends the session in the engine. Afterwards nothing is written to the transport.
  func end() {
    connection?.close()
    connection = nil
    sink?.detach()
    sink = nil
    transport = nil
    delayedReplies = []
  }

  /// Whether every request has its response.
  var isIdle: Bool { submittedCount == answeredCount && delayedReplies.isEmpty }

  /// Whether the number or the bytes of unanswered requests reach these limits.
  func reachesLimits(requests: Int, bytes: Int) -> Bool {
    submittedCount - answeredCount + delayedReplies.count >= requests || outstandingBytes >= bytes
  }

  // MARK: Requests

  /// Parses a message and performs its request. A control message is returned instead, because the transport
  /// handles it.
  func receive(_ bytes: UnsafeRawBufferPointer) -> ClientControl? {
    do throws(WireError) {
      switch try ClientMessage(json: bytes, limits: endpoint.limits.data) {
      case .control(let control): return control
      case .request(let request): perform(request, size: bytes.count)
      }
    } catch {
      transport?.reject(error.reason, code: error.closeCode)
    }
    return nil
  }

  /// Performs a request, which counts as `size` bytes until its response.
  func perform(_ request: ClientRequest, size: Int) {
    guard let connection else { return }
    messageBytes = size
    perform(request, on: connection)
  }

  /// Rejects a message that was too large to be buffered. If the number of its request is known, only the
  /// request fails; otherwise the connection ends.
  func receiveOversized(request: Int64?) {
    if let request {
      reply(ServerResponse(request, .writeTooBig).json())
    } else {
      transport?.reject("The message is too large.", code: 1009)
    }
  }

  /// Counts a request that the engine will respond to.
  func expectResponse(_ request: SessionListens.Request = .other) {
    submittedCount += 1
    outstanding.append((messageBytes, request))
    outstandingBytes += messageBytes
  }

  /// Sends a response of the session itself. It follows the responses to earlier requests and the output that
  /// is queued now.
  func reply(_ message: [UInt8]) {
    guard let bytes = messageEncoding.bytes(message) else { return }
    let position = deliveredCount + (sink?.queuedCount ?? 0)
    if answeredCount == submittedCount, position == deliveredCount, delayedReplies.isEmpty {
      transport?.write(bytes, counted: false)
    } else {
      delayedReplies.append((submittedCount, position, bytes))
    }
  }
}

// MARK: Responses and pushes

extension RealtimeSession: OutputReceiver {
  var isBackpressured: Bool { transport?.isBackpressured ?? false }

  var maximumQueuedBytes: Int { endpoint.limits.data.queuedOutputBytes }

  func disconnectForOverflow() { transport?.disconnectForOverflow() }

  /// Resumes sending, after the client has read.
  func resume() { sink?.resume() }

  func receive(_ outputs: [RealtimeOutput]) {
    for output in outputs {
      deliveredCount += 1
      switch output {
      case .push(let push): self.push(push)
      case .response(let request, let response): respond(to: request, response)
      case .authRevoked(let error): authRevoked(error)
      case .ended:
        transport?.sessionWasReplaced()
        return
      }
      writeDelayedReplies()
    }
    transport?.flush()
    transport?.requestsWereAnswered()
  }

  func encoding(of output: RealtimeOutput) -> (@Sendable () -> ByteBuffer?)? {
    let messageEncoding = messageEncoding
    switch output {
    case .push(let push) where push.estimatedSize >= endpoint.limits.loopEncodingBytes:
      return { messageEncoding.encoded(push).bytes }
    case .response(let request, .value(let node))
    where node.estimatedSize >= endpoint.limits.loopEncodingBytes:
      guard node.estimatedSize <= endpoint.limits.data.responseBytes else { return nil }
      return { messageEncoding.bytes(ServerResponse(request, .ok, node).json()) }
    default: return nil
    }
  }

  func receive(_ output: RealtimeOutput, encoded: ByteBuffer?) {
    deliveredCount += 1
    switch output {
    // `encoded` is not needed: the push caches its encoded bytes.
    case .push(let push): self.push(push)
    case .response(let request, let response):
      respond(to: request, encoded == nil ? .failure(.tooBig) : response, encoded)
    case .authRevoked(let error): authRevoked(error)
    case .ended: break
    }
    writeDelayedReplies()
    transport?.flush()
    transport?.requestsWereAnswered()
  }

  /// Notifies the client that its credential is no longer valid. The client then connects again with a new
  /// credential.
  private func authRevoked(_ error: RealtimeError) {
    if let bytes = messageEncoding.bytes(ServerPush.authRevoked(error).json()) {
      transport?.write(bytes, counted: false)
    }
  }

  /// Sends the engine's response to the oldest request.
  private func respond(to request: Int64, _ response: RealtimeResponse, _ encoded: ByteBuffer? = nil) {
    answeredCount += 1
    guard let (size, listenRequest) = outstanding.popFirst() else {
      preconditionFailure("invariant: the engine responds once to each request")
    }
    outstandingBytes -= size
    switch listens.outcome(of: listenRequest, response) {
    case .respond(let response):
      var message = encoded ?? bytes(of: response, to: request)
      if transport?.canSend(message) == false { message = failure(.tooBig, request) }
      transport?.write(message, counted: message.readableBytes >= EncodedPush.minimumCountedBytes)
    case .cancel(let name, let queryText): cancel(name, queryText)
    case .remainsActive: transport?.reject("A listen could not be ended.", code: 1011)
    case .nothing: break
    }
  }

  /// Sends the responses of the session itself for which all preceding output has been sent.
  private func writeDelayedReplies() {
    while let first = delayedReplies.first, first.after <= answeredCount, first.position <= deliveredCount {
      delayedReplies.removeFirst()
      transport?.write(first.message, counted: false)
    }
  }

  private func push(_ push: RealtimePush) {
    if case .cancel = push.body {
      // The session may have ended the listen already because of a too large push. The client was then
      // notified.
      let name = SessionListens.Name(path: push.path, tag: push.tag)
      if let queryText = listens.remove(name) { cancel(name, queryText) }
      return
    }
    guard listens.accepts(push) else { return }
    let encoded = messageEncoding.encoded(push)
    if let bytes = encoded.bytes, transport?.canSend(bytes) ?? true {
      transport?.write(bytes, counted: encoded.countOnce())
    } else {
      endListens(of: push)
    }
  }

  /// Ends the listens of a push that is too large to send. If they continued without it, the client would
  /// show a state that never existed.
  private func endListens(of push: RealtimePush) {
    if push.isFirst {
      guard !outstanding.isEmpty, case .listen(let name, _) = outstanding[outstanding.startIndex].request
      else { return }
      outstanding[outstanding.startIndex].request = .tooLarge(name)
      listens.remove(name)
      return endInEngine(name)
    }
    for (name, queryText) in listens.remove(notifiedBy: push) {
      cancel(name, queryText)
      endInEngine(name)
    }
  }

  private func endInEngine(_ name: SessionListens.Name) {
    guard let connection else { return }
    listens.willEnd()
    messageBytes = 0
    expectResponse(.end(name))
    connection.unlisten(name.path, tag: name.tag, request: 0)
  }

  /// Notifies the client that a listen has ended.
  private func cancel(_ name: SessionListens.Name, _ queryText: [UInt8]?) {
    if let bytes = messageEncoding.bytes(ServerPush.cancel(path: name.path, queryText: queryText).json()) {
      transport?.write(bytes, counted: false)
    }
  }

  private func bytes(of response: RealtimeResponse, to request: Int64) -> ByteBuffer {
    switch response {
    case .done:
      if !successMessages.isEmpty, let text = successMessages.removeValue(forKey: request) {
        return messageEncoding.bytes(text) ?? ByteBuffer()
      }
      return messageEncoding.success(request)
    case .listening(let warnings):
      return messageEncoding.bytes(ServerResponse.json(request, .ok) { $0.warnings(warnings) })
        ?? ByteBuffer()
    case .value(let node):
      guard node.estimatedSize <= endpoint.limits.data.responseBytes else { return failure(.tooBig, request) }
      return messageEncoding.bytes(ServerResponse(request, .ok, node).json()) ?? failure(.tooBig, request)
    case .failure(let error):
      successMessages[request] = nil
      return failure(error, request)
    }
  }

  private func failure(_ error: RealtimeError, _ request: Int64) -> ByteBuffer {
    messageEncoding.bytes(ServerResponse(request, error).json()) ?? ByteBuffer()
  }
}

extension WireError {
  /// The error text for the client that sent the message.
  var reason: String {
    switch self {
    case .notJSON(let error): "The message is not JSON: \(error)"
    case .notAMessage(let reason): "The message is not one of protocol version 5: \(reason)"
    }
  }

  /// The WebSocket close code (RFC 6455, section 7.4.1).
  var closeCode: UInt16 {
    switch self {
    case .notJSON: 1007
    case .notAMessage: 1002
    }
  }
}

extension JSONWriter {
  /// Writes the payload of the response to a successful listen request.
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
