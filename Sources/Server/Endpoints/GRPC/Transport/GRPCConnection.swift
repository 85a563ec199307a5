// What the gRPC streams of one HTTP/2 connection share: the methods, the task runner, the budget for requests that
// have arrived in part, the queue of answers that the peer has not taken.

import GRPCFraming
import Logging
import NIOCore
import NIOHTTP2

/// The gRPC side of one HTTP/2 connection. Confined to its event loop but for its constants.
final class GRPCConnection {
  let methods: GRPCMethods
  let limits: HTTP2Limits
  let memory: MemoryReservation
  let tasks: LoopTasks
  let log: Logger
  /// Installs handlers for a stream that is not gRPC.
  let fallback: @Sendable (any Channel) throws -> Void
  private var bufferedBytes = 0
  let answers: GRPCAnswerQueue
  private(set) lazy var inflations = DecompressionQueue()
  private var conversations: [ObjectIdentifier: GRPCStreamHandler] = [:]
  private var isDraining = false

  init(
    methods: GRPCMethods, limits: PortLimits, channel: any Channel, log: Logger,
    fallback: @escaping @Sendable (any Channel) throws -> Void
  ) {
    self.methods = methods
    self.limits = limits.http2
    self.memory = MemoryReservation(limits)
    self.tasks = LoopTasks(channel.eventLoop)
    self.answers = GRPCAnswerQueue(limits.http2, memory, channel)
    self.log = log
    self.fallback = fallback
  }

  /// Accounts for a stream that holds `new` bytes of requests instead of `old`. If that is more than may be held,
  /// nothing is counted, and the status says why.
  func hold(_ new: Int, insteadOf old: Int) -> GRPCStatus? {
    let held = bufferedBytes + new - old
    if new > old, held > limits.maximumBufferedRequestBytes {
      return GRPCStatus(
        .resourceExhausted,
        "This connection's requests under way exceed the limit of \(limits.maximumBufferedRequestBytes) bytes."
      )
    }
    guard memory.resize(from: old, to: new) else { return noMemory }
    bufferedBytes = held
    return nil
  }

  /// The answer where the server has no room for what is asked.
  var noMemory: GRPCStatus { GRPCStatus(.resourceExhausted, memory.memory.refusal) }

  /// Conversations never end by themselves: on drain they are asked to, and so are those that begin later.
  func add(_ handler: GRPCStreamHandler) {
    conversations[ObjectIdentifier(handler)] = handler
    if isDraining { handler.drain() }
  }

  func remove(_ handler: GRPCStreamHandler) {
    conversations[ObjectIdentifier(handler)] = nil
  }

  func drain() {
    isDraining = true
    for handler in Array(conversations.values) { handler.drain() }
  }
}

/// Hears on the connection that the port drains, or that the connection is gone.
private final class GRPCDrainHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let connection: GRPCConnection

  init(_ connection: GRPCConnection) {
    self.connection = connection
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    connection.answers.stop()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    context.fireUserInboundEventTriggered(event)
    if event is ChannelShouldQuiesceEvent { connection.drain() }
  }
}

extension PortProtocols {
  /// The initializer of HTTP/2 connections that serve gRPC, and hand every other stream to what `fallback` makes for its
  /// connection.
  static func grpcStreams(
    _ methods: GRPCMethods, limits: PortLimits, log: Logger,
    fallback: @escaping @Sendable (any Channel) throws -> @Sendable (any Channel) throws -> Void
  ) -> @Sendable (any Channel) throws -> @Sendable (any Channel) throws -> Void {
    { channel in
      let connection = GRPCConnection(
        methods: methods, limits: limits, channel: channel, log: log, fallback: try fallback(channel))
      try channel.pipeline.syncOperations.addHandler(GRPCDrainHandler(connection))
      let bound = NIOLoopBound(connection, eventLoop: channel.eventLoop)
      return { stream in
        try stream.pipeline.syncOperations.addHandler(GRPCStreamHandler(bound.value))
      }
    }
  }
}
