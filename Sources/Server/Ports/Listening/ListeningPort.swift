// Listens on a socket and accepts connections: connection limits, TLS and the drain (graceful end) at shutdown.
//
// Invariants
//   1. A connection beyond the limits closes before anything is read from it.
//   2. An invalid request ends at most its own connection.
//   3. When `drain` returns, no connection of the port is open.
//
// A request passes these files in this order. Every connection:
//   1. ListeningPort accepts it (limits in PortLimits, TLS in PortTLS), and ConnectionRegistry registers it.
//   2. ProtocolSniffer detects its protocol and runs an initializer of PortProtocols.
//
// HTTP/1.1:
//   3. HTTP/HTTPPipeline installs the handlers: RequestHeadTimeoutHandler, NIO's codec, RequestDeadlines.
//   4. HTTP/HTTPRequestHandler receives the request. HTTP/HTTPRequestState decides when a request may be served and
//      when the next one may follow.
//   5. HTTP/HTTPService is the interface that products implement, for example with FirestoreHTTPService. The service
//      responds through an HTTP/HTTPExchange.
//   6. HTTP/HTTPRequestHandler+Responses writes the response, ResponseDelivery closes the connection if the client does
//      not read it, and ResponseHeaderFilter removes invalid headers.
//
// HTTP/2:
//   3. HTTP2Connection installs the connection's handlers: SilentPeerHandler, HTTP2Wire with HTTP2SettingsExchange and
//      HTTP2FrameFilter, NIOHTTP2Handler, HTTP2End.
//   4. HTTP2Streams admits each stream.
//   5. A stream of a Firestore port begins with GRPC/Transport/GRPCStreamHandler. Without gRPC it passes HeaderListLimit, and
//      continues with step 4 of HTTP/1.1.

package import Logging
package import NIOCore
import NIOPosix
import NIOSSL

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A listening socket and the connections that it accepted.
package final class ListeningPort: Sendable {
  /// The address on which the port listens.
  package let host: String
  /// The port number. The system chooses it if 0 was requested.
  package let port: Int

  private let channel: any Channel
  private let registry: ConnectionRegistry

  private init(channel: any Channel, host: String, registry: ConnectionRegistry) {
    self.channel = channel
    self.host = channel.localAddress?.ipAddress ?? host
    self.port = channel.localAddress?.port ?? 0
    self.registry = registry
  }

  /// The number of open connections.
  package var connectionCount: Int { registry.count }

  /// Binds a socket and starts to accept connections.
  /// - Parameters:
  ///   - host: an address or a name of this machine.
  ///   - port: 0 lets the system choose.
  ///   - protocols: the initializers of the connections.
  ///   - tls: nil for connections without TLS.
  /// - Throws: ``PortError`` if the address or the certificate cannot be used.
  package static func bind(
    host: String, port: Int, protocols: PortProtocols, tls: PortTLS? = nil, limits: PortLimits = PortLimits(),
    group: any EventLoopGroup, log: Logger
  ) async throws(PortError) -> ListeningPort {
    let context = try tls?.context(http2: protocols.http2 != nil)
    let registry = ConnectionRegistry(maximum: limits.maximumConnections, budget: limits.connections)
    let bootstrap = bootstrap(protocols, context, limits, registry, group, log)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
    do {
      let channel = try await bootstrap.bind(host: host, port: port).get()
      return ListeningPort(channel: channel, host: host, registry: registry)
    } catch {
      throw describe(error, host: host, port: port)
    }
  }

  /// Binds a socket in the file system, which only processes of this machine can reach, and starts to accept connections.
  /// - Throws: the system's error.
  package static func bind(
    socketPath: String, protocols: PortProtocols, limits: PortLimits, group: any EventLoopGroup, log: Logger
  ) async throws -> ListeningPort {
    let registry = ConnectionRegistry(maximum: limits.maximumConnections, budget: limits.connections)
    let channel = try await bootstrap(protocols, nil, limits, registry, group, log)
      .bind(unixDomainSocketPath: socketPath).get()
    return ListeningPort(channel: channel, host: socketPath, registry: registry)
  }

  private static func bootstrap(
    _ protocols: PortProtocols, _ context: NIOSSLContext?, _ limits: PortLimits,
    _ registry: ConnectionRegistry, _ group: any EventLoopGroup, _ log: Logger
  ) -> ServerBootstrap {
    ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 1024)
      // One bounded read per connection and tick keeps the event loop fair.
      .childChannelOption(.maxMessagesPerRead, value: 1)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelOption(
        .recvAllocator,
        value: AdaptiveRecvByteBufferAllocator(minimum: 64, initial: 2048, maximum: limits.maximumReadBytes)
      )
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          guard registry.admit(channel) else {
            if registry.isDraining { throw PortError(.system, "The port is shutting down.") }
            log.warning(
              "connection refused: the port or the process has its maximum number of connections",
              metadata: ["open": "\(registry.count)", "limit": "\(limits.maximumConnections)"])
            throw PortError(.system, "The port is full.")
          }
          try channel.pipeline.syncOperations.addHandler(HalfClosureHandler())
          if let context {
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLServerHandler(context: context), name: PortProtocols.tlsHandlerName)
          }
          try channel.pipeline.syncOperations.addHandler(
            ProtocolSniffer(protocols: protocols, limits: limits, log: log))
        }
      }
  }

  /// Stops accepting, and asks every connection to finish its requests. Closes the remaining connections after `grace`.
  package func drain(grace: TimeAmount) async {
    try? await channel.close().get()
    await registry.drain(grace: grace, on: channel.eventLoop)
  }

  private static func describe(_ error: any Error, host: String, port: Int) -> PortError {
    guard let error = error as? IOError else {
      return PortError(.addressUnavailable, "Cannot listen on \(host):\(port): \(error)")
    }
    switch error.errnoCode {
    case EADDRINUSE:
      return PortError(.addressInUse, "Port \(port) on \(host) is taken by another process.")
    case EACCES, EPERM:
      return PortError(.notPermitted, "This user may not listen on port \(port).")
    case EADDRNOTAVAIL:
      return PortError(.addressUnavailable, "\(host) is not an address of this machine.")
    default:
      return PortError(.system, "Cannot listen on \(host):\(port): \(error)")
    }
  }
}
