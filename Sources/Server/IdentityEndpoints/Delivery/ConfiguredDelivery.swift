// Sends codes in the ways that the operator configured. E-mails go to an SMTP relay, or to a command that reads a
// message from its standard input, such as `sendmail -t`. Text messages go to a webhook.

package import Identity
import JSON
package import Logging
package import NIOCore

/// Sends codes by the configured relay, command and webhook.
package struct ConfiguredDelivery: CodeDelivery {
  /// How e-mails are sent.
  package struct Mail: Sendable, Equatable {
    /// The program or server that accepts the messages.
    package enum Transport: Sendable, Equatable {
      /// A program and its arguments. It reads a message with headers (RFC 5322) and exits with 0.
      case command([String])
      /// An SMTP server.
      case relay(SMTPRelay)
    }

    package var transport: Transport
    /// The sender of all messages.
    package var sender: Mailbox

    /// Creates a configuration.
    package init(_ transport: Transport, from sender: Mailbox) {
      self.transport = transport
      self.sender = sender
    }
  }

  private static let webhookSeconds: Int64 = 10

  private let mail: Mail?
  /// The client of the relay; nil for a command.
  private let client: SMTPClient?
  private let limiter = DeliveryLimiter()
  private let textMessageURL: String?
  private let outbound: OutboundHTTP
  private let group: any EventLoopGroup
  private let log: Logger

  /// Creates a delivery. Without a mail configuration it rejects e-mails, and without a webhook it rejects text
  /// messages.
  /// - Parameter group: the event loops of connections to the relay.
  /// - Throws: ``DeliveryFailure`` if the relay's certificates cannot be read.
  package init(
    mail: Mail?, textMessageURL: String?, outbound: OutboundHTTP, group: any EventLoopGroup, log: Logger
  ) throws(DeliveryFailure) {
    self.mail = mail
    client =
      if case .relay(let relay)? = mail?.transport { try SMTPClient(relay, group: group) } else { nil }
    self.textMessageURL = textMessageURL
    self.outbound = outbound
    self.group = group
    self.log = log
  }

  package func checkSendsEmail() throws {
    if mail == nil { try UnconfiguredDelivery().checkSendsEmail() }
  }

  package func sendEmail(_ code: OutOfBandCode, language: String) async throws {
    guard let mail else { return try await UnconfiguredDelivery().sendEmail(code, language: language) }
    do {
      let message = try EmailMessage(code, from: mail.sender)
      try await limiter.run {
        switch mail.transport {
        case .command(let arguments): try await MailCommand.run(arguments, message.bytes, group)
        case .relay: try await client?.submit(message)
        }
      }
    } catch {
      log.error("an e-mail could not be sent", metadata: ["error": "\(error)"])
      throw IdentityError.unavailable("The e-mail could not be sent.")
    }
  }

  package func sendTextMessage(_ session: PhoneSession, language: String) async throws {
    guard let textMessageURL else {
      return try await UnconfiguredDelivery().sendTextMessage(session, language: language)
    }
    let body: JSONObject = [
      "phoneNumber": .string(session.phoneNumber), "code": .string(session.code),
      "language": .string(language),
    ]
    do {
      let response = try await outbound.post(
        JSONValue.object(body).json(), to: textMessageURL, seconds: Self.webhookSeconds)
      guard (200..<300).contains(response.status) else {
        throw DeliveryFailure("the webhook answered \(response.status)")
      }
    } catch {
      log.error("a text message could not be sent", metadata: ["error": "\(error)"])
      throw IdentityError.unavailable("The text message could not be sent.")
    }
  }
}
