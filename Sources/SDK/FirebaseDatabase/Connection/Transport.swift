// The transport of a connection: one WebSocket on SwiftNIO. It transfers messages, and interprets only
// keep-alives.
//
// Invariant: `closed` is called exactly once, and nothing is delivered after it.

import FirebaseCore
import Locking
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import RealtimeModel
import RealtimeWire

/// An event of a transport, delivered on an event loop.
struct TransportEvents: Sendable {
  var received: @Sendable (ServerMessage) -> Void
  var closed: @Sendable (String?) -> Void
}

/// One WebSocket connection to a server.
final class Transport: Sendable {
  /// The state of the transport. Only an open transport sends messages.
  private enum State {
    case opening
    case open(any Channel)
    case closed
  }

  private let state = Guarded(State.opening)
  private let events: TransportEvents

  private init(events: TransportEvents) {
    self.events = events
  }

  /// The time within which the server must send its hello.
  static let handshakeTimeout = TimeAmount.seconds(30)

  /// Opens a WebSocket. A failure is reported through `closed`.
  ///
  /// - Parameters:
  ///   - appCheck: the App Check token for the request's header.
  ///   - resolver: finds the addresses of the server's name; nil for the system's resolver.
  ///   - timeout: the timeout of the connection, and then of the upgrade to a WebSocket.
  static func open(
    to endpoint: DatabaseEndpoint, host: String?, lastSession: String?, appCheck: String? = nil,
    tls: NIOSSLContext?,
    resolver: (any Resolver & Sendable)? = nil, timeout: TimeAmount = handshakeTimeout,
    events: TransportEvents
  ) -> Transport {
    let transport = Transport(events: events)
    let target = host.flatMap {
      DatabaseEndpoint.parse("\(endpoint.isSecure ? "https" : "http")://\($0)")?.endpoint
    }
    let server = target ?? endpoint
    var uri = "/.ws?v=5&ns=\(endpoint.namespace.percentEncodedForQuery)"
    if let lastSession { uri += "&ls=\(lastSession.percentEncodedForQuery)" }
    let request = UpgradeRequest(uri: uri, authority: server.authority, appCheck: appCheck)
    ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .resolver(resolver)
      .connectTimeout(timeout)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls {
            let isName = (try? SocketAddress(ipAddress: server.host, port: 0)) == nil
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLClientHandler(context: tls, serverHostname: isName ? server.host : nil))
          }
          try transport.addUpgrade(to: channel, request)
        }
      }
      .connect(host: server.host, port: server.effectivePort)
      .whenComplete { result in
        switch result {
        case .success(let channel): transport.opened(channel, timeout: timeout)
        case .failure(let error): transport.failed("\(error)")
        }
      }
    return transport
  }

  private func addUpgrade(to channel: any Channel, _ request: UpgradeRequest) throws {
    let transport = self
    let upgrader = NIOWebSocketClientUpgrader(maxFrameSize: 1 << 24) { channel, _ in
      channel.eventLoop.makeCompletedFuture {
        try channel.pipeline.syncOperations.addHandlers(
          NIOWebSocketFrameAggregator(
            minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 1 << 16, maxAccumulatedFrameSize: 1 << 24),
          MessageHandler(events: transport.events(of: channel)))
      }
    }
    let handler = UpgradeRequestHandler(request) { [weak channel] reason in
      if let channel { transport.failed(channel, reason) }
    }
    try channel.pipeline.syncOperations.addHTTPClientHandlers(
      leftOverBytesStrategy: .forwardBytes,
      withClientUpgrade: (
        upgraders: [upgrader],
        completionHandler: { context in
          let operations = context.pipeline.syncOperations
          guard let handler = try? operations.handler(type: UpgradeRequestHandler.self) else { return }
          operations.removeHandler(handler, promise: nil)
        }
      ))
    try channel.pipeline.syncOperations.addHandler(handler)
  }

  /// Forwards the events of a channel to the owner until the transport closes. The client opens one channel for
  /// each address of the host. Only the events of the channel that connected first are forwarded.
  private func events(of channel: any Channel) -> TransportEvents {
    TransportEvents(
      received: { [weak channel] message in
        if let channel, self.claim(channel) { self.events.received(message) }
      },
      closed: { [weak channel] reason in
        if let channel { self.failed(channel, reason) }
      })
  }

  /// Whether the transport uses a channel. The server's hello may arrive on the channel's event loop before
  /// another event loop reports that the channel is connected. In that case the hello opens the transport.
  private func claim(_ channel: any Channel) -> Bool {
    state.withLock { state in
      switch state {
      case .opening:
        state = .open(channel)
        return true
      case .open(let current): return current === channel
      case .closed: return false
      }
    }
  }

  private func isOpen(on channel: any Channel) -> Bool {
    state.withLock { state in
      if case .open(let current) = state { return current === channel }
      return false
    }
  }

  private func opened(_ channel: any Channel, timeout: TimeAmount) {
    guard claim(channel) else { return channel.close(promise: nil) }
    let timer = channel.eventLoop.scheduleTask(in: timeout) {
      let handler = try? channel.pipeline.syncOperations.handler(type: MessageHandler.self)
      if handler == nil { self.failed("The server did not open a WebSocket") }
    }
    channel.closeFuture.whenComplete { _ in
      timer.cancel()
      self.failed(nil)
    }
  }

  /// Closes the transport if it uses this channel; otherwise closes only the channel.
  private func failed(_ channel: any Channel, _ reason: String?) {
    if isOpen(on: channel) { failed(reason) } else { channel.close(promise: nil) }
  }

  private func failed(_ reason: String?) {
    guard let channel = finish() else { return }
    channel?.close(promise: nil)
    events.closed(reason)
  }

  /// Marks the transport closed.
  ///
  /// - Returns: the channel, if the transport has one; the outer optional is nil if the transport was closed
  ///   before.
  private func finish() -> (any Channel)?? {
    state.withLock { state -> (any Channel)?? in
      defer { state = .closed }
      switch state {
      case .opening: return .some(nil)
      case .open(let channel): return .some(channel)
      case .closed: return nil
      }
    }
  }

  /// Sends a message. If the transport is not open, the message is dropped: the owner sends nothing before
  /// the server's hello.
  func send(_ message: [UInt8]) {
    let channel: (any Channel)? = state.withLock { state in
      if case .open(let channel) = state { return channel }
      return nil
    }
    guard let channel else { return }
    channel.eventLoop.execute { channel.pipeline.syncOperations.fireOutboundMessage(message) }
  }

  /// Closes the transport. It reports nothing afterwards.
  func close() {
    if case .some(.some(let channel)) = finish() { channel.close(promise: nil) }
  }
}

extension ChannelPipeline.SynchronousOperations {
  /// Writes a complete message through the handler that splits it into frames.
  fileprivate func fireOutboundMessage(_ message: [UInt8]) {
    guard let handler = try? handler(type: MessageHandler.self) else { return }
    handler.send(message)
  }
}

extension String {
  /// Percent-encodes all characters other than letters, digits and `-._~`.
  var percentEncodedForQuery: String {
    var result = ""
    for byte in utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        result.append(Character(UnicodeScalar(byte)))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        result += "%" + (digits.count == 1 ? "0" : "") + digits
      }
    }
    return result
  }
}
