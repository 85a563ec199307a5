// Tests tokens that a database secret has signed: their users in rules, their times, and attacks on their verification.

import Access
import Crypto
import JSON
import Ports
import RealtimeModel
import SecurityRules
import Testing

@testable import EndpointFixture
@testable import RealtimeEndpoints
@testable import RealtimeEngine

/// Rejects every credential.
private struct NoTokens: CredentialVerifier {
  func principal(of token: Substring) throws(InvalidCredential) -> Principal {
    throw InvalidCredential(.untrusted, reason: "test")
  }
}

@Suite("Tokens signed by database secrets", .timeLimit(.minutes(1)))
struct SecretSignedTokenTests {
  private static let secret = "0123456789abcdefghijABCDEFGHIJ0123456789"
  /// The engine has the clock of the system.
  private static let now = RealtimeEndpoint.systemTime() / 1000

  private static let rules = """
    {"rules": {
      "own": {"$uid": {".read": "auth.uid === $uid", ".write": "auth.uid === $uid"}},
      "custom": {".read": "auth.provider === 'custom' && auth.role === 'editor' && auth.token.d.role === 'editor'"},
      "admins": {".read": "auth.admin === true"}
    }}
    """

  /// Makes a token as Firebase's token generator libraries do.
  private static func token(
    _ claims: String, header: String = #"{"typ":"JWT","alg":"HS256"}"#, key: String = secret
  ) -> String {
    let text =
      Base64.encode(Array(header.utf8), .urlSafe, padded: false) + "."
      + Base64.encode(Array(claims.utf8), .urlSafe, padded: false)
    let code = HMAC<SHA256>.authenticationCode(
      for: Array(text.utf8), using: SymmetricKey(data: Array(key.utf8)))
    return text + "." + Base64.encode(Array(code), .urlSafe, padded: false)
  }

  private static func user(_ id: String, _ more: String = "") -> String {
    token(#"{"v":0,"iat":\#(now),"d":{"uid":"\#(id)","role":"editor"}\#(more)}"#)
  }

  private func serve(_ test: (RealtimeTestServer) async throws -> Void) async throws {
    let verifier = DatabaseSecrets(
      ["another-secret-of-at-least-32-bytes", Self.secret], project: "demo", now: { Self.now * 1000 },
      others: NoTokens())
    let policy = RealtimeRulesPolicy(try RealtimeRuleset(Array(Self.rules.utf8)))
    try await RealtimeTestServer.run(policy: policy, authentication: .verifying(verifier)) { server in
      let data = #"{"own":{"u1":1,"u2":2},"custom":3,"admins":4}"#
      let stored = try await server.rest("PUT", "/.json?ns=demo&auth=\(Self.secret)", body: data)
      #expect(stored.status == 200)
      try await test(server)
    }
  }

  @Test("Over REST, `auth` in rules has the data of the token")
  func rest() async throws {
    try await serve { server in
      func get(_ path: String, _ token: String) async throws -> String {
        try await server.rest("GET", "/\(path).json?ns=demo&auth=\(token)").body
      }
      let denied = "{\n  \"error\" : \"Permission denied\"\n}\n"
      let token = Self.user("u1")
      #expect(try await get("own/u1", token) == "1")
      #expect(try await get("own/u2", token) == denied)
      #expect(try await get("custom", token) == "3")
      #expect(try await get("admins", token) == denied)
      #expect(try await server.rest("PUT", "/own/u1.json?ns=demo&auth=\(token)", body: "5").status == 200)
      #expect(try await server.rest("PUT", "/own/u2.json?ns=demo&auth=\(token)", body: "5").status == 401)
      let rules = try await server.rest("GET", "/.settings/rules.json?ns=demo&auth=\(token)")
      #expect(rules.status == 401)
    }
  }

  @Test("A socket acts as the user of a token, and bypasses rules with the claim admin")
  func socket() async throws {
    try await serve { server in
      let socket = try await RawSocket.open(server)
      let expiry = Self.now + SecretSignedToken.defaultSeconds
      let claims = #"{"v":0,"iat":\#(Self.now),"d":{"uid":"u1"}}"#
      try await socket.play(
        [
          #"{"r":1,"a":"auth","b":{"cred":"\#(Self.token(claims))"}}"#,
          #"{"r":2,"a":"p","b":{"p":"/own/u1","d":3}}"#, #"{"r":3,"a":"p","b":{"p":"/own/u2","d":3}}"#,
          #"{"r":4,"a":"auth","b":{"cred":"\#(Self.user("u9", #","admin":true,"debug":true"#))"}}"#,
          #"{"r":5,"a":"p","b":{"p":"/own/u2","d":3}}"#,
        ],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":{"auth":{"provider":"custom","token":{"d":{"uid":"u1"},"iat":\#(Self.now),"v":0},"uid":"u1"},"expires":\#(expiry)}}}"#,
          #"{"r":2,"b":{"s":"ok","d":""}}"#,
          #"{"r":3,"b":{"s":"permission_denied","d":"Permission denied"}}"#,
          #"{"r":4,"b":{"s":"ok","d":{"auth":null,"expires":\#(expiry)}}}"#,
          #"{"r":5,"b":{"s":"ok","d":""}}"#,
        ])
      await socket.close()
    }
  }

  private func principal(_ token: String, at now: Int64 = now) throws -> Principal {
    try DatabaseSecrets([Self.secret], project: "demo", now: { now * 1000 }, others: NoTokens())
      .principal(of: token[...])
  }

  @Test(
    "A token expires at the time in its claim `exp`, or a day after its issue; its user is in the secret's project"
  )
  func times() throws {
    let token = Self.user("u1")
    let user = try principal(token)
    #expect(user.expiry == Self.now + 86_400)
    #expect(user.acting(in: "demo").user?.id == "u1")
    #expect(user.acting(in: "other") == .nobody)
    #expect(try principal(token, at: Self.now + 86_399).user != nil)
    let long = Self.user("u1", #","exp":\#(Self.now + 200_000)"#)
    #expect(try principal(long, at: Self.now + 199_999).user != nil)
    for (token, time) in [(token, Self.now + 86_400), (long, Self.now + 200_000)] {
      #expect { try principal(token, at: time) } throws: { ($0 as? InvalidCredential)?.kind == .expired }
    }
    let administrator = try principal(Self.token(#"{"v":0,"iat":\#(Self.now),"admin":true}"#))
    #expect(administrator.isAdministrator && administrator.project == "demo" && administrator.expiry != nil)
  }

  /// Tokens that must be rejected, by the attack.
  private static let attacks: [(name: String, token: String)] = {
    let claims = #"{"v":0,"iat":\#(now),"d":{"uid":"u1"}}"#
    let good = token(claims)
    let parts = good.split(separator: ".").map(String.init)
    let admin = Base64.encode(Array(#"{"v":0,"iat":\#(now),"admin":true}"#.utf8), .urlSafe, padded: false)
    let publicKey = "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----\n"
    var attacks: [(name: String, token: String)] = [
      ("another secret", token(claims, key: secret.uppercased())),
      ("a part of the secret", token(claims, key: String(secret.dropLast()))),
      ("an empty key", token(claims, key: "")),
      ("a public key as secret", token(claims, key: publicKey)),
      ("the digest of the secret", token(claims, key: SHA256.hash(data: Array(secret.utf8)).description)),
      ("no signature", parts[0] + "." + parts[1] + "."),
      ("a shortened signature", String(good.dropLast(2))),
      ("other claims under the signature", parts[0] + "." + admin + "." + parts[2]),
      ("four segments", good + "." + parts[2]), ("white space", " " + good),
      ("simulated operations", user("u1", #","simulate":true"#)),
      ("an early token", user("u1", #","nbf":\#(now + 61)"#)),
      ("an early token as text", user("u1", #","nbf":"0""#)),
      ("an expiry as text", user("u1", #","exp":"9999999999""#)),
      ("admin as text", user("u1", #","admin":"true""#)),
      ("admin as number", user("u1", #","admin":1"#)),
      ("a long token", user("u1", #","x":"\#(String(repeating: "x", count: 4096))""#)),
    ]
    for algorithm in ["none", "None", "hs256", "HS384", "HS512", "RS256", "ES256", "PS256", ""] {
      let header = #"{"typ":"JWT","alg":"\#(algorithm)"}"#
      attacks.append(("the algorithm '\(algorithm)'", token(claims, header: header)))
      let unsigned = Base64.encode(Array(header.utf8), .urlSafe, padded: false) + "." + parts[1] + "."
      attacks.append(("the algorithm '\(algorithm)' without signature", unsigned))
    }
    for member in [
      #""kid":"k""#, #""jku":"https://a""#, #""jwk":{}"#, #""crit":["b64"]"#, #""b64":false"#,
      #""zip":"DEF""#,
    ] {
      attacks.append(("the header \(member)", token(claims, header: #"{"alg":"HS256",\#(member)}"#)))
    }
    for claims in [
      #"{"iat":\#(now),"d":{"uid":"u1"}}"#, #"{"v":1,"iat":\#(now),"d":{"uid":"u1"}}"#,
      #"{"v":"0","iat":\#(now),"d":{"uid":"u1"}}"#, #"{"v":0,"d":{"uid":"u1"}}"#,
      #"{"v":0,"iat":\#(now + 61),"d":{"uid":"u1"}}"#, #"{"v":0,"iat":0,"d":{"uid":"u1"}}"#,
      #"{"v":0,"iat":-9223372036854775808,"d":{"uid":"u1"}}"#,
      #"{"v":0,"iat":9223372036854775807,"d":{"uid":"u1"}}"#, #"{"v":0,"iat":\#(now)}"#,
      #"{"v":0,"iat":\#(now),"d":null}"#, #"{"v":0,"iat":\#(now),"d":[]}"#, #"{"v":0,"iat":\#(now),"d":{}}"#,
      #"{"v":0,"iat":\#(now),"d":{"uid":7}}"#, #"{"v":0,"iat":\#(now),"uid":"u1"}"#,
      #"{"v":0,"iat":\#(now),"d":{"uid":"\#(String(repeating: "u", count: 257))"}}"#, "[]", "0", "",
    ] { attacks.append(("the claims \(claims.prefix(60))", token(claims))) }
    return attacks
  }()

  @Test("Tokens with another algorithm, key, header, form, time or user are rejected, and none gives rights")
  func rejected() async throws {
    #expect(Self.attacks.count >= 50)
    for attack in Self.attacks {
      #expect(throws: InvalidCredential.self, "\(attack.name)") { try principal(attack.token) }
    }
    try await serve { server in
      for attack in Self.attacks where !attack.token.contains(" ") {
        let answer = try await server.rest("GET", "/own/u1.json?ns=demo&auth=\(attack.token)")
        #expect(answer.status == 401 || answer.status == 414, "\(attack.name): \(answer.body)")
      }
    }
  }
}
