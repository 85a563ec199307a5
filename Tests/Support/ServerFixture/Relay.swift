// A TCP relay between clients and a server under test, which simulates a bad network. It counts bytes, delays
// the server's bytes, and breaks connections.

import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// Relays bytes between clients and one server.
package final class Relay: Sendable {
  /// The number of relayed bytes since the start or the last `takeTraffic`.
  package struct Traffic: Sendable, Equatable {
    package var toServer = 0
    package var toClients = 0
  }

  private struct State {
    var traffic = Traffic()
    var isHolding = false
    var isRefusing = false
    var connections: [ObjectIdentifier: Direction] = [:]
  }

  private let state = NIOLockedValueBox(State())
  private let target: NIOLockedValueBox<Int>
  private let listener: NIOLockedValueBox<(any Channel)?> = NIOLockedValueBox(nil)

  private init(target: Int) { self.target = NIOLockedValueBox(target) }

  /// Starts a relay to a port of this machine.
  package static func start(to port: Int) async throws -> Relay {
    let relay = Relay(target: port)
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.autoRead, value: false)
      .childChannelInitializer { relay.accept($0) }
      .bind(host: "127.0.0.1", port: 0).get()
    relay.listener.withLockedValue { $0 = channel }
    return relay
  }

  /// Relays later connections to another port.
  package func redirect(to port: Int) { target.withLockedValue { $0 = port } }

  /// The port that clients connect to.
  package var port: Int { listener.withLockedValue { $0?.localAddress?.port } ?? 0 }

  /// Resets the count of bytes.
  ///
  /// - Returns: the number of bytes relayed since the last reset.
  @discardableResult
  package func takeTraffic() -> Traffic {
    state.withLockedValue { state in
      defer { state.traffic = Traffic() }
      return state.traffic
    }
  }

  /// Holds back the server's bytes until `release`.
  package func hold() { state.withLockedValue { $0.isHolding = true } }

  /// Relays the bytes held back, and all later bytes.
  package func release() {
    let directions = state.withLockedValue { state in
      state.isHolding = false
      return Array(state.connections.values)
    }
    for direction in directions { direction.release() }
  }

  /// Closes every connection. With `refusing`, new connections are closed immediately until ``accept()`` is
  /// called.
  package func cut(refusing: Bool = false) {
    let directions = state.withLockedValue { state in
      state.isRefusing = refusing
      return Array(state.connections.values)
    }
    for direction in directions { direction.close() }
  }

  /// Accepts connections again.
  package func accept() { state.withLockedValue { $0.isRefusing = false } }

  /// Closes the relay and its connections.
  package func stop() async {
    cut(refusing: true)
    let channel = listener.withLockedValue { $0 }
    try? await channel?.close().get()
  }

  private func accept(_ client: any Channel) -> EventLoopFuture<Void> {
    if state.withLockedValue({ $0.isRefusing }) { return client.close() }
    return ClientBootstrap(group: client.eventLoop)
      .channelOption(.autoRead, value: false)
      .connect(host: "127.0.0.1", port: target.withLockedValue { $0 })
      .flatMapThrowing { server in
        let fromServer = Direction(to: client, relay: self, isFromServer: true)
        let fromClient = Direction(to: server, relay: self, isFromServer: false)
        try server.pipeline.syncOperations.addHandler(fromServer.handler)
        try client.pipeline.syncOperations.addHandler(fromClient.handler)
        let id = ObjectIdentifier(fromServer)
        self.state.withLockedValue { $0.connections[id] = fromServer }
        client.closeFuture.whenComplete { _ in
          server.close(promise: nil)
          _ = self.state.withLockedValue { $0.connections.removeValue(forKey: id) }
        }
        server.closeFuture.whenComplete { _ in client.close(promise: nil) }
        for channel in [server, client] { channel.setOption(.autoRead, value: true).whenFailure { _ in } }
      }
  }

  /// Returns whether bytes may be relayed now, and counts them if they may.
  fileprivate func admit(_ bytes: Int, isFromServer: Bool) -> Bool {
    state.withLockedValue { state in
      if isFromServer, state.isHolding { return false }
      if isFromServer { state.traffic.toClients += bytes } else { state.traffic.toServer += bytes }
      return true
    }
  }
}

/// One direction of a relayed connection.
private final class Direction: Sendable {
  private let destination: any Channel
  private let relay: Relay
  private let isFromServer: Bool
  private let held = NIOLockedValueBox<[ByteBuffer]>([])

  init(to destination: any Channel, relay: Relay, isFromServer: Bool) {
    self.destination = destination
    self.relay = relay
    self.isFromServer = isFromServer
  }

  var handler: some ChannelHandler & Sendable { Receiver(self) }

  func receive(_ bytes: ByteBuffer) {
    held.withLockedValue { $0.append(bytes) }
    release()
  }

  /// Relays the bytes held back, unless they must still wait.
  func release() {
    destination.eventLoop.execute { [self] in
      while true {
        let next = held.withLockedValue { $0.first }
        guard let next, relay.admit(next.readableBytes, isFromServer: isFromServer) else { return }
        held.withLockedValue { _ = $0.removeFirst() }
        destination.writeAndFlush(next, promise: nil)
      }
    }
  }

  func close() { destination.close(promise: nil) }

  private final class Receiver: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    private let direction: Direction

    init(_ direction: Direction) { self.direction = direction }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      direction.receive(unwrapInboundIn(data))
    }
  }
}
