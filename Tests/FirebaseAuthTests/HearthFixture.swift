// The Hearth fixture: a server in emulator mode, its administrator, and its clients.

import FirebaseCore
import Foundation
import HearthServer
import Testing

@testable import FirebaseAuth

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A server for one test.
final class HearthFixture: Sendable {
  let server: HearthServer
  let port: Int
  let project: String

  private init(server: HearthServer, port: Int, project: String) {
    self.server = server
    self.port = port
    self.project = project
  }

  /// Runs a test with a server.
  static func run(_ body: (HearthFixture) async throws -> Void) async throws {
    var configuration = HearthConfiguration.forTesting()
    configuration.auth = .init(port: 0)
    let server = HearthServer(configuration)
    try await server.start()
    let port = try #require(server.authPort)
    do {
      try await body(HearthFixture(server: server, port: port, project: configuration.project))
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  /// Makes an app with a name, and returns its `Auth`.
  func client(_ name: String = "client-\(UUID().uuidString)") throws -> Auth {
    let auth = Auth.auth(app: try makeApp(name: name, project: project))
    auth.useEmulator(withHost: "127.0.0.1", port: port)
    return auth
  }

  // MARK: The administrator

  /// Sends a request as an administrator. The path follows the host.
  @discardableResult
  func admin(_ method: String, _ path: String, _ body: [String: Any]? = nil) async throws -> [String: Any] {
    var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(port)/\(path)")))
    request.httpMethod = method
    request.setValue("Bearer owner", forHTTPHeaderField: "Authorization")
    if let body {
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
      request.httpBody = try JSONSerialization.data(withJSONObject: body)
    }
    let response = try await HTTPClient.shared.send(request)
    try #require(response.status == 200, "\(path): \(String(decoding: response.body, as: UTF8.self))")
    return try #require(try JSONSerialization.jsonObject(with: response.body) as? [String: Any])
  }

  /// Changes an account.
  func update(_ uid: String, _ changes: [String: Any]) async throws {
    try await admin(
      "POST", "identitytoolkit.googleapis.com/v1/projects/\(project)/accounts:update",
      changes.merging(["localId": uid]) { $1 })
  }

  /// The latest unused action code for an address, with its link.
  func actionCode(for email: String, _ type: String) async throws -> (code: String, link: String) {
    let list = try await admin("GET", "emulator/v1/projects/\(project)/oobCodes")
    let codes = try #require(list["oobCodes"] as? [[String: Any]])
    let found = try #require(
      codes.last { $0["email"] as? String == email && $0["requestType"] as? String == type })
    return (try #require(found["oobCode"] as? String), try #require(found["oobLink"] as? String))
  }

  /// The latest verification code for a phone number.
  func verificationCode(for number: String) async throws -> String {
    let list = try await admin("GET", "emulator/v1/projects/\(project)/verificationCodes")
    let codes = try #require(list["verificationCodes"] as? [[String: Any]])
    return try #require(codes.last { $0["phoneNumber"] as? String == number }?["code"] as? String)
  }
}

/// An ID token of a Google account, in the form that emulators accept.
func googleToken(_ subject: String, email: String, isVerified: Bool = true) -> String {
  #"{"sub":"\#(subject)","email":"\#(email)","email_verified":\#(isVerified),"name":"Lea"}"#
}
