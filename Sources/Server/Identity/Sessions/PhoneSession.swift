// A phone session verifies a phone number: it contains the code of a text message, and counts the attempts to enter it.

import JSON

/// A verification of a phone number in progress.
package struct PhoneSession: Sendable, Equatable {
  /// Maximum attempts to enter the code in production. An attacker then guesses a six-digit code with a probability of
  /// 1 in 200,000.
  package static let maximumAttempts = 5
  /// Seconds for which a code is valid in production.
  package static let lifetimeSeconds: Int64 = 600

  /// The operation that the code completes. A code for one operation must not complete another, because the
  /// attempts of each operation are counted separately.
  package enum Purpose: String, Sendable {
    case signIn, enrolment, secondFactor
  }

  /// The session's name, which the client sends with the code.
  package var session: String
  package var phoneNumber: String
  package var purpose: Purpose
  package var code: String
  /// Milliseconds since the Unix epoch.
  package var createdAt: Int64
  /// The number of wrong codes so far.
  package var attempts = 0
  /// The order among sessions of the same millisecond. The transaction that stores the session sets it.
  var sequence: Int64 = 0

  /// Creates a verification with a random session name and a random code.
  package init(phoneNumber: String, purpose: Purpose = .signIn, createdAt: Int64) {
    session = RandomText.code(226)
    self.phoneNumber = phoneNumber
    self.purpose = purpose
    code = RandomText.digits(6)
    self.createdAt = createdAt
  }

  /// Whether the code is too old to be used in production.
  package func isExpired(at milliseconds: Int64) -> Bool {
    milliseconds - createdAt > Self.lifetimeSeconds * 1000
  }

  var storedForm: JSONObject {
    [
      "session": .string(session), "phoneNumber": .string(phoneNumber), "code": .string(code),
      "purpose": .string(purpose.rawValue), "createdAt": .int(createdAt), "attempts": .int(Int64(attempts)),
      "sequence": .int(sequence),
    ]
  }

  init(storedForm object: JSONObject) throws(CorruptRow) {
    guard let session = object["session"]?.string, let number = object["phoneNumber"]?.string,
      let code = object["code"]?.string, let createdAt = object["createdAt"]?.int
    else { throw CorruptRow("a verification of a phone number is incomplete") }
    let purpose = object["purpose"]?.string.flatMap(Purpose.init(rawValue:)) ?? .signIn
    self.init(phoneNumber: number, purpose: purpose, createdAt: createdAt)
    self.session = session
    self.code = code
    attempts = Int(clamping: object["attempts"]?.int ?? 0)
    sequence = object["sequence"]?.int ?? 0
  }
}
