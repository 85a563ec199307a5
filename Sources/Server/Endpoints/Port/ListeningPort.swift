// One listening socket and all connections it accepted: TLS, sniffing, the connection budget, and the drain.
//
// Invariants: a connection beyond the budget is closed before anything is read from it; whatever a peer sends,
// only its own connection ends; after `drain` returns no connection of this port is open.

public import Logging
public import NIOCore
import NIOPosix
import NIOSSL

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A port that listens.
public final class ListeningPort: Sendable {
  /// The address the port listens on, as text.
  public let host: String
  /// The port number, chosen by the system if 0 was asked for.
  public let port: Int

  private let channel: any Channel
  private let registry: ConnectionRegistry

  private init(channel: any Channel, host: String, registry: ConnectionRegistry) {
    self.channel = channel
    self.host = channel.localAddress?.ipAddress ?? host
    self.port = channel.localAddress?.port ?? 0
    self.registry = registry
  }

  /// The number of connections open now.
  public var connectionCount: Int { registry.count }

  /// Binds and starts to accept.
  /// - Parameters:
  ///   - host: an address or a name of this machine.
  ///   - port: 0 lets the system choose.
  ///   - tls: nil for clear text.
  public static func bind(
    host: String, port: Int, protocols: PortProtocols, tls: PortTLS? = nil, limits: PortLimits = PortLimits(),
    group: any EventLoopGroup, log: Logger
  ) async throws(PortError) -> ListeningPort {
    let context = try tls?.context(http2: protocols.http2 != nil)
    let registry = ConnectionRegistry(maximum: limits.maximumConnections, budget: limits.connections)
    let bootstrap = ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 1024)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(.maxMessagesPerRead, value: 1)
      // Whether the end of what a peer sends ends the connection is for `InboundTurns` to know.
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          guard registry.admit(channel) else {
            if registry.isDraining { throw PortError(.system, "The port is shutting down.") }
            log.warning(
              "connection refused: the port, or what the process may have open, is full",
              metadata: ["open": "\(registry.count)", "limit": "\(limits.maximumConnections)"])
            throw PortError(.system, "The port is full.")
          }
          try channel.pipeline.syncOperations.addHandler(InboundTurns(limits))
          if let context {
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLServerHandler(context: context), name: PortProtocols.encryption)
          }
          try channel.pipeline.syncOperations.addHandler(
            ProtocolSniffer(protocols: protocols, limits: limits, log: log))
        }
      }
    do {
      let channel = try await bootstrap.bind(host: host, port: port).get()
      return ListeningPort(channel: channel, host: host, registry: registry)
    } catch {
      throw describe(error, host: host, port: port)
    }
  }

  /// Stops accepting, asks every connection to finish what is in flight, and closes what is left after `grace`.
  public func drain(grace: TimeAmount) async {
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
