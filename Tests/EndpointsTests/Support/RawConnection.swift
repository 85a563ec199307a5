// A TCP connection, in clear or under TLS, that sends exactly the bytes a test wants, and collects what comes back.

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

  private static let first = "first"

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
          try channel.pipeline.syncOperations.addHandler(First(), name: first)
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

  /// Takes nothing more off the socket.
  func stopReading() async throws { try await channel.setOption(.autoRead, value: false).get() }

  /// Says that nothing more is sent; under TLS by its own end, too.
  func finishSending() async throws { try await channel.close(mode: .output).get() }

  /// Goes at once and refuses whatever still comes, as a client does whose process ends.
  func reset() async throws {
    let socket = try #require(channel as? any SocketOptionProvider)
    try await socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
    try await channel.close().get()
  }

  /// Ends the socket's direction alone, under whatever lies over it.
  func cutSending() async throws {
    let channel = channel
    try await channel.eventLoop.submit {
      let promise = channel.eventLoop.makePromise(of: Void.self)
      let first = try channel.pipeline.syncOperations.context(name: Self.first)
      first.close(mode: .output, promise: promise)
      return promise.futureResult
    }.get().get()
  }

  /// Everything up to the close of the connection.
  func textUntilClose() async throws -> String {
    var text = ""
    while case .bytes(let bytes) = try await mailbox.next() { text += String(buffer: bytes) }
    return text
  }

  /// What arrives until `text` is part of it.
  func text(until needle: String) async throws -> String {
    var text = ""
    while case .bytes(let bytes) = try await mailbox.next() {
      text += String(buffer: bytes)
      if text.contains(needle) { break }
    }
    return text
  }

  /// Whether something has come that was not looked at.
  var hasNews: Bool { !mailbox.isEmpty }

  /// What arrives next.
  func next() async throws -> Event { try await mailbox.next() }

  func close() async {
    try? await channel.close().get()
  }

  /// Marks the end of the pipeline at the socket.
  private final class First: ChannelInboundHandler {
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
