// Tests tokens of other issuers as credentials for the databases. A server on loopback publishes the keys.

import Access
import Crypto
import Foundation
import Identity
import IdentityEndpoints
import JSON
import Testing

@Suite("Tokens of other issuers")
struct IssuerTests {
  private func expectRejected(
    _ fixture: IssuerFixture, _ token: String, _ name: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(throws: InvalidCredential.self, "\(name)", sourceLocation: sourceLocation) {
      try fixture.verifier.principal(of: token[...])
    }
  }

  @Test("A token of a configured issuer identifies a user of the project until it expires")
  func accepted() async throws {
    try await IssuerFixture.with { fixture in
      let token = try fixture.token()
      expectRejected(fixture, token, "before the keys are loaded")
      await fixture.loader.refresh()
      let principal = try fixture.verifier.principal(of: token[...])
      #expect(principal.user?.id == "u1" && principal.project == IssuerFixture.project)
      #expect(principal.user?.claims.json["role"]?.string == "editor")
      #expect(principal.expiry == fixture.now + 3600 && principal.role == nil)
      #expect(
        try fixture.verifier.principal(of: fixture.token { $0["aud"] = .string("app2") }[...]).user != nil)
      #expect(
        try fixture.verifier.principal(of: fixture.token { $0["aud"] = .array([.string("app")]) }[...]).user
          != nil)
      #expect(fixture.receiver.requestCount("keys") == 1)
      fixture.advance(3600)
      expectRejected(fixture, token, "expired")
    }
  }

  @Test("Keys may be published as a JSON object that maps each key ID to a certificate")
  func certificates() async throws {
    try await IssuerFixture.with { fixture in
      let certificate = try fixture.key.certificate(lifetime: 86_400)
      fixture.receiver.respond(
        to: "keys",
        with: .init(status: 200, body: JSONValue.object([fixture.key.id: .string(certificate)]).json()))
      await fixture.loader.refresh()
      #expect(try fixture.verifier.principal(of: fixture.token()[...]).user?.id == "u1")
    }
  }

  @Test("A rotated key is fetched at most once a minute, and a removed key no longer verifies tokens")
  func rotation() async throws {
    try await IssuerFixture.with { fixture in
      await fixture.loader.refresh()
      let old = try fixture.token()
      #expect(try fixture.verifier.principal(of: old[...]).user?.id == "u1")
      let next = try SigningKey.make(at: fixture.now)
      try fixture.publish([next])
      let token = try next.encode(fixture.claims())
      for _ in 0..<20 {
        expectRejected(fixture, token, "the key is not fetched yet")
        await fixture.loader.refresh()
      }
      #expect(fixture.receiver.requestCount("keys") == 1, "the last request is less than a minute ago")
      fixture.advance(IssuerKeyLoader.retrySeconds)
      await fixture.loader.refresh()
      #expect(fixture.receiver.requestCount("keys") == 2)
      #expect(try fixture.verifier.principal(of: token[...]).user?.id == "u1")
      expectRejected(fixture, old, "the key was removed, although the token is cached")
    }
  }

  @Test("Keys are fetched every hour, and removed after a day without a response")
  func keyAge() async throws {
    try await IssuerFixture.with { fixture in
      await fixture.loader.refresh()
      fixture.receiver.respond(to: "keys", with: .init(status: 500, body: []))
      fixture.advance(IssuerKeyLoader.refreshSeconds)
      await fixture.loader.refresh()
      #expect(fixture.receiver.requestCount("keys") == 2)
      #expect(try fixture.verifier.principal(of: fixture.token()[...]).user?.id == "u1")
      fixture.advance(IssuerKeyLoader.maximumAgeSeconds)
      await fixture.loader.refresh()
      expectRejected(fixture, try fixture.token(), "the keys are too old")
    }
  }

  @Test("Silent issuers, large responses and redirects yield no keys and do not delay other issuers")
  func hostileIssuers() async throws {
    let elsewhere = try await HTTPReceiver.start()
    try await IssuerFixture.with { fixture in
      let set = JSONValue.object(["keys": .array([.object(try fixture.key.publicKey.jwk)])]).json()
      elsewhere.respond(to: "keys", with: .init(status: 200, body: set))
      let responses: [HTTPReceiver.Response] = [
        .init(status: 200, body: [], isSilent: true),
        .init(status: 200, body: set + [UInt8](repeating: 0x20, count: 10 << 20)),
        .init(status: 302, body: [], location: elsewhere.baseURL + "/keys"),
        .init(status: 200, body: Array("<html>".utf8)), .init(status: 200, body: Array("[]".utf8)),
        .init(status: 200, body: Array(#"{"keys":{}}"#.utf8)), .init(status: 404, body: set),
        .init(status: 200, body: Array(#"{"a":"-----BEGIN CERTIFICATE-----\nAAAA"}"#.utf8)),
      ]
      let other = try SigningKey.make(at: fixture.now)
      try fixture.publish([other], at: "other")
      for (index, response) in responses.enumerated() {
        fixture.receiver.respond(to: "keys", with: response)
        let start = ContinuousClock.now
        await fixture.loader.refresh()
        #expect(ContinuousClock.now - start < .seconds(5), "response \(index)")
        expectRejected(fixture, try fixture.token(), "response \(index)")
        let token = try other.encode(fixture.claims { $0["iss"] = .string(IssuerFixture.otherIssuer) })
        #expect(try fixture.verifier.principal(of: token[...]).project == "demo-other", "response \(index)")
        fixture.advance(IssuerKeyLoader.retrySeconds)
      }
      #expect(elsewhere.requestCount("keys") == 0)
    }
    await elsewhere.stop()
  }

  @Test("Changed claims are rejected although the issuer's signature is valid")
  func changedClaims() async throws {
    try await IssuerFixture.with { fixture in
      await fixture.loader.refresh()
      let now = fixture.now
      let changes: [(String, (inout JSONObject) -> Void)] = [
        ("no issuer", { $0["iss"] = nil }),
        ("an unknown issuer", { $0["iss"] = .string("https://evil.example") }),
        ("the other issuer's name", { $0["iss"] = .string(IssuerFixture.otherIssuer) }),
        ("a slash more", { $0["iss"] = .string(IssuerFixture.issuer + "/") }),
        ("the server's own issuer", { $0["iss"] = .string(IDTokenClaims.issuer(of: IssuerFixture.project)) }),
        ("the issuer of access tokens", { $0["iss"] = .string(TokenVerifier.accessTokenIssuer) }),
        ("no audience", { $0["aud"] = nil }), ("another audience", { $0["aud"] = .string("other") }),
        ("the project as audience", { $0["aud"] = .string(IssuerFixture.project) }),
        ("two other audiences", { $0["aud"] = .array([.string("other"), .string("evil")]) }),
        ("an empty list of audiences", { $0["aud"] = .array([]) }), ("no subject", { $0["sub"] = nil }),
        ("an empty subject", { $0["sub"] = .string("") }), ("a number as subject", { $0["sub"] = .int(1) }),
        ("a long subject", { $0["sub"] = .string(String(repeating: "x", count: 513)) }),
        ("expired", { $0["exp"] = .int(now) }), ("no expiry", { $0["exp"] = nil }),
        ("valid for two days", { $0["exp"] = .int(now + 2 * 86_400) }),
        ("no time of issue", { $0["iat"] = nil }),
        ("issued in the future", { $0["iat"] = .int(now + 3000) }),
        ("not valid yet", { $0["nbf"] = .int(now + 3000) }), ("a text as nbf", { $0["nbf"] = .string("0") }),
      ]
      for (name, change) in changes { expectRejected(fixture, try fixture.token(change), name) }
      #expect(try fixture.verifier.principal(of: fixture.token()[...]).user?.id == "u1")
    }
  }

  @Test("Headers that name another algorithm, key or address are rejected, and nothing is fetched")
  func headers() async throws {
    let evil = try await HTTPReceiver.start()
    try await IssuerFixture.with { fixture in
      await fixture.loader.refresh()
      let validHeader: JSONObject = [
        "alg": .string("RS256"), "kid": .string(fixture.key.id), "typ": .string("JWT"),
        "x5t": .string("AAAA"),
      ]
      #expect(try fixture.verifier.principal(of: fixture.token(header: validHeader)[...]).user?.id == "u1")
      var changes: [(String, JSONValue?)] = ["none", "HS256", "RS512", "PS256", "ES256", "rs256"].map {
        ("alg", .string($0))
      }
      changes += [("alg", nil), ("kid", nil), ("kid", .string("")), ("kid", .string("unknown"))]
      changes += ["jku", "x5u"].map { ($0, .string(evil.baseURL + "/keys")) }
      changes += [("jwk", .object(try fixture.key.publicKey.jwk)), ("x5c", .array([])), ("crit", .array([]))]
      changes += [
        ("typ", .string("logout+jwt")), ("typ", .int(1)), ("kid", .string(fixture.keys.current.id)),
      ]
      for (name, value) in changes {
        var header = validHeader
        header[name] = value
        let text = "\(name) \(String(describing: value))"
        expectRejected(fixture, try fixture.token(header: header), text)
      }
      await fixture.loader.refresh()
      #expect(evil.requestCount("keys") == 0 && fixture.receiver.requestCount("keys") == 1)
    }
    await evil.stop()
  }

  @Test("Forged signatures, and keys of another issuer or of the server, are rejected")
  func signatures() async throws {
    try await IssuerFixture.with { fixture in
      let other = try SigningKey.make(at: fixture.now)
      try fixture.publish([other], at: "other")
      await fixture.loader.refresh()
      let key = fixture.key
      expectRejected(fixture, JSONWebToken.unsigned(fixture.claims()), "unsigned")
      expectRejected(fixture, try other.encode(fixture.claims()), "a key of the other issuer")
      expectRejected(fixture, try fixture.keys.current.encode(fixture.claims()), "the server's own key")
      let parts = try fixture.token().split(separator: ".")
      let admin = try fixture.token { $0["sub"] = .string("admin") }.split(separator: ".")
      expectRejected(fixture, "\(parts[0]).\(admin[1]).\(parts[2])", "another payload")
      expectRejected(fixture, "\(parts[0]).\(parts[1]).", "no signature")
      for secret in [key.publicKey.der, Array(try key.certificate(lifetime: 1).utf8), Array(key.id.utf8)] {
        for algorithm in ["HS256", "RS256"] {
          let text = JSONWebToken.encode(
            ["alg": .string(algorithm), "kid": .string(key.id)], fixture.claims())
          let code = HMAC<SHA256>.authenticationCode(
            for: Array(text.utf8), using: SymmetricKey(data: secret))
          expectRejected(
            fixture, text + "." + Base64.encode(Array(code), .urlSafe, padded: false), "key confusion")
        }
      }
      // An issuer that publishes a key under the ID of a server's key cannot issue tokens of the server.
      var jwk = try key.publicKey.jwk
      jwk["kid"] = .string(fixture.keys.current.id)
      fixture.receiver.respond(
        to: "keys",
        with: .init(status: 200, body: JSONValue.object(["keys": .array([.object(jwk)])]).json()))
      fixture.advance(IssuerKeyLoader.refreshSeconds)
      await fixture.loader.refresh()
      let header: JSONObject = ["alg": .string("RS256"), "kid": .string(fixture.keys.current.id)]
      expectRejected(fixture, try fixture.token(header: header), "the ID of the server's key")
    }
  }

  @Test("Tokens of other issuers are not credentials for accounts or administration")
  func accounts() async throws {
    try await IssuerFixture.with { fixture in
      await fixture.loader.refresh()
      let token = try fixture.token {
        $0["firebase"] = .object(["sign_in_provider": .string("password")])
        $0["auth_time"] = .int(fixture.now)
        $0["user_id"] = .string("u1")
      }
      #expect(try fixture.verifier.principal(of: token[...]).user?.id == "u1")
      let error = await #expect(throws: IdentityError.self) {
        try await fixture.authority.readIDToken(token, project: IssuerFixture.project)
      }
      #expect(error?.message == "INVALID_ID_TOKEN")
      await #expect(throws: IdentityError.self) {
        try await fixture.authority.authenticateAdministrator(bearer: token, project: nil)
      }
    }
  }

  @Test("If an account with the user's ID is disabled, tokens that are valid for a day are rejected")
  func revocation() async throws {
    try await IssuerFixture.with { fixture in
      await fixture.loader.refresh()
      let token = try fixture.token { $0["exp"] = .int(fixture.now + 86_400) }
      let principal = try fixture.verifier.principal(of: token[...])
      #expect(!fixture.verifier.isRevoked(principal))
      let database = try await fixture.store.project(IssuerFixture.project)
      try await database.write { transaction in
        var account = Account(localID: "u1", tenantID: nil, createdAt: 1)
        try transaction.put(account)
        account.disabled = true
        try transaction.put(account)
      }
      #expect(fixture.verifier.isRevoked(principal))
      expectRejected(fixture, token, "revoked")
      fixture.advance(80_000)
      await fixture.loader.refresh()
      for number in 0..<1100 {
        // The revocation list drops old revocations when it has grown.
        try await database.write { transaction in
          var account = Account(localID: "x\(number)", tenantID: nil, createdAt: 1)
          account.disabled = true
          try transaction.put(account)
          try transaction.remove(account)
        }
      }
      expectRejected(fixture, token, "revoked 22 hours ago")
    }
  }
}
