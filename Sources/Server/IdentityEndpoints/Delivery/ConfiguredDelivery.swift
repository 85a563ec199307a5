// Sends e-mails by a command that accepts a message on its standard input, as `sendmail -t` does, and text messages by a
// webhook of the operator.

import Foundation
package import Identity
import JSON
package import Logging

/// Sends codes in the ways that the operator configured.
package struct ConfiguredDelivery: CodeDelivery {
  /// The command that sends e-mails.
  package struct MailCommand: Sendable, Equatable {
    /// The program and its arguments. It reads a message with headers (RFC 5322).
    package var arguments: [String]
    /// The sender's address.
    package var from: String

    /// Creates a command.
    package init(arguments: [String], from: String) {
      self.arguments = arguments
      self.from = from
    }
  }

  private static let webhookSeconds: Int64 = 10

  private let mail: MailCommand?
  private let textMessageURL: String?
  private let outbound: OutboundHTTP
  private let log: Logger

  /// Creates a delivery. Without a command or a webhook, the respective codes are rejected.
  package init(mail: MailCommand?, textMessageURL: String?, outbound: OutboundHTTP, log: Logger) {
    self.mail = mail
    self.textMessageURL = textMessageURL
    self.outbound = outbound
    self.log = log
  }

  package func checkSendsEmail() throws {
    if mail == nil { try UnconfiguredDelivery().checkSendsEmail() }
  }

  package func sendEmail(_ code: OutOfBandCode, language: String) async throws {
    guard let mail else { return try await UnconfiguredDelivery().sendEmail(code, language: language) }
    do {
      try await Self.run(mail, EmailMessage(code, from: mail.from).bytes)
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
        throw OutboundHTTP.Failure(description: "the webhook answered \(response.status)")
      }
    } catch {
      log.error("a text message could not be sent", metadata: ["error": "\(error)"])
      throw IdentityError.unavailable("The text message could not be sent.")
    }
  }

  /// Runs the command off the cooperative pool, and fails unless it exits with 0.
  private static func run(_ mail: MailCommand, _ message: [UInt8]) async throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: mail.arguments.first ?? "")
    process.arguments = Array(mail.arguments.dropFirst())
    let input = Pipe()
    process.standardInput = input
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    let status = try await withCheckedThrowingContinuation {
      (continuation: CheckedContinuation<Int32, any Error>) in
      process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
      do { try process.run() } catch { return continuation.resume(throwing: error) }
      // A message of a few hundred bytes fits into the pipe's buffer, so the write does not block.
      try? input.fileHandleForWriting.write(contentsOf: Data(message))
      try? input.fileHandleForWriting.close()
    }
    guard status == 0 else {
      throw OutboundHTTP.Failure(description: "the command exited with \(status)")
    }
  }
}
