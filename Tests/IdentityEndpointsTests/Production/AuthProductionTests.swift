// Tests of a production server: no endpoint is accessible without credentials, and issued credentials give the right
// access.

import Foundation
import HearthServer
import Identity
import JSON
import NIOSSL
import Testing

@Suite("Authentication in production", .serialized)
struct AuthProductionTests {
  private static let toolkit = "/identitytoolkit.googleapis.com/v1"
  private static let document =
    "/v1/projects/demo-prod/databases/(default)/documents/c/a"
  private static let project = ProductionServer.project

  @Test("Without credentials no data and no administration is accessible")
  func missingCredentials() async throws {
    try await ProductionServer.with { server in
      for (method, path) in [
        ("GET", Self.document), ("PATCH", Self.document), ("DELETE", Self.document),
        ("POST", "/v1/projects/demo-prod/databases/(default)/documents:runQuery"),
        ("POST", "/v1/projects/demo-prod/databases/(default)/documents:commit"),
        ("POST", "/v1/projects/demo-prod/databases/(default)/documents:listCollectionIds"),
        ("GET", "/emulator/v1/projects/demo-prod:securityRules"), ("POST", "/reset"),
      ] {
        for headers in [
          [], bearer("owner"), bearer("ya29.x"), bearer(JSONWebToken.unsigned(["sub": .string("u")])),
        ] {
          let body = method == "GET" || method == "DELETE" ? nil : Array("{}".utf8)
          let reply = try await server.firestore.send(method, path, headers: headers, body: body)
          #expect([400, 401, 403, 404].contains(reply.status), "\(method) \(path) \(reply.status)")
        }
      }
      for target in [
        "/.json?ns=demo-prod", "/.settings/rules.json?ns=demo-prod", "/.json?ns=demo-prod&auth=owner",
        "/.json?ns=demo-prod&access_token=owner",
      ] {
        for method in ["GET", "PUT", "DELETE"] {
          let body = method == "PUT" ? Array("{}".utf8) : nil
          let reply = try await server.database.send(method, target, body: body)
          #expect([401, 403, 405].contains(reply.status), "\(method) \(target) \(reply.status)")
        }
      }
      for (method, path) in [
        ("POST", "/projects/demo-prod/accounts"), ("POST", "/projects/demo-prod/accounts:lookup"),
        ("GET", "/projects/demo-prod/accounts:batchGet"), ("POST", "/projects/demo-prod/accounts:delete"),
        ("POST", "/projects/demo-prod:createSessionCookie"),
      ] {
        for headers in [[], bearer("owner"), bearer("ya29.x")] {
          let reply = try await server.auth.send(
            method, Self.toolkit + path, headers: headers, body: method == "GET" ? nil : Array("{}".utf8))
          #expect([401, 403].contains(reply.status), "\(path) \(reply.status)")
        }
      }
      for path in [
        "/emulator/v1/projects/demo-prod/oobCodes", "/emulator/v1/projects/demo-prod/config",
        "/emulator/action?mode=signIn&apiKey=k&oobCode=x", "/credentials", "/",
      ] {
        #expect(try await server.auth.send("GET", path).status == 404, "\(path)")
      }
    }
  }

  @Test(
    "An administrator's access token reads and writes both databases and manages users, until it is revoked")
  func administrator() async throws {
    try await ProductionServer.with { server in
      let account = try await server.account("backend")
      let token = try await server.accessToken(account)
      let fields = #"{"fields":{"n":{"integerValue":"7"}}}"#
      let write = try await server.firestore.send(
        "PATCH", Self.document, headers: bearer(token), body: Array(fields.utf8))
      #expect(write.status == 200, "\(String(decoding: write.body, as: UTF8.self))")
      let selfSigned = try account.sign(["aud": .string("https://firestore.googleapis.com/")])
      let read = try await server.firestore.send("GET", Self.document, headers: bearer(selfSigned))
      #expect(read["fields"]?["n"]?["integerValue"]?.string == "7")
      let put = try await server.database.send(
        "PUT", "/a.json?ns=demo-prod", headers: bearer(token), body: Array("1".utf8))
      #expect(put.status == 200, "\(String(decoding: put.body, as: UTF8.self))")
      let user = try await server.auth.send(
        "POST", Self.toolkit + "/projects/demo-prod/accounts", headers: bearer(token),
        body: Array(#"{"localId":"ada","email":"ada@example.com","password":"opensesame"}"#.utf8))
      #expect(user.status == 200, "\(user.error ?? "")")

      #expect(try await server.credentials.list().map(\.email) == [account.email])
      try await server.credentials.revoke(email: account.email, keyID: nil)
      for token in [token, selfSigned] {
        let reply = try await server.firestore.send("GET", Self.document, headers: bearer(token))
        #expect(reply.status == 401)
        let other = try await server.database.send("GET", "/a.json?ns=demo-prod", headers: bearer(token))
        #expect(other.status == 401)
        let admin = try await server.auth.send(
          "GET", Self.toolkit + "/projects/demo-prod/accounts:batchGet", headers: bearer(token))
        #expect(admin.status == 401)
      }
    }
  }

  @Test(
    "A user's signed token is accepted until the user is disabled; without rules the user has no access to data"
  )
  func users() async throws {
    try await ProductionServer.with { server in
      let signUp = try await server.auth.post(
        Self.toolkit + "/accounts:signUp",
        ["email": .string("ada@example.com"), "password": .string("opensesame")])
      let token = try #require(signUp["idToken"]?.string)
      let id = try #require(signUp["localId"]?.string)
      let parsed = try #require(JSONWebToken(token))
      #expect(parsed.header["alg"]?.string == "RS256")
      let keys = try await server.auth.send(
        "GET", "/www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com")
      let key = try #require(
        keys["keys"]?.array?.first { $0["kid"] == parsed.header["kid"] }?.object.flatMap { RSAKey(jwk: $0) })
      #expect(key.verifies(parsed.signature, of: parsed.signedBytes))
      let certificates = try await server.auth.send(
        "GET", "/www.googleapis.com/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com")
      let pem = try #require(certificates.json[parsed.header["kid"]?.string ?? ""]?.string)
      let certificate = try NIOSSLCertificate(bytes: Array(pem.utf8), format: .pem)
      #expect(try certificate.extractPublicKey().toSPKIBytes() == key.der)

      // Authenticated, but without rules nobody but service accounts has access.
      #expect(try await server.firestore.send("GET", Self.document, headers: bearer(token)).status == 403)
      let lookup = try await server.auth.post(Self.toolkit + "/accounts:lookup", ["idToken": .string(token)])
      #expect(lookup["users"]?.array?.first?["passwordHash"]?.string == "UkVEQUNURUQ=")
      #expect(lookup["users"]?.array?.first?["salt"] == nil)

      let admin = try await server.accessToken(server.account("admin"))
      let disabled = try await server.auth.send(
        "POST", Self.toolkit + "/projects/demo-prod/accounts:update", headers: bearer(admin),
        body: Array(#"{"localId":"\#(id)","disableUser":true}"#.utf8))
      #expect(disabled.status == 200)
      #expect(try await server.firestore.send("GET", Self.document, headers: bearer(token)).status == 401)
      let refresh = try await server.auth.post(
        "/securetoken.googleapis.com/v1/token",
        ["grantType": .string("refresh_token"), "refreshToken": signUp["refreshToken"] ?? .null])
      #expect(refresh.error == "USER_DISABLED")
    }
  }

  @Test("Custom tokens need the signature of an administrator of the project")
  func customTokens() async throws {
    try await ProductionServer.with { server in
      let audience = JSONValue.string(EmulatorTokenAuthority.customTokenAudience)
      let claims: JSONObject = [
        "aud": audience, "uid": .string("u1"), "claims": .object(["vip": .bool(true)]),
      ]
      func signIn(_ token: String) async throws -> AuthReply {
        try await server.auth.post(
          Self.toolkit + "/accounts:signInWithCustomToken", ["token": .string(token)])
      }
      let admin = try await server.account("admin")
      let reply = try await signIn(admin.sign(claims))
      let token = try #require(reply["idToken"]?.string.flatMap { JSONWebToken($0) })
      #expect(token.claims["vip"]?.bool == true && token.claims["sub"]?.string == "u1")
      let reader = try await server.account("reader", .reader)
      for token in [
        try reader.sign(claims), JSONWebToken.unsigned(claims), #"{"uid":"u1"}"#,
        try admin.sign(["aud": .string("x"), "uid": .string("u1")]),
        try admin.sign(["aud": audience, "uid": .string("u1"), "exp": .int(1)]),
      ] {
        let error = try await signIn(token).error
        #expect(error?.hasPrefix("INVALID_CUSTOM_TOKEN") == true, "\(error ?? "")")
      }
    }
  }

  @Test(
    "Accounts, keys and credentials survive a restart, and `hearth credentials` works while the server is stopped"
  )
  func restart() async throws {
    let directory = AuthTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let first = try await ProductionServer.start(directory)
    let signUp = try await first.auth.post(
      Self.toolkit + "/accounts:signUp",
      ["email": .string("ada@example.com"), "password": .string("opensesame")])
    let account = try await first.account("backend")
    await first.server.stop()
    #expect(try await first.credentials.list().count == 1)
    let second = try await ProductionServer.start(directory)
    let signIn = try await second.auth.post(
      Self.toolkit + "/accounts:signInWithPassword",
      ["email": .string("ada@example.com"), "password": .string("opensesame")])
    #expect(signIn["localId"] == signUp["localId"] && signIn["displayName"]?.string == "")
    let lookup = try await second.auth.post(
      Self.toolkit + "/accounts:lookup", ["idToken": signUp["idToken"] ?? .null])
    #expect(lookup.status == 200, "the first server's token is valid")
    let refresh = try await second.auth.post(
      "/securetoken.googleapis.com/v1/token",
      ["grantType": .string("refresh_token"), "refreshToken": signUp["refreshToken"] ?? .null])
    #expect(refresh.status == 200)
    _ = account
    await second.server.stop()
  }

  @Test("Responses do not show which addresses have accounts, and guesses must wait after ten failures")
  func privacy() async throws {
    try await ProductionServer.with { server in
      _ = try await server.auth.post(
        Self.toolkit + "/accounts:signUp",
        ["email": .string("ada@example.com"), "password": .string("opensesame")])
      func signIn(_ email: String, _ password: String) async throws -> String? {
        try await server.auth.post(
          Self.toolkit + "/accounts:signInWithPassword",
          ["email": .string(email), "password": .string(password)]
        ).error
      }
      #expect(try await signIn("no@example.com", "opensesame") == "INVALID_LOGIN_CREDENTIALS")
      #expect(try await signIn("ada@example.com", "wrong") == "INVALID_LOGIN_CREDENTIALS")
      let methods = try await server.auth.post(
        Self.toolkit + "/accounts:createAuthUri",
        ["identifier": .string("ada@example.com"), "continueUri": .string("http://localhost")])
      #expect(methods.json.object?.members.map(\.key).sorted() == ["kind", "sessionId"])
      let reset = try await server.auth.post(
        Self.toolkit + "/accounts:sendOobCode",
        ["requestType": .string("PASSWORD_RESET"), "email": .string("no@example.com")])
      // This server cannot send e-mails, and gives the same response for every address.
      #expect(reset.status == 501)
      for _ in 0..<9 { _ = try await signIn("ada@example.com", "wrong") }
      let blocked = try await signIn("ada@example.com", "opensesame")
      #expect(blocked?.hasPrefix("TOO_MANY_ATTEMPTS_TRY_LATER") == true)
      #expect(try await signIn("bob@example.com", "wrong") == "INVALID_LOGIN_CREDENTIALS")
    }
  }

  @Test("Tenants and projects are not created on first use")
  func unknownNames() async throws {
    try await ProductionServer.with { server in
      let tenant = try await server.auth.post(
        Self.toolkit + "/accounts:signUp", ["tenantId": .string("unknown")])
      #expect(tenant.error == "TENANT_NOT_FOUND")
      let admin = try await server.accessToken(server.account("admin"))
      let other = try await server.auth.send(
        "POST", Self.toolkit + "/projects/other/accounts:lookup", headers: bearer(admin),
        body: Array("{}".utf8))
      #expect(other.status == 403)
      let target = try await server.auth.send(
        "POST", Self.toolkit + "/accounts:lookup", headers: bearer(admin),
        body: Array(#"{"targetProjectId":"other"}"#.utf8))
      #expect(target.status == 403)
    }
  }
}
