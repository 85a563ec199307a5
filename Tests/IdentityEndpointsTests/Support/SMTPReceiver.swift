// A small SMTP server on loopback that keeps the messages that it receives. A test configures its faults.

import JSON
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import NIOSSL
import ServerFixture

final class SMTPReceiver: Sendable {
  /// How the server behaves.
  struct Behavior: Sendable {
    enum TLS: Sendable {
      case implicit
      case startTLS
      case none
    }

    var tls = TLS.startTLS
    /// The extensions in replies to EHLO. STARTTLS depends on `tls`.
    var extensions = ["SIZE 10240000", "AUTH PLAIN LOGIN"]
    /// The accepted user and password.
    var user = "hearth"
    var password = "secret ü"
    /// Replies that replace the usual ones, by the command in upper case; `GREETING` and `CONTENT` are also names.
    var replies: [String: String] = [:]
    /// Commands that receive no reply.
    var silent: Set<String> = []
  }

  /// A received message.
  struct Message: Sendable, Equatable {
    var sender = ""
    var recipients: [String] = []
    /// The lines with dots removed, joined by CR and LF.
    var text = ""
    var isEncrypted = false
    var user = ""
  }

  struct State: Sendable {
    var messages: [Message] = []
    /// All commands in their order, of all connections.
    var commands: [String] = []
    var connections = 0
  }

  /// The messages in the order of their arrival, for one consumer.
  let messages: AsyncStream<Message>
  private let state: NIOLockedValueBox<State>
  private let channel: any Channel

  private init(
    _ channel: any Channel, _ state: NIOLockedValueBox<State>, _ messages: AsyncStream<Message>
  ) {
    self.channel = channel
    self.state = state
    self.messages = messages
  }

  static func start(
    _ behavior: Behavior, _ files: CertificateAuthority.Files? = nil
  ) async throws -> SMTPReceiver {
    let state = NIOLockedValueBox(State())
    let (messages, continuation) = AsyncStream.makeStream(of: Message.self)
    let context = try files.map { files in
      try NIOSSLContext(
        configuration: .makeServerConfiguration(
          certificateChain: NIOSSLCertificate.fromPEMFile(files.certificate).map { .certificate($0) },
          privateKey: .privateKey(NIOSSLPrivateKey(file: files.key, format: .pem))))
    }
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          if behavior.tls == .implicit, let context {
            try pipeline.addHandler(NIOSSLServerHandler(context: context))
          }
          try pipeline.addHandler(Handler(behavior, state, context, continuation))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    return SMTPReceiver(channel, state, messages)
  }

  var port: Int { channel.localAddress?.port ?? 0 }
  var received: State { state.withLockedValue { $0 } }

  func stop() async { try? await channel.close().get() }

  private static func base64(_ text: String) -> String { Base64.encode(Array(text.utf8)) }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let behavior: Behavior
    private let state: NIOLockedValueBox<State>
    private let tls: NIOSSLContext?
    private let messages: AsyncStream<Message>.Continuation
    private var line: [UInt8] = []
    private var content: [String]?
    private var message = Message()
    private var isEncrypted: Bool
    private var loginStep = 0

    init(
      _ behavior: Behavior, _ state: NIOLockedValueBox<State>, _ tls: NIOSSLContext?,
      _ messages: AsyncStream<Message>.Continuation
    ) {
      self.behavior = behavior
      self.state = state
      self.tls = tls
      self.messages = messages
      isEncrypted = behavior.tls == .implicit
    }

    func channelActive(context: ChannelHandlerContext) {
      state.withLockedValue { $0.connections += 1 }
      reply("GREETING", "220-relay.example\r\n220 ready", context)
      context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      for byte in unwrapInboundIn(data).readableBytesView {
        line.append(byte)
        guard line.suffix(2) == [13, 10] else { continue }
        let text = String(decoding: line.dropLast(2), as: UTF8.self)
        line = []
        receive(text, context)
      }
    }

    private func receive(_ text: String, _ context: ChannelHandlerContext) {
      if let lines = content {
        guard text == "." else {
          content = lines + [text.hasPrefix(".") ? String(text.dropFirst()) : text]
          return
        }
        content = nil
        message.text = lines.joined(separator: "\r\n")
        message.isEncrypted = isEncrypted
        let received = message
        state.withLockedValue { $0.messages.append(received) }
        messages.yield(received)
        return reply("CONTENT", "250 accepted", context)
      }
      state.withLockedValue { $0.commands.append(text) }
      if loginStep > 0 { return login(text, context) }
      let name = String(text.prefix { $0 != " " && $0 != ":" }).uppercased()
      switch name {
      case "EHLO":
        var lines = ["relay.example"] + behavior.extensions
        if behavior.tls == .startTLS, !isEncrypted { lines.append("STARTTLS") }
        let text = lines.enumerated().map { index, line in
          (index == lines.count - 1 ? "250 " : "250-") + line
        }
        reply(name, text.joined(separator: "\r\n"), context)
      case "STARTTLS":
        reply(name, "220 go", context)
        guard let tls, behavior.replies[name] == nil else { return }
        isEncrypted = true
        try? context.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls), position: .first)
      case "AUTH" where text.hasPrefix("AUTH PLAIN "):
        let expected = SMTPReceiver.base64("\0\(behavior.user)\0\(behavior.password)")
        authenticate(text.dropFirst("AUTH PLAIN ".count) == expected, context)
      case "AUTH":
        loginStep = 1
        reply(name, "334 VXNlcm5hbWU6", context)
      case "MAIL":
        message.sender = String(text)
        reply(name, "250 ok", context)
      case "RCPT":
        message.recipients.append(String(text))
        reply(name, "250 ok", context)
      case "DATA":
        content = []
        reply(name, "354 send", context)
      default: reply(name, name == "QUIT" ? "221 bye" : "502 unknown", context)
      }
    }

    private func login(_ text: String, _ context: ChannelHandlerContext) {
      let expected = SMTPReceiver.base64(loginStep == 1 ? behavior.user : behavior.password)
      if text == expected, loginStep == 1 {
        loginStep = 2
        return reply("LOGIN", "334 UGFzc3dvcmQ6", context)
      }
      loginStep = 0
      authenticate(text == expected, context)
    }

    private func authenticate(_ isCorrect: Bool, _ context: ChannelHandlerContext) {
      if isCorrect { message.user = behavior.user }
      reply("AUTHENTICATION", isCorrect ? "235 ok" : "535 wrong", context)
    }

    private func reply(_ name: String, _ text: String, _ context: ChannelHandlerContext) {
      guard !behavior.silent.contains(name) else { return }
      let text = (behavior.replies[name] ?? text) + "\r\n"
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }
}
