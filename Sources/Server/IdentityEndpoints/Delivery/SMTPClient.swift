// Submits e-mails to an SMTP relay. Each message has a separate connection.
//
// Invariant: a submission ends within its time limit. TLS verifies the relay's certificate and name, and never falls
// back to an unencrypted connection.

import NIOCore
import NIOPosix
import NIOSSL

/// A client of an SMTP relay.
final class SMTPClient: Sendable {
  private static let connectSeconds: Int64 = 10

  private let relay: SMTPRelay
  private let group: any EventLoopGroup
  private let seconds: Int64
  private let tls: NIOSSLContext?

  /// Creates a client.
  /// - Parameter seconds: the time within which the relay must have accepted a message.
  /// - Throws: ``DeliveryFailure`` if the certificates of the configuration cannot be read.
  init(_ relay: SMTPRelay, group: any EventLoopGroup, seconds: Int64 = 30) throws(DeliveryFailure) {
    self.relay = relay
    self.group = group
    self.seconds = seconds
    tls = relay.encryption == .none ? nil : try Self.tlsContext(relay.authorities)
  }

  /// Submits a message. Returns when the relay has accepted it.
  /// - Throws: ``DeliveryFailure``, or an error of the connection. If the failure happens while the message is sent,
  ///   the relay may still deliver it.
  func submit(_ message: EmailMessage) async throws {
    let relay = relay
    let context = tls
    let seconds = seconds
    let accepted = group.next().makePromise(of: Void.self)
    let connection = ClientBootstrap(group: accepted.futureResult.eventLoop)
      .connectTimeout(.seconds(min(seconds, Self.connectSeconds)))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          if let context, relay.encryption == .implicit {
            try pipeline.addHandler(Self.tlsHandler(context, relay.host))
          }
          try pipeline.addHandler(SubmissionHandler(relay, message, context, accepted, .seconds(seconds)))
        }
      }
      .connect(host: relay.host, port: relay.port)
    connection.whenFailure { accepted.fail(DeliveryFailure("the connection failed: \($0)")) }
    try await accepted.futureResult.get()
  }

  private static func tlsContext(_ authorities: String?) throws(DeliveryFailure) -> NIOSSLContext {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.minimumTLSVersion = .tlsv12
    if let authorities { configuration.trustRoots = .file(authorities) }
    do { return try NIOSSLContext(configuration: configuration) } catch {
      throw DeliveryFailure("the certificates \(authorities ?? "of the system") cannot be read: \(error)")
    }
  }

  private static func tlsHandler(_ context: NIOSSLContext, _ host: String) throws -> NIOSSLClientHandler {
    let isAddress = (try? SocketAddress(ipAddress: host, port: 0)) != nil
    return try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : host)
  }

  /// Runs the conversation of one message, and closes the connection.
  private final class SubmissionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let relay: SMTPRelay
    private let message: EmailMessage
    private let tls: NIOSSLContext?
    private let accepted: EventLoopPromise<Void>
    private let time: TimeAmount
    private var deadline: Scheduled<Void>?
    private var parser = SMTPReplyParser()
    private var conversation: SMTPConversation?
    private var hasEnded = false

    init(
      _ relay: SMTPRelay, _ message: EmailMessage, _ tls: NIOSSLContext?, _ accepted: EventLoopPromise<Void>,
      _ time: TimeAmount
    ) {
      self.relay = relay
      self.message = message
      self.tls = tls
      self.accepted = accepted
      self.time = time
    }

    func handlerAdded(context: ChannelHandlerContext) {
      let channel = context.channel
      deadline = context.eventLoop.scheduleTask(in: time) { [accepted] in
        accepted.fail(DeliveryFailure("the relay did not accept the message in time"))
        channel.close(promise: nil)
      }
    }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let buffer = unwrapInboundIn(data)
      var bytes = buffer.readableBytesView
      do {
        while !hasEnded, let byte = bytes.popFirst() {
          guard let reply = try parser.receive(byte) else { continue }
          var conversation =
            conversation ?? SMTPConversation(relay, message, clientName: Self.clientName(context.channel))
          let step = try conversation.receive(reply)
          self.conversation = conversation
          try perform(step, context, hasMoreBytes: !bytes.isEmpty)
        }
      } catch {
        end(context, error)
      }
    }

    private func perform(
      _ step: SMTPConversation.Step, _ context: ChannelHandlerContext, hasMoreBytes: Bool
    ) throws {
      switch step {
      case .send(let bytes): send(bytes, context)
      case .startTLS(let bytes):
        // Bytes before the handshake are not protected: an attacker may have added them.
        guard !hasMoreBytes, let tls else { throw DeliveryFailure("the relay sent bytes before TLS") }
        let handler = try SMTPClient.tlsHandler(tls, relay.host)
        try context.pipeline.syncOperations.addHandler(handler, position: .first)
        // The handler keeps the bytes until the handshake is complete.
        send(bytes, context)
      case .accepted(let bytes):
        accepted.succeed()
        send(bytes, context)
        end(context, nil)
      }
    }

    private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }

    /// The address literal of the client (RFC 5321, section 4.1.3).
    private static func clientName(_ channel: any Channel) -> String {
      guard let address = channel.localAddress, let text = address.ipAddress else { return "[127.0.0.1]" }
      return address.protocol == .inet6 ? "[IPv6:\(text)]" : "[\(text)]"
    }

    func channelInactive(context: ChannelHandlerContext) {
      end(context, DeliveryFailure("the relay closed the connection"))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { end(context, error) }

    private func end(_ context: ChannelHandlerContext, _ failure: (any Error)?) {
      guard !hasEnded else { return }
      hasEnded = true
      if let failure { accepted.fail(failure) }
      context.close(promise: nil)
    }
  }
}
