// An out-of-band code is sent by e-mail. With it a user confirms an address, resets a password or signs in.

import JSON

/// An out-of-band code.
package struct OutOfBandCode: Sendable, Equatable {
  /// The action that the code confirms.
  package enum Purpose: String, Sendable {
    case passwordReset = "PASSWORD_RESET"
    case signIn = "EMAIL_SIGNIN"
    case verifyEmail = "VERIFY_EMAIL"
    case changeEmail = "VERIFY_AND_CHANGE_EMAIL"
    case recoverEmail = "RECOVER_EMAIL"

    /// The name in links.
    package var mode: String {
      switch self {
      case .passwordReset: "resetPassword"
      case .signIn: "signIn"
      case .verifyEmail: "verifyEmail"
      case .changeEmail: "verifyAndChangeEmail"
      case .recoverEmail: "recoverEmail"
      }
    }

    /// Seconds for which a code is valid in production, as in the hosted product.
    package var lifetimeSeconds: Int64 {
      switch self {
      case .passwordReset: 3600
      case .signIn: 6 * 3600
      case .verifyEmail, .changeEmail: 3 * 86_400
      case .recoverEmail: 30 * 86_400
      }
    }
  }

  package var code: String
  package var purpose: Purpose
  package var email: String
  package var newEmail: String?
  /// The account for which the code was made; nil for a code that only proves access to the mailbox.
  package var localID: String?
  package var link: String
  /// Milliseconds since the Unix epoch.
  package var createdAt: Int64
  /// The order among codes of the same millisecond. The transaction that stores the code sets it.
  var sequence: Int64 = 0

  /// Creates a code.
  package init(
    code: String, purpose: Purpose, email: String, newEmail: String?, localID: String? = nil, link: String,
    createdAt: Int64
  ) {
    self.code = code
    self.purpose = purpose
    self.email = email
    self.newEmail = newEmail
    self.localID = localID
    self.link = link
    self.createdAt = createdAt
  }

  /// Whether the code is too old to be used in production.
  package func isExpired(at milliseconds: Int64) -> Bool {
    milliseconds - createdAt > purpose.lifetimeSeconds * 1000
  }

  var storedForm: JSONObject {
    var object: JSONObject = [
      "code": .string(code), "purpose": .string(purpose.rawValue), "email": .string(email),
      "link": .string(link), "createdAt": .int(createdAt), "sequence": .int(sequence),
    ]
    object.set("newEmail", newEmail)
    object.set("localId", localID)
    return object
  }

  init(storedForm object: JSONObject) throws(CorruptRow) {
    guard let code = object["code"]?.string, let email = object["email"]?.string,
      let purpose = object["purpose"]?.string.flatMap(Purpose.init(rawValue:)),
      let link = object["link"]?.string, let createdAt = object["createdAt"]?.int
    else { throw CorruptRow("an out-of-band code is incomplete") }
    self.init(
      code: code, purpose: purpose, email: email, newEmail: object["newEmail"]?.string,
      localID: object["localId"]?.string, link: link, createdAt: createdAt)
    sequence = object["sequence"]?.int ?? 0
  }
}
