// The text of the e-mails that carry links, as plain text in English.

import Identity

/// An e-mail with a link (RFC 5322).
struct EmailMessage {
  let bytes: [UInt8]

  /// Writes the message of a code.
  init(_ code: OutOfBandCode, from: String) {
    let (subject, text) = Self.text(code.purpose)
    // A change of the address is confirmed by the owner of the new one.
    let recipient = code.newEmail ?? code.email
    let lines = [
      "From: \(Self.header(from))", "To: \(Self.header(recipient))", "Subject: \(subject)",
      "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "", text, "", code.link, "",
      "If you did not request this, you can ignore this e-mail.", "",
    ]
    bytes = Array(lines.joined(separator: "\r\n").utf8)
  }

  /// Removes control characters, so that an address cannot add headers.
  private static func header(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }))
  }

  private static func text(_ purpose: OutOfBandCode.Purpose) -> (subject: String, text: String) {
    switch purpose {
    case .passwordReset: ("Reset your password", "Follow this link to choose a new password:")
    case .signIn: ("Sign in", "Follow this link to sign in:")
    case .verifyEmail: ("Verify your e-mail address", "Follow this link to verify your e-mail address:")
    case .changeEmail:
      ("Confirm your new e-mail address", "Follow this link to confirm your new e-mail address:")
    case .recoverEmail:
      (
        "Your e-mail address was changed",
        "The e-mail address of your account was changed. Follow this link to undo the change:"
      )
    }
  }
}
