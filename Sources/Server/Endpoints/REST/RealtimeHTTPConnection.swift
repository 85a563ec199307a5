// What the requests of one HTTP connection share, whether they come one by one (HTTP/1.1) or side by side (HTTP/2): the
// budgets for bodies and answers, and the news that the port drains.
//
// Invariant: the bodies of all requests that are not answered yet stay within the budget, and so do all answers that
// wait to be read, but for the last one; both are counted in what all connections hold together.

import NIOCore
import NIOHTTP1

/// One connection's requests; confined to its event loop but for its constants.
final class RealtimeHTTPConnection: AnswerAccount {
  let endpoint: RealtimeEndpoint
  let port: PortLimits
  let memory: MemoryReservation
  private(set) var isDraining = false
  private var heldBytes = 0
  private var queuedBytes = 0
  private(set) var moves = 0
  private var handlers: [ObjectIdentifier: RealtimeHTTPHandler] = [:]

  init(_ endpoint: RealtimeEndpoint, _ port: PortLimits) {
    self.endpoint = endpoint
    self.port = port
    memory = MemoryReservation(port)
  }

  /// Accounts for a request that holds `new` bytes instead of `old`. If that is more than may be held, nothing is
  /// counted.
  func hold(_ new: Int, insteadOf old: Int) throws(RESTError) {
    let held = heldBytes + new - old
    let limit = endpoint.limits.connectionBodyBytes
    if new > old, held > limit {
      throw RESTError(
        .serviceUnavailable, "The requests under way on this connection exceed the limit of \(limit) bytes.")
    }
    guard memory.resize(from: old, to: new) else { throw noMemory }
    heldBytes = held
  }

  var answerTimeout: TimeAmount { port.answerTimeout }

  /// Gives back what a request held.
  func release(_ bytes: Int) {
    heldBytes -= bytes
    memory.release(bytes)
  }

  /// The answer, or the refusal of one that only tells what there is and that the server has no room to keep until its
  /// peer has read it. The body is counted either way.
  func counted(_ response: RESTResponse, to request: HTTPRequestHead) -> RESTResponse {
    guard let body = response.body, request.method != .HEAD else { return response }
    if memory.reserve(body.readableBytes) { return response }
    let counted = request.method == .GET ? RESTResponse(noMemory) : response
    memory.reserveUnchecked(counted.body?.readableBytes ?? 0)
    return counted
  }

  /// The answer where the server has no room for what is asked.
  var noMemory: RESTError { RESTError(.serviceUnavailable, memory.memory.refusal) }

  func queue(_ bytes: Int) { queuedBytes += bytes }

  func unqueue(_ bytes: Int) {
    queuedBytes -= bytes
    moves &+= 1
  }

  /// Whether the peer has to read answers before it gets more of them.
  var owesReading: Bool { queuedBytes >= endpoint.limits.connectionAnswerBytes }

  func add(_ handler: RealtimeHTTPHandler) { handlers[ObjectIdentifier(handler)] = handler }

  func remove(_ handler: RealtimeHTTPHandler) { handlers[ObjectIdentifier(handler)] = nil }

  fileprivate func drain() {
    guard !isDraining else { return }
    isDraining = true
    for handler in Array(handlers.values) { handler.drain() }
  }
}

/// Hears on the connection that the port drains: what lies behind may swallow that until its requests are answered.
final class RealtimeHTTPDrainHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = NIOAny

  private let connection: RealtimeHTTPConnection

  init(_ connection: RealtimeHTTPConnection) { self.connection = connection }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    context.fireUserInboundEventTriggered(event)
    if event is ChannelShouldQuiesceEvent { connection.drain() }
  }
}

extension RESTError {
  /// What is refused because the server shuts down.
  static let draining = RESTError(.serviceUnavailable, "The server is shutting down.")

  /// What is refused because the peer does not read what it was answered.
  static func unread(_ limit: Int) -> RESTError {
    RESTError(
      .serviceUnavailable,
      "The answers that wait to be read on this connection exceed the limit of \(limit) bytes.")
  }
}
