// The state that the gRPC streams of one HTTP/2 connection share: the methods, the tasks, the limit of incomplete
// requests, and the queue of unread responses.
//
// Invariant: the request bytes of all streams stay within the connection's limit and the server's memory.

import GRPCFraming
package import Logging
package import NIOCore
import NIOHTTP2
package import Ports

/// One HTTP/2 connection that carries gRPC. Confined to its event loop, except for its constants.
final class GRPCConnection {
  let methods: GRPCMethods
  let limits: HTTP2Limits
  let memory: MemoryReservation
  /// Counts the bytes of results that the connection's streams hold.
  let pages: PageMemory
  let tasks: LoopTasks
  let log: Logger
  /// Installs the handlers of a stream that does not carry gRPC.
  let fallback: @Sendable (any Channel) throws -> Void
  /// The request bytes that all streams hold.
  private var requestBytes = 0
  let responses: GRPCResponseQueue
  private(set) lazy var decompressions = DecompressionQueue()
  private var duplexStreams: [ObjectIdentifier: GRPCStreamHandler] = [:]
  private var isDraining = false
  private var streamCount = 0

  init(
    methods: GRPCMethods, limits: PortLimits, channel: any Channel, log: Logger,
    fallback: @escaping @Sendable (any Channel) throws -> Void
  ) {
    self.methods = methods
    self.limits = limits.http2
    let memory = MemoryReservation(limits, of: channel)
    self.memory = memory
    self.pages = PageMemory(memory.holder, limits, on: channel.eventLoop)
    self.tasks = LoopTasks(channel.eventLoop)
    self.responses = GRPCResponseQueue(limits.http2, memory, channel)
    self.log = log
    self.fallback = fallback
  }

  /// Counts `new` request bytes of a stream instead of `old`. If they exceed a limit, changes nothing and returns
  /// the error.
  func resizeRequest(from old: Int, to new: Int) -> GRPCStatus? {
    let total = requestBytes + new - old
    precondition(total >= 0, "invariant: a stream releases no more request bytes than it holds")
    if new > old, total > limits.maximumBufferedRequestBytes {
      return GRPCStatus(
        .resourceExhausted,
        "This connection's requests in progress exceed the limit of \(limits.maximumBufferedRequestBytes) bytes."
      )
    }
    guard memory.resize(from: old, to: new) else { return outOfMemory }
    requestBytes = total
    return nil
  }

  /// Reserves the memory of a stream. Beyond the first streams the connection leaves the last quarter of the budget to others.
  /// Returns false if the budget has no capacity.
  func openStream() -> Bool {
    let leavesRoom = streamCount * limits.streamBytes >= memory.budget.connectionStreamBytes
    guard memory.reserve(limits.streamBytes, leavingRoom: leavesRoom) else { return false }
    streamCount += 1
    return true
  }

  /// Called at the end of a stream whose memory was reserved; the caller releases the memory.
  func closeStream() {
    streamCount -= 1
    precondition(streamCount >= 0, "invariant: a stream ends once")
  }

  /// The error of a call for which the server has no memory.
  var outOfMemory: GRPCStatus { GRPCStatus(.resourceExhausted, memory.budget.refusal) }

  /// Registers a duplex stream. Duplex streams do not end by themselves. When the port drains (shuts down gracefully),
  /// the connection requests each of them to finish, also streams that begin during the drain.
  func add(_ handler: GRPCStreamHandler) {
    duplexStreams[ObjectIdentifier(handler)] = handler
    if isDraining { handler.drain() }
  }

  /// Removes a duplex stream that has ended.
  func remove(_ handler: GRPCStreamHandler) {
    duplexStreams[ObjectIdentifier(handler)] = nil
  }

  /// Called when the port begins to drain.
  func drain() {
    isDraining = true
    for handler in Array(duplexStreams.values) { handler.drain() }
  }
}

/// Reports the drain of the port and the end of the connection to a `GRPCConnection`.
private final class GRPCDrainHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let connection: GRPCConnection

  init(_ connection: GRPCConnection) {
    self.connection = connection
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    connection.responses.stop()
    connection.pages.close()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    context.fireUserInboundEventTriggered(event)
    if event is ChannelShouldQuiesceEvent { connection.drain() }
  }
}

extension PortProtocols {
  /// Returns a function that is called once per HTTP/2 connection and returns the initializer of the connection's
  /// streams.
  /// - Parameter fallback: called once per connection; returns the initializer of streams that do not carry gRPC.
  package static func grpcStreams(
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
