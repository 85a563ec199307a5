// Tests that a production server rejects forged tokens. Each attack changes one property of a valid token.

import Access
import Crypto
import Foundation
import Identity
import JSON
import Testing

@Suite("Attacks on tokens")
struct TokenAttackTests {
  private static func segment(_ object: JSONObject) -> String {
    Base64.encode(JSONValue.object(object).json(), .urlSafe, padded: false)
  }

  private func expectRejected(
    _ fixture: IdentityFixture, _ token: String, _ name: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(throws: InvalidCredential.self, "\(name)", sourceLocation: sourceLocation) {
      try fixture.verifier.principal(of: token[...])
    }
  }

  @Test("A token that the server signed identifies its user until it expires")
  func validToken() async throws {
    try await IdentityFixture.with { fixture in
      let token = try fixture.idToken()
      let principal = try fixture.verifier.principal(of: token[...])
      #expect(principal.user?.id == "u1" && principal.project == IdentityFixture.project)
      #expect(principal.expiry == fixture.clock.now + 3600)
      #expect(try fixture.verifier.principal(of: token[...]) == principal)
      fixture.clock.advance(3600)
      #expect(throws: InvalidCredential.self) { try fixture.verifier.principal(of: token[...]) }
    }
  }

  @Test("Changed claims are rejected although their signature is valid")
  func changedClaims() async throws {
    try await IdentityFixture.with { fixture in
      let now = fixture.clock.now
      let changes: [(String, (inout JSONObject) -> Void)] = [
        ("no issuer", { $0["iss"] = nil }),
        ("another issuer", { $0["iss"] = .string("https://evil.example") }),
        ("the issuer of another project", { $0["iss"] = .string("https://securetoken.google.com/other") }),
        (
          "the issuer of session cookies",
          { $0["iss"] = .string("https://session.firebase.google.com/demo-p") }
        ),
        ("no audience", { $0["aud"] = nil }), ("another audience", { $0["aud"] = .string("other") }),
        ("a list of audiences", { $0["aud"] = .array([.string("demo-p")]) }),
        ("an empty audience", { $0["aud"] = .string("") }), ("no subject", { $0["sub"] = nil }),
        ("an empty subject", { $0["sub"] = .string("") }), ("a number as subject", { $0["sub"] = .int(1) }),
        ("a long subject", { $0["sub"] = .string(String(repeating: "x", count: 513)) }),
        ("no expiry", { $0["exp"] = nil }), ("a text as expiry", { $0["exp"] = .string("\(now + 10)") }),
        ("expired", { $0["exp"] = .int(now) }), ("expired long ago", { $0["exp"] = .int(1) }),
        ("a negative expiry", { $0["exp"] = .int(-1) }), ("no time of issue", { $0["iat"] = nil }),
        ("issued in the future", { $0["iat"] = .int(now + 3000) }),
        ("issued at zero", { $0["iat"] = .int(0) }),
        ("a text as time of issue", { $0["iat"] = .string("\(now)") }),
        (
          "expiry before issue",
          {
            $0["exp"] = .int(now + 10); $0["iat"] = .int(now + 20)
          }
        ),
        ("signed in in the future", { $0["auth_time"] = .int(now + 3000) }),
        ("no time of sign-in", { $0["auth_time"] = nil }), ("no firebase claim", { $0["firebase"] = nil }),
        ("a text as firebase claim", { $0["firebase"] = .string("x") }),
      ]
      for (name, change) in changes {
        expectRejected(fixture, try fixture.keys.current.encode(fixture.claims("u1", change)), name)
      }
    }
  }

  @Test("Headers that name another algorithm or another key are rejected")
  func headers() async throws {
    try await IdentityFixture.with { fixture in
      let key = fixture.keys.current
      let claims = fixture.claims()
      func sign(_ header: JSONObject) throws -> String {
        let text = JSONWebToken.encode(header, claims)
        return text + "." + Base64.encode(try key.sign(Array(text.utf8)), .urlSafe, padded: false)
      }
      let validHeader: JSONObject = ["alg": .string("RS256"), "kid": .string(key.id), "typ": .string("JWT")]
      #expect(try fixture.verifier.principal(of: sign(validHeader)[...]).user?.id == "u1")
      for algorithm in [
        "none", "None", "NONE", "HS256", "HS512", "RS384", "RS512", "PS256", "ES256", "rs256", "RS256 ", "",
      ] {
        var header = validHeader
        header["alg"] = .string(algorithm)
        expectRejected(fixture, try sign(header), "algorithm \(algorithm)")
      }
      for name in ["jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64", "zip", "enc"] {
        var header = validHeader
        header[name] = name == "jwk" ? .object(try key.publicKey.jwk) : .string("https://evil.example/key")
        expectRejected(fixture, try sign(header), "header \(name)")
      }
      for kid: JSONValue? in [nil, .string(""), .string("unknown"), .int(1), .string("../" + key.id), .null] {
        var header = validHeader
        header["kid"] = kid
        expectRejected(fixture, try sign(header), "kid \(String(describing: kid))")
      }
      var header = validHeader
      header["alg"] = nil
      expectRejected(fixture, try sign(header), "no algorithm")
      header = validHeader
      header["typ"] = .string("at+jwt")
      expectRejected(fixture, try sign(header), "an ID token as access token")
    }
  }

  @Test("Tokens with an HMAC by the public key, without a signature or signed by another key are rejected")
  func signatures() async throws {
    try await IdentityFixture.with { fixture in
      let key = fixture.keys.current
      let claims = fixture.claims()
      let valid = try key.encode(claims)
      let parts = valid.split(separator: ".").map(String.init)
      let foreign = try SigningKey.make(at: fixture.clock.now)
      let text = parts[0] + "." + parts[1]
      func signed(_ signature: [UInt8]) -> String {
        text + "." + Base64.encode(signature, .urlSafe, padded: false)
      }
      expectRejected(fixture, JSONWebToken.unsigned(claims), "unsigned")
      expectRejected(fixture, text + ".", "empty signature")
      expectRejected(
        fixture, signed(try foreign.sign(Array(text.utf8))), "foreign key under the server's kid")
      expectRejected(fixture, try foreign.encode(claims), "foreign key under its own kid")
      for secret in [key.publicKey.der, Array(try key.certificate(lifetime: 1).utf8), Array(key.id.utf8)] {
        for algorithm in ["HS256", "RS256"] {
          let text = JSONWebToken.encode(["alg": .string(algorithm), "kid": .string(key.id)], claims)
          let code = HMAC<SHA256>.authenticationCode(
            for: Array(text.utf8), using: SymmetricKey(data: secret))
          expectRejected(
            fixture, text + "." + Base64.encode(Array(code), .urlSafe, padded: false), "key confusion")
        }
      }
      let signature = try #require(JSONWebToken(valid)).signature
      for index in stride(from: 0, to: signature.count, by: 16) {
        var changed = signature
        changed[index] ^= 1
        expectRejected(fixture, signed(changed), "signature bit \(index)")
      }
      expectRejected(fixture, signed(Array(signature.dropLast())), "short signature")
      expectRejected(fixture, signed(signature + [0]), "long signature")
      expectRejected(fixture, signed([]), "no signature")
      expectRejected(fixture, signed([UInt8](repeating: 0, count: 256)), "zero signature")
      // Another payload under the signature.
      let other = Self.segment(fixture.claims("admin"))
      expectRejected(fixture, parts[0] + "." + other + "." + parts[2], "another payload")
    }
  }

  @Test("Every other encoding of a valid token is rejected")
  func encodings() async throws {
    try await IdentityFixture.with { fixture in
      let valid = try fixture.idToken()
      #expect(throws: Never.self) { try fixture.verifier.principal(of: valid[...]) }
      let parts = valid.split(separator: ".").map(String.init)
      var texts = [
        "", ".", "..", "...", "x", "a.b.c", valid + ".", "." + valid, valid + "=", valid + "==", valid + "A",
        " " + valid, valid + " ", valid + "\n", valid + "\0", valid.uppercased(),
        valid.replacing("_", with: "/"),
        parts[0] + "=." + parts[1] + "." + parts[2], parts[0] + "." + parts[1] + "=." + parts[2],
        parts[0] + "." + parts[1], parts[0] + ".." + parts[2], "." + parts[1] + "." + parts[2],
        parts[0] + "." + parts[1] + "." + parts[2] + "." + parts[2],
        String(repeating: "a", count: 40_000), valid.replacing("K", with: "\u{212A}"),
      ].filter { $0 != valid }
      // The last character of each segment has unused bits, which must be zero.
      for part in 0..<3 {
        var changed = parts
        guard let last = changed[part].last, changed[part].count % 4 != 0 else { continue }
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        guard let index = alphabet.firstIndex(of: last) else { continue }
        changed[part].removeLast()
        changed[part].append(alphabet[index ^ 1])
        texts.append(changed.joined(separator: "."))
      }
      for text in texts { expectRejected(fixture, text, "text \(text.prefix(20))…") }
    }
  }

  @Test("Session cookies, custom tokens, assertions and refresh tokens are not accepted as credentials")
  func otherTokens() async throws {
    try await IdentityFixture.with { fixture in
      let now = fixture.clock.now
      let file = try await fixture.accounts.create(
        name: "server", project: IdentityFixture.project, role: .administrator,
        tokenURI: "https://hearth.example/token")
      let account = try TestServiceAccount(file)
      let audience =
        "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"
      var token = try account.sign(["aud": .string(audience), "uid": .string("u1")], now)
      expectRejected(fixture, token, "custom token")
      token = try account.sign(["aud": .string("https://hearth.example/token"), "scope": .string("x")], now)
      expectRejected(fixture, token, "assertion")
      token = try fixture.keys.current.encode(
        fixture.claims { $0["iss"] = .string(IDTokenClaims.cookieIssuer(of: IdentityFixture.project)) })
      expectRejected(fixture, token, "session cookie")
      let seal = try await fixture.store.project(IdentityFixture.project).seal()
      expectRejected(fixture, seal.seal(["localId": .string("u1")], as: .refresh), "refresh token")
      for text in ["owner", "Owner", "ya29.token"] { expectRejected(fixture, text, text) }
    }
  }

  @Test("Tokens that service accounts sign must name the account and the API, and have a short validity")
  func selfSigned() async throws {
    try await IdentityFixture.with { fixture in
      let now = fixture.clock.now
      let file = try await fixture.accounts.create(
        name: "reader", project: IdentityFixture.project, role: .reader, tokenURI: "https://h.example/token")
      let other = try await fixture.accounts.create(
        name: "other", project: "other", role: .administrator, tokenURI: "https://h.example/token")
      let account = try TestServiceAccount(file)
      let api = JSONValue.string("https://firestore.googleapis.com/")
      let principal = try fixture.verifier.principal(of: account.sign(["aud": api], now)[...])
      #expect(principal.role == .reader && principal.project == IdentityFixture.project)
      let scope = JSONValue.string("https://www.googleapis.com/auth/datastore")
      #expect(try fixture.verifier.principal(of: account.sign(["scope": scope], now)[...]).role == .reader)
      let attacks: [(String, JSONObject)] = [
        ("no audience", [:]), ("another API", ["aud": .string("https://storage.googleapis.com/")]),
        ("a foreign API", ["aud": .string("https://firestore.googleapis.com.evil.example/")]),
        ("an unknown scope", ["scope": .string("openid")]), ("a list of audiences", ["aud": .array([api])]),
        ("too long", ["aud": api, "exp": .int(now + 3601)]), ("expired", ["aud": api, "exp": .int(now)]),
        ("in the future", ["aud": api, "iat": .int(now + 3000), "exp": .int(now + 3600)]),
        ("another subject", ["aud": api, "sub": other["client_email"] ?? .null]),
        ("another issuer", ["aud": api, "iss": other["client_email"] ?? .null]),
        ("a user", ["aud": api, "uid": .string("u1")]),
      ]
      for (name, claims) in attacks { expectRejected(fixture, try account.sign(claims, now), name) }
      try await fixture.accounts.revoke(email: account.email, keyID: nil)
      expectRejected(fixture, try account.sign(["aud": api], now), "revoked")
    }
  }

  @Test("An access token is valid for its account's project until its key is revoked")
  func accessTokens() async throws {
    try await IdentityFixture.with { fixture in
      let now = fixture.clock.now
      let uri = "https://hearth.example/token"
      let file = try await fixture.accounts.create(
        name: "server", project: IdentityFixture.project, role: .writer, tokenURI: uri)
      let account = try TestServiceAccount(file)
      let scope = JSONValue.string("https://www.googleapis.com/auth/cloud-platform")
      let assertion = try account.sign(["aud": .string(uri), "scope": scope], now)
      let token = try await fixture.authority.accessToken(assertion: assertion).token
      let principal = try fixture.verifier.principal(of: token[...])
      #expect(principal.role == .writer && principal.project == IdentityFixture.project)
      let attacks: [(String, JSONObject)] = [
        ("another endpoint", ["aud": .string("https://evil.example/token"), "scope": scope]),
        ("no scope", ["aud": .string(uri)]),
        ("an unknown scope", ["aud": .string(uri), "scope": .string("x")]),
        ("too long", ["aud": .string(uri), "scope": scope, "exp": .int(now + 3601)]),
        ("an ID token's audience", ["aud": .string(IdentityFixture.project), "scope": scope]),
      ]
      for (name, claims) in attacks {
        await #expect(throws: IdentityError.self, "\(name)") {
          try await fixture.authority.accessToken(assertion: account.sign(claims, now))
        }
      }
      try await fixture.accounts.revoke(email: account.email, keyID: account.keyID)
      expectRejected(fixture, token, "revoked key")
    }
  }
}
