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
}
