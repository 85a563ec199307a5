// Detects the protocol of a connection from its first bytes, HTTP/2 or HTTP/1.1, and installs its handlers.
//
// HTTP/2 clients begin with a fixed preface. Once the protocol is known, the sniffer passes the received bytes to the
// new handlers and removes itself. It closes a connection that is still undecided after the handshake timeout, which
// includes TLS. Handlers that are added to an active channel miss `channelActive`, by which they start their timers.
// The sniffer therefore fires that event for them.

import Logging
import NIOCore
import NIOHTTP2

/// The protocol of a connection, as its first bytes show.
enum SniffedProtocol: Equatable {
  case http1
  case http2

  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  /// Returns nil if the bytes are an incomplete prefix of the HTTP/2 preface.
  init?(firstBytes: some Collection<UInt8>) {
    for (index, byte) in firstBytes.prefix(Self.preface.count).enumerated() where byte != Self.preface[index]
    {
      self = .http1
      return
    }
    guard firstBytes.count >= Self.preface.count else { return nil }
    self = .http2
  }
}

/// The first handler that receives the bytes of a connection, decrypted if the port has TLS.
final class ProtocolSniffer: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private let protocols: PortProtocols
  private let limits: PortLimits
  private let log: Logger
  private var received: ByteBuffer?
  private var timeout: Scheduled<Void>?
  private var isDecided = false

  init(protocols: PortProtocols, limits: PortLimits, log: Logger) {
    self.protocols = protocols
    self.limits = limits
    self.log = log
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let channel = context.channel
    timeout = context.eventLoop.scheduleTask(in: limits.handshakeTimeout) {
      channel.close(promise: nil)
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timeout?.cancel()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isDecided else { return context.fireChannelRead(data) }
    let bytes = unwrapInboundIn(data)
    if var held = received {
      held.writeImmutableBuffer(bytes)
      received = held
    } else {
      received = bytes
    }
    guard let received, let sniffed = SniffedProtocol(firstBytes: received.readableBytesView) else { return }
    isDecided = true
    timeout?.cancel()
    do {
      try install(sniffed, context: context)
    } catch {
      context.close(promise: nil)
      return
    }
    self.received = nil
    context.fireChannelRead(wrapInboundOut(received))
    context.pipeline.syncOperations.removeHandler(self, promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ChannelShouldQuiesceEvent {
      context.close(promise: nil)
    } else {
      context.fireUserInboundEventTriggered(event)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  private func install(_ sniffed: SniffedProtocol, context: ChannelHandlerContext) throws {
    if sniffed == .http2, let makeStreams = protocols.http2 {
      try HTTP2Connection.install(
        on: context.channel, limits: limits, log: log, streams: try makeStreams(context.channel))
    } else {
      try protocols.http1(context.channel)
      context.fireChannelActive()
    }
  }
}
