// Tests of the configuration file that the option `--auth-config` names: its errors, and servers that send e-mails by
// a relay and accept other issuers.

import Foundation
import HearthServer
import Identity
import JSON
import Testing

@Suite("Configuration file of authentication (--auth-config)", .serialized, .timeLimit(.minutes(2)))
struct AuthConfigurationTests {
  private static let accounts = "/identitytoolkit.googleapis.com/v1/accounts"

  @Test("A user resets a password by the e-mail of a relay, and unknown addresses get the same response")
  func relay() async throws {
    var behavior = SMTPReceiver.Behavior()
    behavior.tls = .none
    let relay = try await SMTPReceiver.start(behavior)
    let file = """
      {"actionUrl": "https://app.example/action", // The page of the app.
       "mail": {"relay": {"host": "127.0.0.1", "port": \(relay.port), "tls": "none"}, "from": "a@b.example"}}
      """
    try await ProductionServer.with(authConfig: file) { server in
      let email = JSONValue.string("ada@example.com")
      let created = try await server.auth.post(
        Self.accounts + ":signUp", ["email": email, "password": .string("opensesame")])
      #expect(created.status == 200, "\(created.error ?? "")")
      func reset(_ email: JSONValue) async throws -> AuthReply {
        try await server.auth.post(
          Self.accounts + ":sendOobCode", ["requestType": .string("PASSWORD_RESET"), "email": email])
      }
      let replyForUnknown = try await reset(.string("no@example.com"))
      let reply = try await reset(email)
      #expect(reply.status == 200 && replyForUnknown.status == 200)
      #expect(reply.json.object?.members.map(\.key) == replyForUnknown.json.object?.members.map(\.key))
      var messages = relay.messages.makeAsyncIterator()
      let message = try #require(await messages.next())
      #expect(message.recipients == ["RCPT TO:<ada@example.com>"])
      let link = try #require(
        message.text.components(separatedBy: "\r\n").first { $0.hasPrefix("https://app.example/action?") })
      let code = try #require(
        URLComponents(string: link)?.queryItems?.first { $0.name == "oobCode" }?.value)
      let changed = try await server.auth.post(
        Self.accounts + ":resetPassword", ["oobCode": .string(code), "newPassword": .string("another one")])
      #expect(changed.status == 200, "\(changed.error ?? "")")
      let signedIn = try await server.auth.post(
        Self.accounts + ":signInWithPassword", ["email": email, "password": .string("another one")])
      #expect(signedIn.status == 200, "\(signedIn.error ?? "")")
      #expect(relay.received.messages.count == 1)

      // A change by an administrator is announced at the old address.
      let id = try #require(created["localId"])
      let update = try await Self.changeEmail(of: id, to: "new@example.com", server)
      #expect(update.status == 200, "\(update.error ?? "")")
      let announcement = try #require(await messages.next())
      #expect(announcement.recipients == ["RCPT TO:<ada@example.com>"])
      #expect(announcement.text.contains("mode=recoverEmail"))
    }
    await relay.stop()
  }

  /// Changes an account's address as an administrator.
  private static func changeEmail(
    of id: JSONValue, to email: String, _ server: ProductionServer
  ) async throws -> AuthReply {
    let admin = try await server.accessToken(server.account("admin"))
    return try await server.auth.send(
      "POST", "/identitytoolkit.googleapis.com/v1/projects/demo-prod/accounts:update", headers: bearer(admin),
      body: JSONValue.object(["localId": id, "email": .string(email)]).json())
  }

  @Test("The server does not start if the certificates of the relay cannot be read")
  func certificates() async throws {
    let directory = AuthTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let file = """
      {"actionUrl": "https://app.example", "mail": {"relay": {"host": "h", "certificates": "\(directory)/missing.pem"}, "from": "a@b.example"}}
      """
    let error = await #expect(throws: HearthError.self) {
      try await ProductionServer.start(directory, authConfig: file)
    }
    #expect(error?.description.contains("missing.pem cannot be read") == true, "\(error?.description ?? "")")
  }

  @Test(
    "If e-mails are not configured, every request for an e-mail gets 501, and changes of addresses succeed")
  func noMail() async throws {
    try await ProductionServer.with { server in
      let created = try await server.auth.post(
        Self.accounts + ":signUp", ["email": .string("ada@example.com"), "password": .string("opensesame")])
      for email in ["ada@example.com", "no@example.com"] {
        let reply = try await server.auth.post(
          Self.accounts + ":sendOobCode",
          ["requestType": .string("PASSWORD_RESET"), "email": .string(email)])
        #expect(reply.status == 501 && reply.error?.contains("no way to send e-mails") == true, "\(email)")
      }
      let update = try await Self.changeEmail(of: #require(created["localId"]), to: "new@example.com", server)
      #expect(update.status == 200, "\(update.error ?? "")")
    }
  }

  @Test("Users of a configured issuer have access to the databases as the rules allow")
  func issuer() async throws {
    let receiver = try await HTTPReceiver.start()
    let now = Int64(Date().timeIntervalSince1970)
    let key = try SigningKey.make(at: now)
    let keys = JSONValue.object(["keys": .array([.object(try key.publicKey.jwk)])]).json()
    receiver.respond(to: "keys", with: .init(status: 200, body: keys))
    let claims: JSONObject = [
      "iss": .string("https://id.example"), "aud": .string("app"), "sub": .string("ada"), "iat": .int(now),
      "exp": .int(now + 600),
    ]
    let token = try key.encode(claims)
    let file = """
      {"issuers": {"https://id.example": {"audiences": ["app"], "keys": "\(receiver.baseURL)/keys"}}}
      """
    try await ProductionServer.with(authConfig: file) { server in
      let admin = try await server.accessToken(server.account("admin"))
      let rules = #"{"rules":{"u":{"$id":{".read":"auth.uid == $id",".write":"auth.uid == $id"}}}}"#
      let published = try await server.database.send(
        "PUT", "/.settings/rules.json?ns=demo-prod", headers: bearer(admin), body: Array(rules.utf8))
      #expect(published.status == 200)
      func write(_ id: String, _ token: String) async throws -> Int {
        try await server.database.send(
          "PUT", "/u/\(id).json?ns=demo-prod&auth=\(token)", body: Array("1".utf8)
        ).status
      }
      // The keys are fetched in the background.
      var status = try await write("ada", token)
      for _ in 0..<2000 where status != 200 { status = try await write("ada", token) }
      #expect(status == 200)
      #expect(try await write("bob", token) == 401)
      var other = claims
      other["aud"] = .string("other")
      #expect(try await write("ada", key.encode(other)) == 401)
      let document = "/v1/projects/demo-prod/databases/(default)/documents/c/a"
      // Without rules a known user has no access; an unknown one is not authenticated.
      #expect(try await server.firestore.send("GET", document, headers: bearer(token)).status == 403)
      #expect(
        try await server.firestore.send("GET", document, headers: bearer(key.encode(other))).status == 401)
      let lookup = try await server.auth.post(Self.accounts + ":lookup", ["idToken": .string(token)])
      #expect(lookup.error == "INVALID_ID_TOKEN")
      let settings = try await server.database.send(
        "GET", "/.settings/rules.json?ns=demo-prod", headers: bearer(token))
      #expect([401, 403].contains(settings.status))
    }
    await receiver.stop()
  }

  @Test(
    "A server with an invalid configuration file does not start, and the error names the setting",
    arguments: [
      (#"{"mail": {"relay": {"host": "h"}, "from": "a@b.example"}}"#, "mail needs actionUrl"),
      (#"{"mail": {"from": "a@b.example"}}"#, "mail must have either command or relay"),
      (
        #"{"mail": {"command": ["/bin/x"], "relay": {"host": "h"}, "from": "a@b.example"}}"#,
        "mail must have either command or relay"
      ),
      (#"{"mail": {"command": ["x"], "from": "a@b.example"}}"#, "mail.command must be an array"),
      (#"{"mail": {"command": ["/bin/x"]}}"#, "mail.from must be a string"),
      (#"{"mail": {"command": ["/bin/x"], "from": "a@b.example\r\nBcc: c@d.example"}}"#, "mail.from must be"),
      (#"{"mail": {"relay": {"port": 25}, "from": "a@b.example"}}"#, "mail.relay.host must be a string"),
      (#"{"mail": {"relay": {"host": "h", "port": 0}, "from": "a@b.example"}}"#, "mail.relay.port"),
      (
        #"{"mail": {"relay": {"host": "h", "tls": "yes"}, "from": "a@b.example"}}"#,
        "implicit, starttls, none"
      ),
      (#"{"mail": {"relay": {"host": "h", "user": "u"}, "from": "a@b.example"}}"#, "mail.relay.password"),
      (
        #"{"mail": {"relay": {"host": "h", "tls": "none", "user": "u", "password": "p"}, "from": "a@b.example"}}"#,
        "mail.relay.user needs TLS"
      ),
      (#"{"mail": {"relay": {"host": "h", "hosts": 1}, "from": "a@b.example"}}"#, "no member 'hosts'"),
      (#"{"issuers": []}"#, "issuers must be an object"),
      (#"{"issuers": {"i": {"keys": "https://i/k"}}}"#, "issuers.i.audiences must be an array"),
      (#"{"issuers": {"i": {"audiences": [], "keys": "https://i/k"}}}"#, "issuers.i.audiences"),
      (#"{"issuers": {"i": {"audiences": ["a"]}}}"#, "issuers.i.keys must be a string"),
      (#"{"issuers": {"i": {"audiences": ["a"], "keys": "http://i.example/k"}}}"#, "must be an https URL"),
      (
        #"{"issuers": {"i": {"audiences": ["a"], "keys": "http://127.0.0.1.evil.example/k"}}}"#,
        "must be an https URL"
      ),
      (#"{"issuers": {"i": {"audiences": ["a"], "keys": "https://i/k", "project": ""}}}"#, "project must be"),
      (
        #"{"providers": {"p": {"issuer": "i", "audiences": ["a"], "keys": "http://i.example/k"}}}"#,
        "must be an https URL"
      ),
    ])
  func errors(file: String, message: String) {
    let error = #expect(throws: HearthError.self) {
      try ProductionServer.configuration("/nonexistent", authConfig: file)
    }
    #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
  }
}
