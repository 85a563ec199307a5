// Tests that sensitive changes of an account need a recent sign-in.

import Identity
import JSON
import NIOConcurrencyHelpers
import Testing

@Suite("Recent sign-in")
struct RecentSignInTests {
  @Test("A password is added to an account only within five minutes of the sign-in of the ID token")
  func addedPassword() async throws {
    let server = try await ProductionCalls()
    let anonymous = try await server.signUp([:])
    let body: JSONObject = [
      "idToken": anonymous["idToken"] ?? .null, "email": .string("ada@example.com"),
      "password": .string("opensesame"),
    ]
    server.seconds.withLockedValue { $0 += 301 }
    await #expect(throws: IdentityError.rejected("CREDENTIAL_TOO_OLD_LOGIN_AGAIN")) {
      try await server.signUp(body)
    }
    server.seconds.withLockedValue { $0 -= 1 }
    #expect(try await server.signUp(body)["localId"] == anonymous["localId"])
  }

  @Test(
    "A sign-in by an e-mail link adds an address to an account only within five minutes of the sign-in of the ID token"
  )
  func addedLink() async throws {
    let server = try await ProductionCalls(delivery: CodeRecorder())
    let anonymous = try await server.signUp([:])
    let body = try await linkRequest(server, "ada@example.com", anonymous["idToken"] ?? .null)
    server.advance(301)
    await #expect(throws: IdentityError.rejected("CREDENTIAL_TOO_OLD_LOGIN_AGAIN")) {
      try await server.signInWithEmailLink(body)
    }
    server.advance(-1)
    #expect(try await server.signInWithEmailLink(body)["localId"] == anonymous["localId"])
    // The account already has this address, so the sign-in does not change it.
    let again = try await linkRequest(server, "ada@example.com", anonymous["idToken"] ?? .null)
    server.advance(60)
    #expect(try await server.signInWithEmailLink(again)["localId"] == anonymous["localId"])
  }

  @Test("A sign-in by an e-mail link does not replace the address of an account")
  func replacingLink() async throws {
    let server = try await ProductionCalls(delivery: CodeRecorder())
    let ada = try await server.signUp([
      "email": .string("ada@example.com"), "password": .string("opensesame"),
    ])
    let body = try await linkRequest(server, "thief@example.com", ada["idToken"] ?? .null)
    await #expect(throws: IdentityError.rejected("OPERATION_NOT_ALLOWED")) {
      try await server.signInWithEmailLink(body)
    }
    #expect(try await server.account("ada@example.com")?.localID == ada["localId"]?.string)
    #expect(try await server.account("thief@example.com") == nil)
  }

  /// The request of a sign-in by an e-mail link with an ID token.
  private func linkRequest(_ server: ProductionCalls, _ email: String, _ idToken: JSONValue) async throws
    -> JSONObject
  {
    _ = try await server.sendCode(["requestType": .string("EMAIL_SIGNIN"), "email": .string(email)])
    return ["email": .string(email), "oobCode": try await server.code(.signIn), "idToken": idToken]
  }
}
