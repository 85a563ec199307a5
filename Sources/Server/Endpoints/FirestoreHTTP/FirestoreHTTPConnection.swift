// What the plain HTTP requests of one connection to the Firestore port share, whether they come one by one (HTTP/1.1) or
// side by side (HTTP/2): the budgets for bodies and answers, and the news that the port drains.
//
// Invariant: the bodies of all requests that are not answered yet stay within the budget, and so do all answers that
// wait to be read, but for the last one; both are counted in what all connections hold together.

import FirestoreModel
import NIOCore
import NIOHTTP1

/// One connection's requests; confined to its event loop but for its constants.
final class FirestoreHTTPConnection: AnswerAccount {
  let service: FirestoreHTTPService
  let port: PortLimits
  let memory: PeerMemoryAccount
  private(set) var isDraining = false
  private var heldBytes = 0
  private var queuedBytes = 0
  private(set) var moves = 0
  private var handlers: [ObjectIdentifier: FirestoreHTTPHandler] = [:]

  init(_ service: FirestoreHTTPService, _ port: PortLimits) {
    self.service = service
    self.port = port
    memory = PeerMemoryAccount(port)
  }

  var answerTimeout: TimeAmount { port.answerTimeout }

  /// Accounts for a request that holds `new` bytes instead of `old`. If that is more than may be held, nothing is
  /// counted.
  func hold(_ new: Int, insteadOf old: Int) throws(FirestoreError) {
    let held = heldBytes + new - old
    let limit = port.http2.maximumBufferedRequestBytes
    if new > old, held > limit {
      throw .resourceExhausted("This connection's requests under way exceed the limit of \(limit) bytes.")
    }
    guard memory.hold(new, insteadOf: old) else { throw noMemory }
    heldBytes = held
  }

  /// Gives back what a request held.
  func release(_ bytes: Int) {
    heldBytes -= bytes
    memory.give(bytes)
  }

  /// The answer where the server has no room for what is asked.
  var noMemory: FirestoreError { .resourceExhausted(memory.memory.refusal) }

  func queue(_ bytes: Int) {
    queuedBytes += bytes
    memory.takeAnyway(bytes)
  }

  func unqueue(_ bytes: Int) {
    queuedBytes -= bytes
    memory.give(bytes)
    moves &+= 1
  }

  /// Whether the peer has to read answers before it is served again.
  var owesReading: Bool { queuedBytes >= port.http2.maximumQueuedAnswerBytes }

  func add(_ handler: FirestoreHTTPHandler) { handlers[ObjectIdentifier(handler)] = handler }

  func remove(_ handler: FirestoreHTTPHandler) { handlers[ObjectIdentifier(handler)] = nil }

  fileprivate func drain() {
    guard !isDraining else { return }
    isDraining = true
    for handler in Array(handlers.values) { handler.drain() }
  }
}

/// Hears on the connection that the port drains: what lies behind may swallow that until its requests are answered.
private final class FirestoreHTTPDrainHandler: ChannelInboundHandler {
  typealias InboundIn = NIOAny

  private let connection: FirestoreHTTPConnection

  init(_ connection: FirestoreHTTPConnection) { self.connection = connection }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    context.fireUserInboundEventTriggered(event)
    if event is ChannelShouldQuiesceEvent { connection.drain() }
  }
}

extension FirestoreHTTPService {
  /// The initializer of HTTP/1.1 connections.
  func http1(_ limits: PortLimits) -> @Sendable (any Channel) throws -> Void {
    { channel in
      let connection = FirestoreHTTPConnection(self, limits)
      let pipeline = channel.pipeline.syncOperations
      try pipeline.addHandler(FirestoreHTTPDrainHandler(connection))
      try pipeline.addHTTP1Server(limits)
      try pipeline.addHandler(FirestoreHTTPHandler(connection, isHTTP2: false))
    }
  }

  /// The maker of what initializes those streams of an HTTP/2 connection that are not gRPC.
  func http2(_ limits: PortLimits) -> @Sendable (any Channel) throws -> @Sendable (any Channel) throws -> Void
  {
    { channel in
      let connection = FirestoreHTTPConnection(self, limits)
      try channel.pipeline.syncOperations.addHandler(FirestoreHTTPDrainHandler(connection))
      let bound = NIOLoopBound(connection, eventLoop: channel.eventLoop)
      return { stream in
        try stream.pipeline.syncOperations.addHTTP1Translation(limits)
        try stream.pipeline.syncOperations.addHandler(FirestoreHTTPHandler(bound.value, isHTTP2: true))
      }
    }
  }
}
