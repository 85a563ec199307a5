// The client's side of the submission of one e-mail by SMTP (RFC 5321), as a state machine: each reply of the relay leads to
// the next command.
//
// Invariant: credentials and message are sent only after TLS is established, unless the configuration requests no encryption.

import JSON

/// The conversation that submits one e-mail.
struct SMTPConversation {
  /// The client's next step.
  enum Step: Equatable {
    /// Send bytes.
    case send([UInt8])
    /// Start TLS, then send bytes over it.
    case startTLS([UInt8])
    /// The relay has accepted the message: report the success, send bytes and close.
    case accepted([UInt8])
  }

  private enum State {
    case greeting
    case hello
    case startTLS
    case loginUser
    case loginPassword
    case authentication
    case sender
    case recipient
    case data
    case content
    case end
  }

  private let relay: SMTPRelay
  private let message: EmailMessage
  private let clientName: String
  private var state = State.greeting
  private var isEncrypted: Bool
  private var extensions: [String] = []

  /// Starts a conversation, which waits for the relay's greeting.
  /// - Parameter clientName: the client's host name or address literal.
  init(_ relay: SMTPRelay, _ message: EmailMessage, clientName: String) {
    self.relay = relay
    self.message = message
    self.clientName = clientName
    isEncrypted = relay.encryption == .implicit
  }

  /// Continues with a reply.
  /// - Throws: ``DeliveryFailure`` if the relay rejects the message or lacks an extension that it needs.
  mutating func receive(_ reply: SMTPReply) throws(DeliveryFailure) -> Step {
    switch state {
    case .greeting:
      try expect(reply, 220, "the connection")
      return .send(helloCommand())
    case .hello:
      try expect(reply, 250, "EHLO")
      extensions = reply.lines.dropFirst().map { $0.uppercased() }
      if relay.encryption == .startTLS, !isEncrypted {
        guard extensions.contains("STARTTLS") else { throw DeliveryFailure("the relay offers no STARTTLS") }
        return .send(command("STARTTLS", then: .startTLS))
      }
      return .send(try authenticate())
    case .startTLS:
      try expect(reply, 220, "STARTTLS")
      isEncrypted = true
      // The extensions before TLS may be forged, so the relay lists them again.
      extensions = []
      return .startTLS(helloCommand())
    case .loginUser:
      try expect(reply, 334, "AUTH LOGIN")
      return .send(command(Self.base64(relay.credentials?.user ?? ""), then: .loginPassword))
    case .loginPassword:
      try expect(reply, 334, "AUTH LOGIN")
      return .send(command(Self.base64(relay.credentials?.password ?? ""), then: .authentication))
    case .authentication:
      try expect(reply, 235, "the credentials")
      return .send(try senderCommand())
    case .sender:
      try expect(reply, 250, "the sender")
      return .send(command("RCPT TO:<\(message.recipient.address)>", then: .recipient))
    case .recipient:
      // 251: the relay forwards the message to another address.
      guard reply.code == 251 else {
        try expect(reply, 250, "the recipient")
        return .send(command("DATA", then: .data))
      }
      return .send(command("DATA", then: .data))
    case .data:
      try expect(reply, 354, "DATA")
      state = .content
      return .send(Self.dotStuffed(message.bytes))
    case .content:
      try expect(reply, 250, "the message")
      return .accepted(command("QUIT", then: .end))
    case .end: throw DeliveryFailure("the relay sent a reply without a command")
    }
  }

  private mutating func helloCommand() -> [UInt8] { command("EHLO \(clientName)", then: .hello) }

  private mutating func authenticate() throws(DeliveryFailure) -> [UInt8] {
    guard let credentials = relay.credentials else { return try senderCommand() }
    precondition(isEncrypted, "invariant: credentials are sent over TLS only")
    let mechanisms =
      extensions.first { $0.hasPrefix("AUTH ") }?.split(separator: " ").dropFirst().map(String.init) ?? []
    if mechanisms.contains("PLAIN") {
      let response = Self.base64("\0\(credentials.user)\0\(credentials.password)")
      return command("AUTH PLAIN \(response)", then: .authentication)
    }
    guard mechanisms.contains("LOGIN") else {
      throw DeliveryFailure("the relay offers neither AUTH PLAIN nor AUTH LOGIN")
    }
    return command("AUTH LOGIN", then: .loginUser)
  }

  private mutating func senderCommand() throws(DeliveryFailure) -> [UInt8] {
    var text = "MAIL FROM:<\(message.sender.address)>"
    if !message.sender.isASCII || !message.recipient.isASCII {
      guard extensions.contains("SMTPUTF8") else {
        throw DeliveryFailure("the relay accepts no addresses with other than ASCII characters")
      }
      text += " BODY=8BITMIME SMTPUTF8"
    }
    return command(text, then: .sender)
  }

  private mutating func command(_ text: String, then next: State) -> [UInt8] {
    state = next
    return Array((text + "\r\n").utf8)
  }

  /// Checks a reply. The failure contains the reply, which never contains the credentials.
  private func expect(_ reply: SMTPReply, _ code: Int, _ subject: String) throws(DeliveryFailure) {
    guard reply.code == code else { throw DeliveryFailure("the relay rejected \(subject): \(reply.summary)") }
  }

  private static func base64(_ text: String) -> String { Base64.encode(Array(text.utf8)) }

  /// The content of DATA: each line ends with CR and LF, and a dot at the start of a line is doubled (RFC 5321, section
  /// 4.5.2). A single CR or LF becomes a complete line end, because relays disagree about it.
  static func dotStuffed(_ message: [UInt8]) -> [UInt8] {
    let (cr, lf, dot) = (UInt8(ascii: "\r"), UInt8(ascii: "\n"), UInt8(ascii: "."))
    var bytes: [UInt8] = []
    bytes.reserveCapacity(message.count + 16)
    var isLineStart = true
    var previous: UInt8?
    for byte in message {
      if byte == cr || byte == lf {
        if !(byte == lf && previous == cr) { bytes += [cr, lf] }
        isLineStart = true
      } else {
        if isLineStart, byte == dot { bytes.append(dot) }
        bytes.append(byte)
        isLineStart = false
      }
      previous = byte
    }
    if !isLineStart { bytes += [cr, lf] }
    return bytes + [dot, cr, lf]
  }
}
