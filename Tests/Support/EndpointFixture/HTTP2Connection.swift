// The client side of an HTTP/2 connection. The test clients open their streams on it.

import NIOCore
import NIOHTTP2
import NIOPosix
import NIOSSL
import Ports

enum HTTP2Connection {
  /// - Parameter window: the flow-control window of each stream in bytes; a small one tests backpressure.
  static func open(
    _ port: Int, from local: SocketAddress? = nil, tls: NIOSSLContext?, window: Int
  ) async throws -> (channel: any Channel, multiplexer: NIOHTTP2Handler.StreamMultiplexer) {
    var stream = NIOHTTP2Handler.StreamConfiguration()
    stream.targetWindowSize = window
    var connection = NIOHTTP2Handler.ConnectionConfiguration()
    connection.initialSettings = [
      HTTP2Setting(parameter: .enablePush, value: 0),
      HTTP2Setting(parameter: .initialWindowSize, value: window),
    ]
    connection.targetWindowSize = 4 << 20
    connection.controlFrameRateLimit.maximumCount = 100_000
    let streams = stream
    let settings = connection
    var bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    if let local { bootstrap = bootstrap.bind(to: local) }
    return try await bootstrap.connect(host: "127.0.0.1", port: port) { channel in
      channel.eventLoop.makeCompletedFuture {
        if let tls {
          try channel.pipeline.syncOperations.addHandler(
            NIOSSLClientHandler(context: tls, serverHostname: "localhost"))
        }
        let multiplexer = try channel.pipeline.syncOperations.configureHTTP2Pipeline(
          mode: .client, connectionConfiguration: settings, streamConfiguration: streams
        ) { $0.eventLoop.makeSucceededVoidFuture() }
        return (channel, multiplexer)
      }
    }
  }
}
