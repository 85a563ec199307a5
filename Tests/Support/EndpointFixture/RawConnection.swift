// A raw connection is a TCP or TLS connection. It sends the test's bytes unchanged and collects the received
// bytes.

import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import Testing

final class RawConnection: Sendable {
  enum Event: Sendable, Equatable {
    case bytes(ByteBuffer)
    case closed
  }

  private static let socketMarkerName = "socketMarker"

  private let channel: any Channel
  private let mailbox: Mailbox<Event>

  private init(_ channel: any Channel, _ mailbox: Mailbox<Event>) {
    self.channel = channel
    self.mailbox = mailbox
  }

  static func connect(port: Int, tls: NIOSSLContext? = nil) async throws -> RawConnection {
    let group = MultiThreadedEventLoopGroup.singleton
    let mailbox = Mailbox<Event>(group.next())
    let channel = try await ClientBootstrap(group: group)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(SocketMarker(), name: socketMarkerName)
          if let tls {
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLClientHandler(context: tls, serverHostname: "localhost"))
          }
          try channel.pipeline.syncOperations.addHandler(Collector(mailbox))
        }
      }
      .connect(host: "127.0.0.1", port: port).get()
    return RawConnection(channel, mailbox)
  }

  func send(_ text: String) async throws {
    try await channel.writeAndFlush(ByteBuffer(string: text))
  }

  func send(_ bytes: [UInt8]) async throws {
    try await channel.writeAndFlush(ByteBuffer(bytes: bytes))
  }

  /// Stops reading from the socket.
  func stopReading() async throws { try await channel.setOption(.autoRead, value: false).get() }

  /// Half-closes the connection. Over TLS it sends a closing alert first.
  func finishSending() async throws { try await channel.close(mode: .output).get() }

  /// Resets the connection (TCP RST), as the system does when a client's process ends.
  func reset() async throws {
    let socket = try #require(channel as? any SocketOptionProvider)
    try await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
    try await channel.close().get()
  }

  /// Half-closes the socket without sending a TLS closing alert.
  func halfCloseSocket() async throws {
    let channel = channel
    try await channel.eventLoop.submit {
      let promise = channel.eventLoop.makePromise(of: Void.self)
      let socketContext = try channel.pipeline.syncOperations.context(name: Self.socketMarkerName)
      socketContext.close(mode: .output, promise: promise)
      return promise.futureResult
    }.get().get()
  }

  /// Returns everything that arrives until the connection is closed.
  func textUntilClose() async throws -> String {
    var text = ""
    while case .bytes(let bytes) = try await mailbox.next() { text += String(buffer: bytes) }
    return text
  }

  /// Reads until `needle` arrives, and returns the received text.
  func text(until needle: String) async throws -> String {
    var text = ""
    while case .bytes(let bytes) = try await mailbox.next() {
      text += String(buffer: bytes)
      if text.contains(needle) { break }
    }
    return text
  }

  /// Whether an event has arrived that the test has not read.
  var hasUnreadEvents: Bool { !mailbox.isEmpty }

  /// Returns the next event.
  func next() async throws -> Event { try await mailbox.next() }

  func close() async {
    try? await channel.close().get()
  }

  /// Marks the position in the channel's pipeline that is next to the socket, before the TLS handler.
  private final class SocketMarker: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
  }

  private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let mailbox: Mailbox<Event>

    init(_ mailbox: Mailbox<Event>) { self.mailbox = mailbox }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      mailbox.put(.bytes(unwrapInboundIn(data)))
    }

    func channelInactive(context: ChannelHandlerContext) { mailbox.put(.closed) }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }
}
