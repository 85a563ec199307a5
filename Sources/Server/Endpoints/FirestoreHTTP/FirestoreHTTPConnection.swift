// What the plain HTTP requests of one connection to the Firestore port share, whether they come one by one (HTTP/1.1) or
// side by side (HTTP/2): the budgets for bodies and answers, and the news that the port drains.
//
// Invariant: the bodies of all requests that are not answered yet stay within the budget, and so do all answers that
// wait to be read, but for the last one.

import NIOCore
import NIOHTTP1

/// One connection's requests; confined to its event loop but for its constants.
final class FirestoreHTTPConnection: AnswerAccount {
  let service: FirestoreHTTPService
  let port: PortLimits
  private(set) var isDraining = false
  private var heldBytes = 0
  private var queuedBytes = 0
  private(set) var moves = 0
  private var handlers: [ObjectIdentifier: FirestoreHTTPHandler] = [:]

  init(_ service: FirestoreHTTPService, _ port: PortLimits) {
    self.service = service
    self.port = port
  }

  var answerTimeout: TimeAmount { port.answerTimeout }

  /// Accounts for a request that holds `new` bytes instead of `old`; false, and nothing counted, if that is more than
  /// the connection may hold.
  func hold(_ new: Int, insteadOf old: Int) -> Bool {
    let held = heldBytes + new - old
    guard new <= old || held <= port.http2.maximumBufferedRequestBytes else { return false }
    heldBytes = held
    return true
  }

  func queue(_ bytes: Int) { queuedBytes += bytes }

  func unqueue(_ bytes: Int) {
    queuedBytes -= bytes
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
