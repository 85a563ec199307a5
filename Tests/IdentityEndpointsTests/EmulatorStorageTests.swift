// Tests that an emulator's accounts survive restarts, exports and imports.

import Foundation
import HearthServer
import JSON
import Testing

@Suite("Storage of the Auth emulator", .serialized)
struct EmulatorStorageTests {
  private static let toolkit = "/identitytoolkit.googleapis.com/v1"
  private static let user: JSONObject = [
    "email": .string("ada@example.com"), "password": .string("opensesame"),
  ]

  private static func signUp(_ server: AuthTestServer, tenant: String? = nil) async throws -> AuthReply {
    var body = user
    if let tenant { body["tenantId"] = .string(tenant) }
    return try await server.client.post(toolkit + "/accounts:signUp", body)
  }

  @Test("Accounts and sessions survive a restart of a server with a data directory")
  func restart() async throws {
    let directory = AuthTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let before = try await AuthTestServer.with(.directory(directory)) { try await Self.signUp($0) }
    try await AuthTestServer.with(.directory(directory)) { server in
      let signIn = try await server.client.post(Self.toolkit + "/accounts:signInWithPassword", Self.user)
      #expect(signIn["localId"] == before["localId"])
      let refresh = try await server.client.post(
        "/securetoken.googleapis.com/v1/token",
        ["grant_type": .string("refresh_token"), "refresh_token": before["refreshToken"] ?? .null])
      #expect(refresh["user_id"] == before["localId"])
    }
  }

  @Test("An export contains accounts, tenants and settings, and its import restores them")
  func exports() async throws {
    let directory = AuthTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let before = try await AuthTestServer.with(.ephemeral, { $0.exportOnExit = directory }) { server in
      _ = try await server.client.send(
        "PATCH", "/emulator/v1/projects/\(AuthTestServer.project)/config",
        body: Array(#"{"emailPrivacyConfig":{"enableImprovedEmailPrivacy":true}}"#.utf8))
      _ = try await Self.signUp(server, tenant: "shop")
      return try await Self.signUp(server)
    }
    let bytes = try Data(contentsOf: URL(fileURLWithPath: directory + "/auth_export/accounts.json"))
    let accounts = try JSONValue(json: Array(bytes))
    #expect(accounts["users"]?.array?.map { $0["localId"] } == [before["localId"]])
    try await AuthTestServer.with(.ephemeral, { $0.importedDirectory = directory }) { server in
      let signIn = try await server.client.post(Self.toolkit + "/accounts:signInWithPassword", Self.user)
      #expect(signIn["localId"] == before["localId"])
      var tenant = Self.user
      tenant["tenantId"] = .string("shop")
      let other = try await server.client.post(Self.toolkit + "/accounts:signInWithPassword", tenant)
      #expect(other.status == 200 && other["localId"] != before["localId"])
      let wrong = try await server.client.post(
        Self.toolkit + "/accounts:signInWithPassword",
        ["email": .string("no@example.com"), "password": .string("opensesame")])
      #expect(wrong.error == "INVALID_LOGIN_CREDENTIALS", "the settings are imported")
    }
  }

  @Test("A web page of another machine can sign up users, but cannot manage accounts")
  func foreignPages() async throws {
    try await AuthTestServer.with { server in
      let page = ("origin", "https://evil.example")
      let signUp = try await server.client.post(Self.toolkit + "/accounts:signUp", [:], headers: [page])
      #expect(signUp.status == 200)
      let path = Self.toolkit + "/projects/\(AuthTestServer.project)/accounts:batchGet"
      let owner = ("authorization", "Bearer owner")
      #expect(try await server.client.send("GET", path, headers: [page, owner]).status == 403)
      #expect(try await server.client.send("GET", path, headers: [owner]).status == 200)
      let accounts = "/emulator/v1/projects/\(AuthTestServer.project)/accounts"
      #expect(try await server.client.send("DELETE", accounts, headers: [page]).status == 403)
      #expect(try await server.client.send("DELETE", accounts).status == 200)
    }
  }

  @Test("The hub announces the auth emulator")
  func hub() async throws {
    try await AuthTestServer.with(.ephemeral, { $0.hub = .init(port: 0) }) { server in
      let hub = AuthClient(port: server.server.hubPort ?? 0)
      let emulators = try await hub.send("GET", "/emulators")
      #expect(emulators["auth"]?["port"]?.int == Int64(server.client.port))
    }
  }
}
