// The delivery of a production server that has no way to send e-mails or text messages.

package import Identity

/// Rejects every code, because nothing can send it.
package struct UnconfiguredDelivery: CodeDelivery {
  static let emailMessage =
    "This server has no way to send e-mails. An administrator can request the link (returnOobLink)."

  /// Creates the delivery.
  package init() {}

  package var sendsEmails: Bool { false }

  package func sendEmail(_ code: OutOfBandCode, language: String) async throws {
    throw IdentityError.notImplemented(Self.emailMessage)
  }

  package func sendTextMessage(_ session: PhoneSession, language: String) async throws {
    throw IdentityError.notImplemented("This server has no way to send text messages.")
  }
}
