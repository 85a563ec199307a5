// Fuzz target: the texts that FirebaseAuth parses: ID tokens from a server, links from e-mails, and the stored user
// from a file. An accepted stored user is written again, and reads back as the same user.

import FirebaseCore
import Foundation

@testable import FirebaseAuth

/// The first byte selects the reader; the rest is the text.
func fuzzAuthentication(_ input: UnsafeRawBufferPointer) throws {
  guard let first = input.first else { return }
  let bytes = Data(input.dropFirst())
  let text = String(decoding: bytes, as: UTF8.self)
  switch first % 4 {
  case 0:
    do { _ = try AuthTokenResult(parsing: text).claims } catch {
      try require(AuthErrorCode(of: error) == .malformedJWT, "a malformed token is \(error)")
    }
  case 1:
    guard let code = ActionCodeURL.signInCode(of: text) else { return }
    try require(!code.isEmpty, "a sign-in link without a code")
  case 2:
    guard let record = try? JSONDecoder().decode(UserRecord.self, from: bytes) else { return }
    let written = try JSONEncoder().encode(record)
    let again = try require(
      try? JSONDecoder().decode(UserRecord.self, from: written), "a written user is not read")
    try require(again == record, "a written user is another user")
  default:
    let account = try? JSONDecoder().decode(AccountInfo.self, from: bytes)
    guard let account, let tokens = UserTokens(idToken: "t", refreshToken: "r", expiresIn: text, now: Date())
    else { return }
    var record = UserRecord(uid: "u", tokens: tokens)
    record.update(with: account)
    _ = try JSONEncoder().encode(record)
  }
}
