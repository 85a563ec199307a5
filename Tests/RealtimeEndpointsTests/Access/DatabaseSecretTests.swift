// Tests database secrets: they give the rights of an administrator in their project, over REST and sockets.

import Access
import JSON
import Ports
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import RealtimeEndpoints
@testable import RealtimeEngine

@Suite("Database secrets", .timeLimit(.minutes(1)))
struct DatabaseSecretTests {
  private static let secret = "0123456789abcdefghijABCDEFGHIJ0123456789"

  private func serve(_ test: (RealtimeTestServer) async throws -> Void) async throws {
    let verifier = DatabaseSecrets(
      [Self.secret], project: "demo", others: ExpiringTokens(now: SystemTime.milliseconds))
    try await RealtimeTestServer.run(policy: LockedPolicy(), authentication: .verifying(verifier)) { server in
      let database = try await server.engine.database("demo")
      _ = try await database.set("a", to: .leaf(.int(1)), as: .administrator)
      try await test(server)
    }
  }

  @Test("A REST request with a secret reads and writes everything, and may act as a user")
  func rest() async throws {
    try await serve { server in
      let target = "/a.json?ns=demo"
      #expect(try await server.rest("GET", "\(target)&auth=\(Self.secret)").body == "1")
      #expect(try await server.rest("PUT", "\(target)&auth=\(Self.secret)", body: "2").status == 200)
      let rules = try await server.rest("GET", "/.settings/rules.json?ns=demo&auth=\(Self.secret)")
      #expect(rules.status == 200)
      let override = "&auth_variable_override=%7B%22uid%22:%22u1%22%7D"
      #expect(try await server.rest("GET", "\(target)&auth=\(Self.secret)\(override)").status == 401)
    }
  }

  @Test("A secret authenticates a socket")
  func socket() async throws {
    try await serve { server in
      let socket = try await RawSocket.open(server)
      try await socket.play(
        [#"{"r":1,"a":"auth","b":{"cred":"\#(Self.secret)"}}"#, #"{"r":2,"a":"p","b":{"p":"/a","d":3}}"#],
        expect: [
          #"{"r":1,"b":{"s":"ok","d":{"auth":null,"expires":0}}}"#, #"{"r":2,"b":{"s":"ok","d":""}}"#,
        ])
      await socket.close()
    }
  }

  @Test("Parts and variants of a secret are rejected; another verifier decides about all other credentials")
  func others() async throws {
    try await serve { server in
      for text in [
        String(Self.secret.dropLast()), Self.secret + "0", Self.secret.uppercased(), "%20" + Self.secret,
      ] {
        let answer = try await server.rest("GET", "/a.json?ns=demo&auth=\(text)")
        #expect(answer.status == 401, "\(text): \(answer.body)")
      }
      #expect(try await server.rest("GET", "/a.json?ns=demo&auth=owner").body == "1")
      #expect(try await server.rest("GET", "/a.json?ns=demo&auth=u1").status == 401)
    }
  }

  @Test("A secret gives the rights of an administrator only in its own project")
  func project() throws {
    let verifier = DatabaseSecrets([Self.secret], project: "demo", others: ExpiringTokens(now: { 0 }))
    let principal = try verifier.principal(of: Self.secret[...])
    #expect(principal.acting(in: "demo").isAdministrator)
    #expect(principal.acting(in: "other") == .nobody)
  }

  @Test("Only administrators may act as a user or as nobody", arguments: ServiceRole.allCases)
  func override(role: ServiceRole) throws {
    struct OneRole: CredentialVerifier {
      let role: ServiceRole
      func principal(of token: Substring) throws(InvalidCredential) -> Principal { Principal(.service(role)) }
    }
    let authentication = RealtimeAuthentication.verifying(OneRole(role: role))
    for override in [RealtimeAuthentication.Override.nobody, .user(["uid": .string("u1")])] {
      if role == .administrator {
        #expect(try authentication.caller(credential: "x", override: override).role == nil)
      } else {
        #expect(throws: RealtimeError.permissionDenied) {
          try authentication.caller(credential: "x", override: override)
        }
      }
    }
  }

  @Test("A path with an encoded slash is invalid, even with a secret")
  func encodedSlash() async throws {
    try await serve { server in
      for path in ["/a%2Fb", "/a%2fb", "/%2Fa"] {
        let answer = try await server.rest("GET", "\(path).json?ns=demo&auth=\(Self.secret)")
        #expect(answer.status == 400, "\(path): \(answer.body)")
      }
    }
  }
}
