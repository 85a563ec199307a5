// Tests ID tokens: parsing claims, and strings that are not tokens.

import Foundation
import Testing

@testable import FirebaseAuth

@Suite("ID tokens") struct IDTokenTests {
  @Test("a token's dates, provider and custom claims are parsed")
  func claims() throws {
    let issued = Date(timeIntervalSince1970: 1_700_000_000)
    let token = try makeToken("u1", issued: issued, claims: ["role": "editor", "level": 3, "öäü": "é?>"])
    let result = try AuthTokenResult(parsing: token)
    #expect(result.token == token && result.issuedAtDate == issued && result.authDate == issued)
    #expect(result.expirationDate == issued.addingTimeInterval(3600))
    #expect(result.signInProvider == "custom" && result.signInSecondFactor == "")
    #expect(result.claims["role"] as? String == "editor" && result.claims["level"] as? Int == 3)
    #expect(result.claims["öäü"] as? String == "é?>")
  }

  @Test(
    "a string that is not a token causes the error malformedJWT",
    arguments: [
      "", ".", "a.b", "a.b.c.d", "a.!.c", "a..c", "e30.e30.", "e30.W10.", "e30.bnVsbA.", "e30.eyJhIjo.",
      "é.é.é",
    ])
  func malformed(text: String) async {
    #expect(await errorCode { _ = try AuthTokenResult(parsing: text) } == .malformedJWT)
  }
}
