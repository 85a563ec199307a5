// What the plain HTTP requests of one connection to the Firestore port, or to the hub's, share, whether they come one by one (HTTP/1.1) or
// side by side (HTTP/2): the budgets for bodies and answers, and the news that the port drains.
//
// Invariants: the bodies of all requests that are not answered yet stay within the budget; a call begins only while the
// answers that wait to be read are within theirs, and no more calls with large answers are under way than it allows; all
// of this is counted in what all connections hold together.

import FirestoreModel
import NIOCore
import NIOHTTP1

/// One connection's requests; confined to its event loop but for its constants.
final class FirestoreHTTPConnection: AnswerAccount {
  private final class Call {
    let responder: HTTPResponder
    let bytes: Int
    let start: () -> Void
    var hasStarted = false

    init(_ responder: HTTPResponder, _ bytes: Int, _ start: @escaping () -> Void) {
      self.responder = responder
      self.bytes = bytes
      self.start = start
    }
  }

  let service: any PlainHTTPService
  let port: PortLimits
  let memory: MemoryReservation
  private(set) lazy var inflations = DecompressionQueue()
  private(set) var isDraining = false
  private var heldBytes = 0
  private var queuedBytes = 0
  private(set) var moves = 0
  private var readingCalls = 0
  private var waiting: [Call] = []
  private var handlers: [ObjectIdentifier: FirestoreHTTPHandler] = [:]

  init(_ service: any PlainHTTPService, _ port: PortLimits) {
    self.service = service
    self.port = port
    memory = MemoryReservation(port)
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
    guard memory.resize(from: old, to: new) else { throw noMemory }
    heldBytes = held
  }

  /// Gives back what a request held.
  func release(_ bytes: Int) {
    heldBytes -= bytes
    memory.release(bytes)
  }

  /// The answer where the server has no room for what is asked.
  var noMemory: FirestoreError { .resourceExhausted(memory.memory.refusal) }

  func queue(_ bytes: Int) {
    queuedBytes += bytes
    memory.reserveUnchecked(bytes)
  }

  func unqueue(_ bytes: Int) {
    queuedBytes -= bytes
    memory.release(bytes)
    moves &+= 1
    startWaiting()
  }

  /// Starts a call when there is room for its answer: at once, or when others have been read.
  /// - Parameter bytes: what its answer may take up; 0 for a small one. A call that others may wait for must expect
  ///   nothing: it waits only for a peer that does not read.
  func admit(_ responder: HTTPResponder, expecting bytes: Int, _ start: @escaping () -> Void) {
    let call = Call(responder, bytes, start)
    waiting.append(call)
    startWaiting()
    let bound = NIOLoopBound((connection: self, call: call), eventLoop: responder.eventLoop)
    responder.onEnd {
      let (connection, call) = bound.value
      connection.end(call)
    }
  }

  private func hasRoom(for call: Call) -> Bool {
    queuedBytes < port.http2.maximumQueuedAnswerBytes
      && (call.bytes == 0 || readingCalls < port.http2.maximumReadingCalls)
  }

  private func startWaiting() {
    while let index = waiting.firstIndex(where: hasRoom) {
      let call = waiting.remove(at: index)
      guard memory.reserve(call.bytes) else {
        call.responder.answer(.error(noMemory))
        continue
      }
      call.hasStarted = true
      if call.bytes > 0 { readingCalls += 1 }
      call.start()
    }
  }

  private func end(_ call: Call) {
    if call.hasStarted {
      if call.bytes > 0 { readingCalls -= 1 }
      memory.release(call.bytes)
      startWaiting()
    } else {
      waiting.removeAll { $0 === call }
    }
  }

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

extension PlainHTTPService {
  /// The initializer of HTTP/1.1 connections.
  func http1(_ limits: PortLimits) -> @Sendable (any Channel) throws -> Void {
    { channel in
      let connection = FirestoreHTTPConnection(self, limits)
      let pipeline = channel.pipeline.syncOperations
      try pipeline.addHandler(FirestoreHTTPDrainHandler(connection))
      try pipeline.addHTTP1Server(limits)
      try pipeline.addHandler(FirestoreHTTPHandler(connection, isHTTP2: false))
      try pipeline.allowHalfClosure(true)
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
