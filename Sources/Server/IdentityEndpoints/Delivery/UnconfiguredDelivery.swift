// The delivery of a production server on which neither e-mails nor text messages are configured.

package import Identity

/// Rejects every code, because nothing can send it.
package struct UnconfiguredDelivery: CodeDelivery {
  /// Creates the delivery.
  package init() {}

  package func sendEmail(_ code: OutOfBandCode, language: String) async throws { try checkSendsEmail() }

  package func checkSendsEmail() throws {
    throw IdentityError.notImplemented(
      "This server has no way to send e-mails. An administrator can request the link if actionUrl is set.")
  }

  package func sendTextMessage(_ session: PhoneSession, language: String) async throws {
    throw IdentityError.notImplemented("This server has no way to send text messages.")
  }
}
