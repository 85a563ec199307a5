// Tests of issuers that sign with ES256, and of tokens for several audiences.

import Access
import Crypto
import Foundation
import Identity
import IdentityEndpoints
import JSON
import NIOPosix
import Testing

@Suite("Issuers with elliptic keys and lists of audiences")
struct EllipticKeyTests {
  /// A key of an issuer for ES256.
  private struct EllipticKey {
    let key = P256.Signing.PrivateKey()
    let id = "elliptic"

    /// The JSON Web Key.
    func jwk(_ change: (inout JSONObject) -> Void = { _ in }) -> JSONObject {
      let point = Array(key.publicKey.rawRepresentation)
      var jwk: JSONObject = [
        "kty": .string("EC"), "crv": .string("P-256"), "use": .string("sig"), "alg": .string("ES256"),
        "kid": .string(id), "x": .string(Base64.encode(Array(point[..<32]), .urlSafe, padded: false)),
        "y": .string(Base64.encode(Array(point[32...]), .urlSafe, padded: false)),
      ]
      change(&jwk)
      return jwk
    }

    func token(
      _ claims: JSONObject, algorithm: String = "ES256", kid: String? = nil,
      signature: (P256.Signing.ECDSASignature) -> [UInt8] = { Array($0.rawRepresentation) }
    ) throws -> String {
      let text = JSONWebToken.encode(
        ["alg": .string(algorithm), "kid": .string(kid ?? id), "typ": .string("JWT")], claims)
      let bytes = signature(try key.signature(for: Array(text.utf8)))
      return text + "." + Base64.encode(bytes, .urlSafe, padded: false)
    }
  }

  private func publish(_ keys: [JSONObject], _ fixture: IssuerFixture) async {
    let set = JSONValue.object(["keys": .array(keys.map { .object($0) })])
    fixture.receiver.respond(to: "keys", with: .init(status: 200, body: set.json()))
    fixture.advance(IssuerKeyLoader.refreshSeconds)
    await fixture.loader.refresh()
  }

  private func userID(_ token: String, _ fixture: IssuerFixture) -> String? {
    (try? fixture.verifier.principal(of: token[...]))?.user?.id
  }

  @Test("A token that an issuer signs with ES256 identifies a user, even if the issuer also has RS256 keys")
  func accepted() async throws {
    try await IssuerFixture.with { fixture in
      let key = EllipticKey()
      await publish([try fixture.key.publicKey.jwk, key.jwk()], fixture)
      #expect(try userID(key.token(fixture.claims()), fixture) == "u1")
      #expect(try userID(fixture.token(), fixture) == "u1")
      await publish([key.jwk { $0["alg"] = nil }], fixture)
      #expect(try userID(key.token(fixture.claims()), fixture) == "u1")
      #expect(try userID(fixture.token(), fixture) == nil, "the RSA key was removed")
    }
  }

  @Test("A key is never used with another algorithm, and malformed signatures are rejected")
  func rejected() async throws {
    try await IssuerFixture.with { fixture in
      let (key, other) = (EllipticKey(), EllipticKey())
      await publish([try fixture.key.publicKey.jwk, key.jwk()], fixture)
      let claims = fixture.claims()
      let tokens = [
        ("another key", try other.token(claims)),
        ("RS256 with an elliptic key", try key.token(claims, algorithm: "RS256")),
        ("HS256", try key.token(claims, algorithm: "HS256")),
        ("ES384", try key.token(claims, algorithm: "ES384")),
        ("the ID of the RSA key", try key.token(claims, kid: fixture.key.id)),
        ("the ID of the server's key", try key.token(claims, kid: fixture.keys.current.id)),
        ("a signature in DER", try key.token(claims) { Array($0.derRepresentation) }),
        ("zeros", try key.token(claims) { _ in Array(repeating: 0, count: 64) }),
        ("a short signature", try key.token(claims) { Array($0.rawRepresentation.dropLast()) }),
        ("no signature", try key.token(claims) { _ in [] }),
        (
          "ES256 with an RSA key",
          try fixture.token(header: ["alg": .string("ES256"), "kid": .string(fixture.key.id)])
        ),
        (
          "an HMAC with the public key",
          try key.token(claims, algorithm: "ES256") { _ in
            Array(
              HMAC<SHA256>.authenticationCode(
                for: [1], using: .init(data: key.key.publicKey.x963Representation)))
          }
        ),
      ]
      for (name, token) in tokens { #expect(userID(token, fixture) == nil, "\(name)") }
      #expect(try userID(key.token(claims), fixture) == "u1")
    }
  }

  @Test("Keys of other curves, keys that are no point of the curve, and keys for other uses are ignored")
  func ignoredKeys() async throws {
    try await IssuerFixture.with { fixture in
      let key = EllipticKey()
      let changes: [(String, (inout JSONObject) -> Void)] = [
        ("another curve", { $0["crv"] = .string("P-384") }), ("no curve", { $0["crv"] = nil }),
        ("off the curve", { $0["y"] = $0["x"] }), ("no coordinate", { $0["y"] = nil }),
        ("a short coordinate", { $0["x"] = .string("AAAA") }), ("encryption", { $0["use"] = .string("enc") }),
        ("another algorithm", { $0["alg"] = .string("RS256") }), ("RSA", { $0["kty"] = .string("RSA") }),
        ("a number as coordinate", { $0["x"] = .int(1) }),
      ]
      for (name, change) in changes {
        await publish([key.jwk(change)], fixture)
        let token = try key.token(fixture.claims())
        #expect(userID(token, fixture) == nil, "\(name)")
      }
    }
  }

  @Test("A list of audiences must contain one of the issuer's audiences, and only strings")
  func audiences() async throws {
    try await IssuerFixture.with { fixture in
      await fixture.loader.refresh()
      let accepted: [JSONValue] = [
        .array([.string("app"), .string("https://issuer.example/userinfo")]),
        .array([.string("other"), .string("app2")]),
      ]
      let rejected: [JSONValue] = [
        .array([]), .array([.string("other"), .string("evil")]), .array([.string("app"), .int(1)]),
        .array([.array([.string("app")])]), .object(["app": .string("app")]), .string("app other"),
        .string("App"), .null,
      ]
      for audience in accepted + rejected {
        let token = try fixture.token { $0["aud"] = audience }
        #expect(userID(token, fixture) == (accepted.contains(audience) ? "u1" : nil), "\(audience)")
      }
    }
  }

  @Test("A provider's ID token may be signed with ES256, and for several audiences if it names the client")
  func providers() async throws {
    let receiver = try await HTTPReceiver.start()
    let key = EllipticKey()
    let set = JSONValue.object(["keys": .array([.object(key.jwk())])])
    receiver.respond(to: "keys", with: .init(status: 200, body: set.json()))
    let providers = OpenIDProviders(
      [
        "oidc.example": .init(
          issuer: "https://issuer.example", audiences: ["app"], keysURL: receiver.baseURL + "/keys")
      ], outbound: OutboundHTTP(group: MultiThreadedEventLoopGroup.singleton))
    func verify(_ change: (inout JSONObject) -> Void) async throws -> JSONObject {
      var claims: JSONObject = [
        "iss": .string("https://issuer.example"), "aud": .string("app"), "sub": .string("u1"),
        "iat": .int(1_800_000_000), "exp": .int(1_800_003_600),
      ]
      change(&claims)
      return try await providers.claims(
        provider: "oidc.example", idToken: key.token(claims), accessToken: nil, nonce: nil, project: "p",
        now: 1_800_000_000_000)
    }
    #expect(try await verify { _ in }["sub"]?.string == "u1")
    let both = JSONValue.array([.string("app"), .string("other")])
    let accepted = try await verify {
      $0["aud"] = both
      $0["azp"] = .string("app")
    }
    #expect(accepted["sub"]?.string == "u1")
    for client: JSONValue? in [nil, .string("other"), .string("evil"), .int(1)] {
      await #expect(throws: IdentityError.self) {
        try await verify {
          $0["aud"] = both
          $0["azp"] = client
        }
      }
    }
    await receiver.stop()
  }
}
