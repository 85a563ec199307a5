// Writes the e-mails that contain links, as plain text in English.

import Foundation
import Identity
import JSON

/// An e-mail with a link (RFC 5322).
struct EmailMessage: Sendable {
  /// Maximum bytes of a line without its end (RFC 5322, section 2.1.1).
  private static let maximumLineBytes = 998
  /// Characters of a line of Base64 (RFC 2045, section 6.8).
  private static let base64LineLength = 76

  /// The sender.
  let sender: Mailbox
  /// The recipient.
  let recipient: Mailbox
  /// The message with its headers. Every line ends with CR and LF.
  let bytes: [UInt8]

  /// Writes the message of a code.
  /// - Throws: ``DeliveryFailure`` if the recipient's address could add headers or recipients.
  init(_ code: OutOfBandCode, from sender: Mailbox) throws(DeliveryFailure) {
    // A change of the address is confirmed by the owner of the new address.
    guard let recipient = Mailbox(address: code.newEmail ?? code.email) else {
      throw DeliveryFailure("the recipient's address cannot be part of a message")
    }
    self.sender = sender
    self.recipient = recipient
    let (subject, text) = Self.text(code.purpose)
    let body = [text, "", code.link, "", "If you did not request this, you can ignore this e-mail.", ""]
    let isPlain = body.allSatisfy { line in
      line.utf8.count <= Self.maximumLineBytes && line.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    }
    let headers = [
      "Date: \(Self.date(code.createdAt))", "From: \(sender.headerForm)", "To: \(recipient.headerForm)",
      "Message-ID: <\(RandomText.identifier(24))@\(sender.domain)>", "Subject: \(subject)",
      // Mail servers send no automatic replies to such a message (RFC 3834).
      "Auto-Submitted: auto-generated", "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8",
      "Content-Transfer-Encoding: \(isPlain ? "7bit" : "base64")", "",
    ]
    let lines = headers + (isPlain ? body : Self.base64(body.joined(separator: "\r\n")))
    bytes = Array(lines.joined(separator: "\r\n").utf8)
  }

  /// The lines of a text in Base64.
  private static func base64(_ text: String) -> [String] {
    var lines: [String] = []
    var rest = Base64.encode(Array(text.utf8))[...]
    while !rest.isEmpty {
      lines.append(String(rest.prefix(base64LineLength)))
      rest = rest.dropFirst(base64LineLength)
    }
    return lines + [""]
  }

  /// A date in the form of RFC 5322, section 3.3.
  private static func date(_ milliseconds: Int64) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss '+0000'"
    return formatter.string(from: Date(timeIntervalSince1970: Double(milliseconds) / 1000))
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
