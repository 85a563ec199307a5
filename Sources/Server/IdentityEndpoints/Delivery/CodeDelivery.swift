// Sends codes to users: links by e-mail, and verification codes by text message.

package import Identity
package import Logging

/// Sends codes to users.
package protocol CodeDelivery: Sendable {
  /// Sends the link of a code to the code's address. The link for a change of the address is sent to the new
  /// address.
  func sendEmail(_ code: OutOfBandCode, language: String) async throws
  /// Sends a verification code in a text message.
  func sendTextMessage(_ session: PhoneSession, language: String) async throws
  /// Throws the error of ``sendEmail(_:language:)`` if this delivery cannot send e-mails at all.
  func checkSendsEmail() throws
}

extension CodeDelivery {
  package func checkSendsEmail() throws {}
}

/// Prints codes to the log, and sends nothing. An emulator also lists them.
package struct LogDelivery: CodeDelivery {
  private let log: Logger

  /// Creates a delivery to a log.
  package init(_ log: Logger) { self.log = log }

  package func sendEmail(_ code: OutOfBandCode, language: String) async throws {
    log.notice(
      "a link for an e-mail, which an emulator does not send",
      metadata: [
        "purpose": "\(code.purpose.rawValue)", "email": "\(code.newEmail ?? code.email)",
        "link": "\(code.link)",
      ])
  }

  package func sendTextMessage(_ session: PhoneSession, language: String) async throws {
    log.notice(
      "a verification code, which an emulator does not send",
      metadata: ["phoneNumber": "\(session.phoneNumber)", "code": "\(session.code)"])
  }
}
