// Tests of e-mails through an SMTP relay, against a real server on loopback with and without TLS.

import Foundation
import Identity
import JSON
import Logging
import NIOConcurrencyHelpers
import NIOPosix
import ServerFixture
import Testing

@testable import IdentityEndpoints

@Suite("E-mails through an SMTP relay", .timeLimit(.minutes(2)))
struct MailTests {
  private static let group = MultiThreadedEventLoopGroup.singleton
  private static let account = SMTPRelay.Credentials(user: "hearth", password: "secret ü")

  private static func code(
    _ email: String = "ada@example.com", link: String = "https://app.example/a?oobCode=c"
  ) -> OutOfBandCode {
    OutOfBandCode(
      code: "c", purpose: .passwordReset, email: email, newEmail: nil, link: link,
      createdAt: 1_800_000_000_000)
  }

  private static func message(_ code: OutOfBandCode = code()) throws -> EmailMessage {
    try EmailMessage(code, from: try #require(Mailbox("Hearth <no-reply@example.com>")))
  }

  /// Submits a message to a receiver.
  private static func submit(
    _ behavior: SMTPReceiver.Behavior, host: String = "localhost",
    encryption: SMTPRelay.Encryption = .startTLS,
    credentials: SMTPRelay.Credentials? = account, message: EmailMessage? = nil, seconds: Int64 = 20,
    isTrusted: Bool = true
  ) async throws -> SMTPReceiver.State {
    let authority = try CertificateAuthority()
    defer { authority.remove() }
    let receiver = try await SMTPReceiver.start(behavior, authority.issue())
    let relay = try #require(
      SMTPRelay(
        host: host, port: receiver.port, encryption: encryption, credentials: credentials,
        authorities: isTrusted ? authority.certificateFile : nil))
    let client = try SMTPClient(relay, group: group, seconds: seconds)
    let result: Result<Void, any Error>
    do { result = .success(try await client.submit(message ?? Self.message())) } catch {
      result = .failure(error)
    }
    let received = receiver.received
    await receiver.stop()
    if case .failure(let error) = result { throw Rejection(received: received, error: error) }
    return received
  }

  /// A submission that failed, and the commands that the relay had received before.
  private struct Rejection: Error {
    var received: SMTPReceiver.State
    var error: any Error
  }

  @Test(
    "A message arrives over TLS with the account of the relay",
    arguments: [SMTPRelay.Encryption.implicit, .startTLS],
    ["AUTH PLAIN LOGIN", "AUTH LOGIN", "AUTH LOGIN PLAIN"])
  func submission(encryption: SMTPRelay.Encryption, mechanisms: String) async throws {
    var behavior = SMTPReceiver.Behavior()
    behavior.tls = encryption == .implicit ? .implicit : .startTLS
    behavior.extensions = ["8BITMIME", mechanisms]
    for host in ["localhost", "127.0.0.1"] {
      let received = try await Self.submit(behavior, host: host, encryption: encryption)
      let message = try #require(received.messages.first)
      #expect(message.isEncrypted && message.user == "hearth" && received.messages.count == 1)
      #expect(message.sender == "MAIL FROM:<no-reply@example.com>")
      #expect(message.recipients == ["RCPT TO:<ada@example.com>"])
      #expect(message.text.hasPrefix("Date: Fri, 15 Jan 2027 08:00:00 +0000\r\nFrom: \"Hearth\" <no-reply@"))
      #expect(message.text.contains("\r\nTo: ada@example.com\r\nMessage-ID: <"))
      #expect(message.text.contains("\r\n\r\nFollow this link to choose a new password:\r\n\r\nhttps://app"))
    }
  }

  @Test("A relay without encryption receives messages, but never credentials")
  func unencrypted() async throws {
    var behavior = SMTPReceiver.Behavior()
    behavior.tls = .none
    let received = try await Self.submit(behavior, encryption: .none, credentials: nil)
    #expect(received.messages.count == 1 && !received.commands.contains { $0.hasPrefix("AUTH") })
    #expect(SMTPRelay(host: "h", port: 25, encryption: .none, credentials: Self.account) == nil)
  }

  @Test("Without a verified TLS connection no credentials and no message are sent")
  func unverifiedTLS() async throws {
    var noTLS = SMTPReceiver.Behavior()
    noTLS.tls = .none
    var refused = SMTPReceiver.Behavior()
    refused.replies["STARTTLS"] = "454 not now"
    // A client that keeps replies from before the TLS handshake would accept an attacker's reply as the relay's.
    var injected = SMTPReceiver.Behavior()
    injected.replies["STARTTLS"] = "220 go\r\n250-relay.example\r\n250 AUTH PLAIN"
    var notTLS = SMTPReceiver.Behavior()
    notTLS.replies["STARTTLS"] = "220 go"
    let attacks: [(SMTPReceiver.Behavior, SMTPRelay.Encryption, Bool)] = [
      (noTLS, .startTLS, true), (noTLS, .implicit, true), (refused, .startTLS, true),
      (injected, .startTLS, true), (SMTPReceiver.Behavior(), .startTLS, false),
    ]
    for (index, (behavior, encryption, isTrusted)) in attacks.enumerated() {
      let rejection = await #expect(throws: Rejection.self, "attack \(index)") {
        try await Self.submit(behavior, encryption: encryption, seconds: 5, isTrusted: isTrusted)
      }
      let commands = rejection?.received.commands ?? []
      #expect(!commands.contains { $0.hasPrefix("AUTH") || $0.hasPrefix("MAIL") }, "attack \(index)")
    }
  }

  @Test("A certificate of another name is rejected")
  func certificateOfOtherName() async throws {
    let authority = try CertificateAuthority()
    defer { authority.remove() }
    let receiver = try await SMTPReceiver.start(
      .init(), authority.issue(names: ["other.example"], addresses: ["127.0.0.2"]))
    for host in ["localhost", "127.0.0.1"] {
      let relay = try #require(
        SMTPRelay(
          host: host, port: receiver.port, encryption: .startTLS, credentials: Self.account,
          authorities: authority.certificateFile))
      await #expect(throws: (any Error).self) {
        try await SMTPClient(relay, group: Self.group).submit(Self.message())
      }
    }
    #expect(!receiver.received.commands.contains { $0.hasPrefix("AUTH") })
    await receiver.stop()
  }

  @Test("Each rejection by the relay fails the submission, and its reason never contains the password")
  func rejections() async throws {
    var replies: [String: String] = [
      "GREETING": "554 no service", "EHLO": "500 unknown", "AUTHENTICATION": "535 wrong",
      "MAIL": "550 sender", "RCPT": "550 recipient", "DATA": "451 later", "CONTENT": "552 too large",
    ]
    replies["RCPT"] = "450 mailbox busy"
    for (name, reply) in replies {
      var behavior = SMTPReceiver.Behavior()
      behavior.replies[name] = reply
      let rejection = await #expect(throws: Rejection.self, "\(name)") { try await Self.submit(behavior) }
      let failure = try #require(rejection?.error as? DeliveryFailure, "\(name)")
      #expect(failure.description.hasSuffix(reply), "\(failure)")
      #expect(!failure.description.contains("secret"))
    }
    var behavior = SMTPReceiver.Behavior()
    behavior.extensions = ["AUTH GSSAPI"]
    await #expect(throws: Rejection.self) { try await Self.submit(behavior) }
  }

  @Test("Replies that are too long, inconsistent or missing end the submission in time")
  func hostileReplies() async throws {
    let line = String(repeating: "x", count: 4000)
    let many = Array(repeating: "250-x", count: 2000).joined(separator: "\r\n")
    for (name, reply) in [
      ("GREETING", "220 " + line), ("GREETING", "SSH-2.0-server"), ("GREETING", "99 x"), ("EHLO", many),
      ("EHLO", "250-a\r\n251 b"), ("GREETING", "220x"),
    ] {
      var behavior = SMTPReceiver.Behavior()
      behavior.replies[name] = reply
      let rejection = await #expect(throws: Rejection.self, "\(name)") { try await Self.submit(behavior) }
      #expect(rejection?.error is DeliveryFailure)
      #expect(rejection?.received.messages.isEmpty == true)
    }
    for name in ["GREETING", "MAIL", "CONTENT"] {
      var behavior = SMTPReceiver.Behavior()
      behavior.silent = [name]
      let rejection = await #expect(throws: Rejection.self, "\(name)") {
        try await Self.submit(behavior, seconds: 1)
      }
      #expect((rejection?.error as? DeliveryFailure)?.description.contains("in time") == true, "\(name)")
    }
  }

  @Test("Dots at the start of a line are doubled, and single CR and LF become complete line ends")
  func stuffing() {
    func stuffed(_ text: String) -> String {
      String(decoding: SMTPConversation.dotStuffed(Array(text.utf8)), as: UTF8.self)
    }
    #expect(stuffed("a\r\n.\r\nb") == "a\r\n..\r\nb\r\n.\r\n")
    #expect(stuffed(".a\n.\nb\r.c\r\n") == "..a\r\n..\r\nb\r\n..c\r\n.\r\n")
    #expect(stuffed("") == ".\r\n")
    #expect(stuffed("a\r\n\r\n..") == "a\r\n\r\n...\r\n.\r\n")
  }

  @Test("Addresses that could add headers, recipients or commands are rejected")
  func addresses() throws {
    for address in [
      "a@b.example\r\nBcc: c@d.example", "a@b.example\nDATA", "a@b.example,c@d.example",
      "a@b.example> SIZE=1",
      "<a@b.example>", "a b@c.example", "\"a b\"@c.example", "a@b.example\0", "a@b.example\u{2028}x",
      "a@b.example\u{85}x", "a;b@c.example", "a@[127.0.0.1]", "a@b@c.example", "@b.example", "a@", "",
      "Name <a@b.example>",
    ] {
      #expect(throws: DeliveryFailure.self, "\(address.debugDescription)") {
        try Self.message(Self.code(address))
      }
    }
    for sender in ["a\r\nX: y <a@b.example>", "\"a\"b\" <a@b.example>", "x", "a@b.example, c@d.example"] {
      #expect(Mailbox(sender) == nil, "\(sender.debugDescription)")
    }
    #expect(
      Mailbox("Büro Österreich <a@b.example>")?.headerForm
        == "=?utf-8?B?QsO8cm8gw5ZzdGVycmVpY2g=?= <a@b.example>")
    #expect(Mailbox("a@b.example")?.headerForm == "a@b.example")
  }

  @Test("Addresses with other than ASCII characters need SMTPUTF8, and long lines are encoded")
  func addressesBeyondASCII() async throws {
    let message = try Self.message(Self.code("jörg@exämple.example"))
    await #expect(throws: Rejection.self) { try await Self.submit(.init(), message: message) }
    var behavior = SMTPReceiver.Behavior()
    behavior.extensions = ["AUTH PLAIN", "8BITMIME", "SMTPUTF8"]
    let received = try await Self.submit(behavior, message: message)
    #expect(received.messages.first?.sender == "MAIL FROM:<no-reply@example.com> BODY=8BITMIME SMTPUTF8")
    let link = "https://app.example/" + String(repeating: "x", count: 2000)
    let long = try await Self.submit(behavior, message: Self.message(Self.code(link: link)))
    let parts = try #require(long.messages.first?.text).components(separatedBy: "\r\n\r\n")
    #expect(parts.first?.hasSuffix("Content-Transfer-Encoding: base64") == true)
    let lines = try #require(parts.last).components(separatedBy: "\r\n")
    #expect(lines.allSatisfy { $0.utf8.count <= 76 })
    let body = try #require(Data(base64Encoded: lines.joined()))
    #expect(String(decoding: body, as: UTF8.self).contains("\r\n" + link + "\r\n"))
  }

  @Test("Eight e-mails are sent at the same time, 128 wait, and further ones fail immediately")
  func limit() async throws {
    struct State {
      var running = 0
      var maximumRunning = 0
      var isOpen = false
      var waiting: [CheckedContinuation<Void, Never>] = []
    }
    let state = NIOLockedValueBox(State())
    let limiter = DeliveryLimiter()
    await withTaskGroup(of: Bool.self) { tasks in
      for _ in 0..<140 {
        tasks.addTask {
          do {
            try await limiter.run {
              await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let isOpen = state.withLockedValue { state in
                  state.running += 1
                  state.maximumRunning = max(state.maximumRunning, state.running)
                  if !state.isOpen { state.waiting.append(continuation) }
                  return state.isOpen
                }
                if isOpen { continuation.resume() }
              }
              state.withLockedValue { $0.running -= 1 }
            }
            return true
          } catch {
            return false
          }
        }
      }
      // Admitted deliveries wait for `isOpen`, so the first four that end are those that were not admitted.
      for _ in 0..<4 { #expect(await tasks.next() == false) }
      let waiting = state.withLockedValue { state in
        state.isOpen = true
        return state.waiting
      }
      for continuation in waiting { continuation.resume() }
      var sent = 0
      while let isSent = await tasks.next() { sent += isSent ? 1 : 0 }
      #expect(sent == 136)
    }
    #expect(state.withLockedValue { $0.maximumRunning } == 8)
  }

  @Test("Many e-mails that are sent concurrently arrive, each exactly once")
  func concurrentMessages() async throws {
    let receiver = try await SMTPReceiver.start(
      {
        var behavior = SMTPReceiver.Behavior()
        behavior.tls = .none
        return behavior
      }())
    let relay = try #require(SMTPRelay(host: "127.0.0.1", port: receiver.port, encryption: .none))
    let delivery = try ConfiguredDelivery(
      mail: .init(.relay(relay), from: try #require(Mailbox("a@b.example"))), textMessageURL: nil,
      outbound: OutboundHTTP(group: Self.group), group: Self.group,
      log: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    try await withThrowingTaskGroup { tasks in
      for number in 0..<60 {
        tasks.addTask { try await delivery.sendEmail(Self.code("u\(number)@example.com"), language: "en") }
      }
      try await tasks.waitForAll()
    }
    let received = receiver.received
    #expect(Set(received.messages.flatMap(\.recipients)).count == 60)
    #expect(received.connections == 60)
    await receiver.stop()
  }
}
