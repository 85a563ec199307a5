// Tests OpenID Connect providers, whose keys a server on loopback publishes, and the delivery of codes.

import Foundation
import Identity
import IdentityEndpoints
import JSON
import Logging
import NIOPosix
import Testing

@Suite("Identity providers and delivery in production")
struct ProviderTests {
  private static let now: Int64 = 1_800_000_000
  private static let log = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  /// Runs a test with a provider whose keys a receiver serves.
  private static func withProvider(
    _ body: (OpenIDProviders, SigningKey, HTTPReceiver) async throws -> Void
  ) async throws {
    let receiver = try await HTTPReceiver.start()
    let key = try SigningKey.make(at: now)
    let keys = JSONValue.object(["keys": .array([.object(try key.publicKey.jwk)])]).json()
    receiver.respond(to: "keys", with: .init(status: 200, body: keys))
    let provider = OpenIDProviders.Provider(
      issuer: "https://issuer.example", audiences: ["app"], keysURL: receiver.baseURL + "/keys")
    let providers = OpenIDProviders(
      ["oidc.example": provider], outbound: OutboundHTTP(group: MultiThreadedEventLoopGroup.singleton))
    let result: Result<Void, any Error>
    do { result = .success(try await body(providers, key, receiver)) } catch { result = .failure(error) }
    await receiver.stop()
    try result.get()
  }

  private static let claims: JSONObject = [
    "iss": .string("https://issuer.example"), "aud": .string("app"), "sub": .string("u1"),
    "iat": .int(now), "exp": .int(now + 3600),
  ]

  private static func verify(
    _ providers: OpenIDProviders, _ token: String?, nonce: String? = nil, provider: String = "oidc.example"
  ) async throws -> JSONObject {
    try await providers.claims(
      provider: provider, idToken: token, accessToken: nil, nonce: nonce, project: "p", now: now * 1000)
  }

  @Test("An ID token of a configured provider is accepted, and its keys are fetched once")
  func accepted() async throws {
    try await Self.withProvider { providers, key, receiver in
      let token = try key.encode(Self.claims)
      #expect(try await Self.verify(providers, token)["sub"]?.string == "u1")
      receiver.clearRequests()
      #expect(try await Self.verify(providers, token)["sub"]?.string == "u1")
      #expect(receiver.lastRequest("keys") == nil)
      var claims = Self.claims
      claims["nonce"] = .string("2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b")
      #expect(try await Self.verify(providers, key.encode(claims), nonce: "secret")["sub"]?.string == "u1")
    }
  }

  @Test("Forged, expired and foreign ID tokens are rejected")
  func rejected() async throws {
    try await Self.withProvider { providers, key, _ in
      let changes: [(inout JSONObject) -> Void] = [
        { $0["iss"] = .string("https://evil.example") }, { $0["iss"] = nil },
        { $0["aud"] = .string("other") },
        { $0["aud"] = .array([.string("app"), .string("other")]) }, { $0["aud"] = nil },
        { $0["exp"] = .int(Self.now) }, { $0["exp"] = nil }, { $0["iat"] = .int(Self.now + 3000) },
        { $0["nonce"] = .string("x") },
      ]
      for (index, change) in changes.enumerated() {
        var claims = Self.claims
        change(&claims)
        let token = try key.encode(claims)
        await #expect(throws: IdentityError.self, "change \(index)") {
          try await Self.verify(providers, token)
        }
      }
      let foreign = try SigningKey.make(at: Self.now)
      let valid = try key.encode(Self.claims)
      let forged =
        valid.split(separator: ".").dropLast().joined(separator: ".") + "."
        + String(repeating: "A", count: 342)
      for token in [
        try foreign.encode(Self.claims), forged, JSONWebToken.unsigned(Self.claims), #"{"sub":"u1"}"#, "",
        nil,
      ] {
        await #expect(throws: IdentityError.self) { try await Self.verify(providers, token) }
      }
      await #expect(throws: IdentityError.self) {
        try await Self.verify(providers, valid, provider: "google.com")
      }
    }
  }

  @Test("An access token without an ID token is not implemented: it may have been issued to another app")
  func accessTokenOnly() async throws {
    try await Self.withProvider { providers, _, _ in
      let error = await #expect(throws: IdentityError.self) {
        try await providers.claims(
          provider: "oidc.example", idToken: nil, accessToken: "token", nonce: nil, project: "p",
          now: Self.now * 1000)
      }
      #expect(error?.httpStatus == 501 && error?.status == "NOT_IMPLEMENTED")
    }
  }

  @Test("A command receives e-mails, and a webhook receives verification codes")
  func delivery() async throws {
    let file = AuthTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: file) }
    let receiver = try await HTTPReceiver.start()
    receiver.respond(to: "sms", with: .init(status: 204, body: []))
    let group = MultiThreadedEventLoopGroup.singleton
    let sender = try #require(Mailbox("Hearth <no-reply@example.com>"))
    let delivery = try ConfiguredDelivery(
      mail: .init(.command(["/bin/sh", "-c", "cat > '\(file)'"]), from: sender),
      textMessageURL: receiver.baseURL + "/sms", outbound: OutboundHTTP(group: group), group: group,
      log: Self.log)
    let code = OutOfBandCode(
      code: "c", purpose: .changeEmail, email: "old@example.com", newEmail: "new@example.com",
      link: "https://app.example/action?oobCode=c", createdAt: 0)
    try await delivery.sendEmail(code, language: "en")
    let message = try String(contentsOfFile: file, encoding: .utf8)
    #expect(message.contains("\r\nFrom: \"Hearth\" <no-reply@example.com>\r\nTo: new@example.com\r\n"))
    #expect(message.contains("\r\nhttps://app.example/action?oobCode=c\r\n"))
    let session = PhoneSession(phoneNumber: "+15551234", createdAt: 0)
    try await delivery.sendTextMessage(session, language: "de")
    let sent = try JSONValue(json: try #require(receiver.lastRequest("sms")))
    #expect(sent["code"]?.string == session.code && sent["language"]?.string == "de")
    receiver.respond(to: "sms", with: .init(status: 500, body: []))
    await #expect(throws: IdentityError.self) { try await delivery.sendTextMessage(session, language: "en") }
    await receiver.stop()
    let failing = try ConfiguredDelivery(
      mail: .init(.command(["/bin/false"]), from: sender), textMessageURL: nil,
      outbound: OutboundHTTP(group: group), group: group, log: Self.log)
    await #expect(throws: IdentityError.self) { try await failing.sendEmail(code, language: "en") }
    await #expect(throws: IdentityError.self) { try await failing.sendTextMessage(session, language: "en") }
  }
}
