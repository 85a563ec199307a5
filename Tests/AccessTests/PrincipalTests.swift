// Tests of principals: projects, expiry, equality, and the emulator's tokens.

import FirestoreModel
import JSON
import RealtimeModel
import Testing

@testable import Access

@Suite("Principals") struct PrincipalTests {
  @Test("an administrator of one project is a caller without credentials in another project")
  func projects() {
    let administrator = Principal(.service(.administrator), project: "a")
    #expect(administrator.acting(in: "a") == administrator)
    #expect(administrator.acting(in: "b") == .nobody)
    #expect(Principal.administrator.acting(in: "b").isAdministrator)
    let user = Principal(.user(User(id: "u", claims: .none)), project: "a")
    #expect(user.acting(in: "b") == .nobody)
  }

  @Test("credentials expire at the second of their expiry time")
  func expiry() {
    let principal = Principal(.nobody, expiry: 10)
    #expect(!principal.hasExpired(at: 9_999_999))
    #expect(principal.hasExpired(at: 10_000_000))
    #expect(!Principal.nobody.hasExpired(at: .max))
    #expect(!Principal(.nobody, expiry: .max).hasExpired(at: .max))
    #expect(Principal(.nobody, expiry: .min).hasExpired(at: 0))
  }

  @Test("users with ids in different Unicode normalization forms are different")
  func normalizationForms() {
    #expect(Principal.user("\u{E9}") != Principal.user("e\u{301}"))
    #expect(Principal.user("a") == Principal.user("a"))
    #expect(Principal.user("a", claims: ["x": .int(1)]) != Principal.user("a"))
  }

  @Test("claims are converted to values of Cloud Firestore and of the Realtime Database")
  func claims() {
    let claims: Claims = [
      "sub": .string("u"), "https://a.b/c": .bool(true), "none": .null,
      "list": .array([.int(1), .double(0.5)]),
    ]
    #expect(claims.fields["list"] == .array([.integer(1), .double(0.5)]))
    #expect(claims.fields["none"] == .null)
    #expect(claims.node.child("https://a.b/c").leafValue == .bool(true))
    #expect(claims.node.child("list").child("1").leafValue == .double(0.5))
    #expect(claims.node.child("none").isEmpty)
  }

  private static func token(_ claims: String) -> String {
    "\(Base64.encode(Array("{}".utf8), .urlSafe, padded: false)).\(Base64.encode(Array(claims.utf8), .urlSafe, padded: false))."
  }

  @Test("in an emulator, the token `owner` and Google's access tokens make an administrator of every project")
  func owner() throws {
    for token in ["owner", "Owner", "ya29.abc"] {
      #expect(try EmulatorTokens().principal(of: token[...]) == .administrator)
    }
  }

  @Test("an unsigned token is a user with tenant, claims and issuer, and never expires")
  func unsignedToken() throws {
    let principal = try EmulatorTokens().principal(
      of: Self.token(#"{"user_id":"u","iss":"i","exp":3600,"firebase":{"tenant":"t"}}"#)[...])
    #expect(principal.user?.id == "u")
    #expect(principal.user?.tenant == "t")
    #expect(principal.issuer == "i")
    #expect(principal.expiry == nil)
    #expect(principal.user?.claims.fields["exp"] == .integer(3600))
    #expect(
      try EmulatorTokens().principal(of: Self.token(#"{"sub":"s","user_id":"u"}"#)[...]).user?.id == "s")
  }

  @Test(
    "a token that is not a JSON Web Token is malformed",
    arguments: ["", "a", "a.b", "a.b.c", "..", ".W10.", ".e30", String(repeating: "a", count: 70_000)])
  func malformed(_ token: String) {
    #expect(throws: InvalidCredential.self) { try EmulatorTokens().principal(of: token[...]) }
  }
}
