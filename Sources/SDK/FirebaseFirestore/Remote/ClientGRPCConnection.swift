// The gRPC connection to the server: HTTP/2 with or without TLS. The first call opens it. If it is lost, the
// next call opens it again. All calls share it.
//
// Invariant: a call that cannot be sent ends with UNAVAILABLE.

import FirestoreModel
import GRPCFraming
import NIOCore
import NIOHTTP2
import NIOPosix
import NIOSSL

final class ClientGRPCConnection: Sendable {
  private let address: ServerAddress
  private let resolver: (any Resolver & Sendable)?
  private let eventLoop: any EventLoop
  private let state: NIOLoopBoundBox<State>

  private final class State {
    /// The connection or the attempt to connect; nil if the next call must connect.
    var connecting: EventLoopFuture<Connected>?
    var isShutDown = false
  }

  private struct Connected: Sendable {
    let channel: any Channel
    let streams: NIOHTTP2Handler.StreamMultiplexer
  }

  /// - Parameter resolver: finds the addresses of the server's name; nil for the system's resolver.
  init(_ address: ServerAddress, resolver: (any Resolver & Sendable)? = nil) {
    self.address = address
    self.resolver = resolver
    let eventLoop = MultiThreadedEventLoopGroup.singleton.any()
    self.eventLoop = eventLoop
    state = NIOLoopBoundBox.makeBoxSendingValue(State(), eventLoop: eventLoop)
  }

  /// Starts a call. It is sent when its credentials are available.
  func call(
    _ method: String, metadata: [(String, String)], credentials: CallCredentials,
    observer: @escaping ClientGRPCCall.Observer
  ) -> ClientGRPCCall {
    let call = ClientGRPCCall(eventLoop: eventLoop, observer: observer)
    credentials.headers { [self] result in
      eventLoop.execute { [self] in
        switch result {
        case .success(let tokens): start(call, method, metadata + tokens)
        case .failure(let error): call.ended(error)
        }
      }
    }
    return call
  }

  private func start(_ call: ClientGRPCCall, _ method: String, _ metadata: [(String, String)]) {
    let head = GRPCClientStream.requestHeaders(
      path: "/google.firestore.v1.Firestore/\(method)", authority: address.authority,
      scheme: address.isEncrypted ? "https" : "http", metadata: metadata)
    connected().flatMap { connected in
      let promise = connected.channel.eventLoop.makePromise(of: (any Channel).self)
      connected.streams.createStreamChannel(promise: promise) { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(GRPCCallHandler(call: call, head: head))
        }
      }
      return promise.futureResult
    }.whenFailure { error in
      call.ended(FirestoreError(.unavailable, "The server cannot be reached: \(error)"))
    }
  }

  /// Closes the connection. Calls in flight end with UNAVAILABLE, and later calls fail immediately.
  func shutDown() {
    eventLoop.execute { [self] in
      state.value.isShutDown = true
      state.value.connecting?.whenSuccess { $0.channel.close(promise: nil) }
      state.value.connecting = nil
    }
  }

  private func connected() -> EventLoopFuture<Connected> {
    if let existing = state.value.connecting { return existing }
    guard !state.value.isShutDown else {
      return eventLoop.makeFailedFuture(FirestoreError(.cancelled, "The client has been terminated."))
    }
    let attempt = tlsContext().flatMap { [self] in connect($0) }
    state.value.connecting = attempt
    attempt.whenComplete { [self] result in
      switch result {
      case .success(let connected):
        connected.channel.closeFuture.whenComplete { [self] _ in removeConnection(connected.channel) }
        if !connected.channel.isActive { removeConnection(connected.channel) }
      case .failure: state.value.connecting = nil
      }
    }
    return attempt
  }

  /// Removes a closed connection, so that the next call opens a new one.
  private func removeConnection(_ channel: any Channel) {
    let current = state.value.connecting
    current?.whenSuccess { [self] connected in
      if connected.channel === channel { state.value.connecting = nil }
    }
  }

  /// The TLS context of the connection; nil without TLS. It is created off the event loop, because that reads
  /// files.
  private func tlsContext() -> EventLoopFuture<NIOSSLContext?> {
    guard address.isEncrypted else { return eventLoop.makeSucceededFuture(nil) }
    return NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) { try ServerTrust.context() }
  }

  private func connect(_ tlsContext: NIOSSLContext?) -> EventLoopFuture<Connected> {
    let address = address
    let bootstrap = ClientBootstrap(group: eventLoop)
      .resolver(resolver)
      .connectTimeout(.seconds(10))
      .channelOption(.socketOption(.so_keepalive), value: 1)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          if let tlsContext {
            // SNI (RFC 6066) does not allow IP addresses.
            let isNumeric = (try? SocketAddress(ipAddress: address.host, port: 0)) != nil
            try pipeline.addHandler(
              NIOSSLClientHandler(context: tlsContext, serverHostname: isNumeric ? nil : address.host))
          }
          var connection = NIOHTTP2Handler.ConnectionConfiguration()
          connection.initialSettings = [
            HTTP2Setting(parameter: .enablePush, value: 0),
            HTTP2Setting(parameter: .maxConcurrentStreams, value: 0),
            HTTP2Setting(parameter: .maxHeaderListSize, value: 64 << 10),
            HTTP2Setting(parameter: .initialWindowSize, value: ClientGRPCCall.windowBytes),
          ]
          var stream = NIOHTTP2Handler.StreamConfiguration()
          stream.targetWindowSize = ClientGRPCCall.windowBytes
          _ = try pipeline.configureHTTP2Pipeline(
            mode: .client, connectionConfiguration: connection, streamConfiguration: stream
          ) { channel in
            // A server must not push.
            channel.eventLoop.makeFailedFuture(FirestoreError(.internalError, "unexpected server push"))
          }
          try pipeline.addHandler(
            ConnectionKeeper { [weak channel] in
              guard let channel else { return }
              self.removeConnection(channel)
            })
        }
      }
    // The client opens one channel for each address of the host. Only the channel that connected first sets
    // the streams.
    return bootstrap.connect(host: address.host, port: address.port).flatMapThrowing { channel in
      let handler = try channel.pipeline.syncOperations.handler(type: NIOHTTP2Handler.self)
      return Connected(channel: channel, streams: try handler.syncMultiplexer())
    }
  }
}

/// Monitors a connection. It sends a ping every thirty seconds, closes the connection if no response arrives
/// in time, and reports a GOAWAY of the server.
final class ConnectionKeeper: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame
  typealias OutboundOut = HTTP2Frame

  static let interval = TimeAmount.seconds(30)
  static let pingTimeout = TimeAmount.seconds(20)

  private let onGoAway: @Sendable () -> Void
  private var ping: Scheduled<Void>?
  private var deadline: Scheduled<Void>?

  init(onGoAway: @escaping @Sendable () -> Void) { self.onGoAway = onGoAway }

  func handlerAdded(context: ChannelHandlerContext) { if context.channel.isActive { schedule(context) } }

  func channelActive(context: ChannelHandlerContext) {
    schedule(context)
    context.fireChannelActive()
  }

  private func schedule(_ context: ChannelHandlerContext) {
    guard ping == nil else { return }
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    ping = context.eventLoop.scheduleTask(in: ConnectionKeeper.interval) {
      let (keeper, context) = bound.value
      keeper.ping = nil
      keeper.sendPing(context)
    }
  }

  private func sendPing(_ context: ChannelHandlerContext) {
    let frame = HTTP2Frame(streamID: .rootStream, payload: .ping(HTTP2PingData(withInteger: 1), ack: false))
    context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    let channel = context.channel
    deadline = context.eventLoop.scheduleTask(in: ConnectionKeeper.pingTimeout) {
      channel.close(promise: nil)
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data).payload {
    case .ping(_, let ack) where ack:
      deadline?.cancel()
      deadline = nil
      schedule(context)
    case .goAway: onGoAway()
    default: break
    }
    context.fireChannelRead(data)
  }

  func channelInactive(context: ChannelHandlerContext) {
    ping?.cancel()
    deadline?.cancel()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
