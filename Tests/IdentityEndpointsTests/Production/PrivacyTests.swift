// Tests that a production server with its default privacy does not show which addresses have accounts, and that it does
// not help to forge custom tokens.

import HearthServer
import Identity
import JSON
import Testing

@Suite("Privacy in production", .serialized)
struct PrivacyTests {
  private static let accounts = "/identitytoolkit.googleapis.com/v1/accounts"
  private static let administration = "/identitytoolkit.googleapis.com/v1/projects/demo-prod"

  private func signUp(_ server: ProductionServer, _ email: String) async throws -> AuthReply {
    let reply = try await server.auth.post(
      Self.accounts + ":signUp", ["email": .string(email), "password": .string("opensesame")])
    #expect(reply.status == 200, "\(reply.error ?? "")")
    return reply
  }

  @Test("A change to the address of another account gets the same response as a change to a free address")
  func changeOfAddress() async throws {
    try await ProductionServer.with { server in
      let token = try await signUp(server, "ada@example.com")["idToken"] ?? .null
      _ = try await signUp(server, "bob@example.com")
      var replies: [AuthReply] = []
      for newEmail in ["bob@example.com", "free@example.com"] {
        replies.append(
          try await server.auth.post(
            Self.accounts + ":sendOobCode",
            [
              "requestType": .string("VERIFY_AND_CHANGE_EMAIL"), "idToken": token,
              "newEmail": .string(newEmail),
            ]))
      }
      // This server cannot send e-mails.
      #expect(replies.map(\.status) == [501, 501])
      #expect(replies[0].body == replies[1].body)
      for email in ["ada@example.com", "unknown@example.com"] {
        let reset = try await server.auth.post(
          Self.accounts + ":sendOobCode",
          ["requestType": .string("PASSWORD_RESET"), "email": .string(email)])
        #expect(reset.status == 501 && reset.body == replies[0].body)
      }
    }
  }

  @Test("Only the correct password shows that an account is disabled")
  func disabledAccount() async throws {
    try await ProductionServer.with { server in
      let id = try await signUp(server, "ada@example.com")["localId"]?.string ?? ""
      let admin = try await server.accessToken(server.account("admin"))
      let disabled = try await server.auth.send(
        "POST", Self.administration + "/accounts:update", headers: bearer(admin),
        body: Array(#"{"localId":"\#(id)","disableUser":true}"#.utf8))
      #expect(disabled.status == 200)
      for (password, error) in [("wrong!", "INVALID_LOGIN_CREDENTIALS"), ("opensesame", "USER_DISABLED")] {
        let reply = try await server.auth.post(
          Self.accounts + ":signInWithPassword",
          ["email": .string("ada@example.com"), "password": .string(password)])
        #expect(reply.error == error)
      }
    }
  }

  @Test("Every invalid custom token gets the same response")
  func customTokens() async throws {
    try await ProductionServer.with { server in
      let audience = JSONValue.string(EmulatorTokenAuthority.customTokenAudience)
      let claims: JSONObject = ["aud": audience, "uid": .string("u1")]
      let admin = try await server.account("admin")
      let reader = try await server.account("reader", .reader)
      let other = try ServiceAccountFile(
        await server.credentials.create(
          name: "admin", project: "demo-other", role: .administrator, tokenURI: server.tokenURI))
      let valid = try admin.sign(claims)
      let revoked = try await server.account("revoked")
      let revokedToken = try revoked.sign(claims)
      try await server.credentials.revoke(email: revoked.email, keyID: nil)
      var bodies: Set<[UInt8]> = []
      for token in [
        "nonsense", "a.b.c", #"{"uid":"u1"}"#, JSONWebToken.unsigned(claims), try reader.sign(claims),
        try other.sign(claims), revokedToken, String(valid.dropLast(8)) + "AAAAAAAA",
        try admin.sign(["aud": .string("x"), "uid": .string("u1")]), try admin.sign(["uid": .string("u1")]),
        try admin.sign(["aud": audience, "uid": .string("u1"), "iss": .string("x")]),
        try admin.sign(["aud": audience, "uid": .string("u1"), "exp": .int(1)]),
      ] {
        let reply = try await server.auth.post(
          Self.accounts + ":signInWithCustomToken", ["token": .string(token)])
        #expect(reply.error?.hasPrefix("INVALID_CUSTOM_TOKEN") == true, "\(reply.error ?? "")")
        bodies.insert(reply.body)
      }
      #expect(bodies.count == 1)
      let reply = try await server.auth.post(
        Self.accounts + ":signInWithCustomToken", ["token": .string(valid)])
      #expect(reply.status == 200)
    }
  }
}
