// A complete production server in this process with a data directory, for one test.

import CryptoExtras
import Foundation
import HearthServer
import Identity
import JSON
import Logging
import Testing

struct ProductionServer: Sendable {
  static let project = "demo-prod"

  let server: HearthServer
  let directory: String

  var auth: AuthClient { AuthClient(port: server.authPort ?? 0) }
  var firestore: AuthClient { AuthClient(port: server.firestorePort ?? 0) }
  var database: AuthClient { AuthClient(port: server.databasePort ?? 0) }
  var credentials: Credentials { Credentials(directory: directory) }
  var tokenURI: String { "http://127.0.0.1:\(server.authPort ?? 0)/token" }

  /// Starts a server.
  /// - Parameter authConfig: the contents of the file that the option `--auth-config` names; nil for none.
  static func start(_ directory: String, authConfig: String? = nil) async throws -> ProductionServer {
    var configuration = try configuration(directory, authConfig: authConfig)
    configuration.project = project
    configuration.firestore.port = 0
    configuration.database = .init(port: 0)
    configuration.auth = .init(port: 0)
    configuration.logLevel = .error
    let server = HearthServer(configuration)
    try await server.start()
    return ProductionServer(server: server, directory: directory)
  }

  /// The configuration of a server with a file that the option `--auth-config` names.
  static func configuration(_ directory: String, authConfig: String?) throws -> HearthConfiguration {
    var flags = ServeFlags()
    flags.data = directory
    flags.authConfig = authConfig == nil ? nil : "auth.json"
    return try .resolve(flags, environment: [:]) { path in
      path == "auth.json" ? authConfig.map { Array($0.utf8) } : nil
    }
  }

  /// Runs a test against a new server, and removes its directory.
  static func with(
    authConfig: String? = nil, _ body: (ProductionServer) async throws -> Void
  ) async throws {
    let directory = AuthTestServer.temporaryDirectory()
    let server = try await start(directory, authConfig: authConfig)
    let result: Result<Void, any Error>
    do { result = .success(try await body(server)) } catch { result = .failure(error) }
    await server.server.stop()
    try? FileManager.default.removeItem(atPath: directory)
    try result.get()
  }

  /// Creates a service account while the server runs.
  func account(_ name: String, _ role: Credentials.Role = .administrator) async throws -> ServiceAccountFile {
    let bytes = try await credentials.create(
      name: name, project: Self.project, role: role, tokenURI: tokenURI)
    return try ServiceAccountFile(bytes)
  }

  /// Exchanges a service account's assertion for an access token.
  func accessToken(_ account: ServiceAccountFile) async throws -> String {
    let assertion = try account.sign([
      "aud": .string(tokenURI), "scope": .string("https://www.googleapis.com/auth/cloud-platform"),
    ])
    let body = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + assertion
    let reply = try await auth.send(
      "POST", "/token", headers: [("content-type", "application/x-www-form-urlencoded")],
      body: Array(body.utf8))
    #expect(reply.status == 200, "\(String(decoding: reply.body, as: UTF8.self))")
    #expect(reply["token_type"]?.string == "Bearer" && reply["expires_in"]?.int == 3600)
    return try #require(reply["access_token"]?.string)
  }
}

/// A change of an account that ends its sessions.
enum AccountChange: String, CaseIterable {
  case disabled, deleted, revoked
}

extension ProductionServer {
  private static let accounts = "/identitytoolkit.googleapis.com/v1/projects/\(project)/accounts"

  /// Creates an anonymous account.
  func signUp() async throws -> (id: String, token: String) {
    let reply = try await auth.post("/identitytoolkit.googleapis.com/v1/accounts:signUp", [:])
    return (try #require(reply["localId"]?.string), try #require(reply["idToken"]?.string))
  }

  /// Ends the sessions of an account.
  /// - Parameter admin: an access token of an administrator.
  func endSessions(of localID: String, by change: AccountChange, admin: String) async throws {
    let body =
      switch change {
      case .disabled: #"{"localId":"\#(localID)","disableUser":true}"#
      // The token was issued in this second.
      case .revoked: #"{"localId":"\#(localID)","validSince":"\#(Int64(Date().timeIntervalSince1970) + 1)"}"#
      case .deleted: #"{"localId":"\#(localID)"}"#
      }
    let reply = try await auth.send(
      "POST", Self.accounts + (change == .deleted ? ":delete" : ":update"), headers: bearer(admin),
      body: Array(body.utf8))
    #expect(reply.status == 200, "\(reply.error ?? "")")
  }
}

/// A service-account file that signs tokens, as Google's libraries do.
struct ServiceAccountFile: Sendable {
  let email: String
  let keyID: String
  private let pem: String

  init(_ bytes: [UInt8]) throws {
    let json = try JSONValue(json: bytes)
    #expect(json["type"]?.string == "service_account")
    email = try #require(json["client_email"]?.string)
    keyID = try #require(json["private_key_id"]?.string)
    pem = try #require(json["private_key"]?.string)
  }

  func sign(_ claims: JSONObject) throws -> String {
    let now = Int64(Date().timeIntervalSince1970)
    var all: JSONObject = [
      "iss": .string(email), "sub": .string(email), "iat": .int(now), "exp": .int(now + 3600),
    ]
    for member in claims.members { all[member.key] = member.value }
    let key = try _RSA.Signing.PrivateKey(pemRepresentation: pem)
    let text = JSONWebToken.encode(
      ["alg": .string("RS256"), "kid": .string(keyID), "typ": .string("JWT")], all)
    let signature = try key.signature(for: Array(text.utf8), padding: .insecurePKCS1v1_5)
    return text + "." + Base64.encode(Array(signature.rawRepresentation), .urlSafe, padded: false)
  }
}

/// The headers of a JSON request with a bearer token.
func bearer(_ token: String) -> [(String, String)] {
  [("authorization", "Bearer " + token), ("content-type", "application/json")]
}
