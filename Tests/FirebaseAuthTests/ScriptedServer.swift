// The scripted server accepts every sign-in as one user. It is a `CannedServer`, whose responses the test defines. A
// test can override its responses by operation.

import FirebaseCore
import Foundation
import Locking
import Testing

@testable import FirebaseAuth

/// A server that signs in the user `u1`, and an `Auth` that uses it.
final class ScriptedServer: Sendable {
  let server: CannedServer
  let app: FirebaseApp
  let auth: Auth
  let clock = ManualClock()
  private let overrides: Guarded<[String: CannedServer.Responder]>

  private init(
    server: CannedServer, app: FirebaseApp, auth: Auth, overrides: Guarded<[String: CannedServer.Responder]>
  ) {
    self.server = server
    self.app = app
    self.auth = auth
    self.overrides = overrides
  }

  /// Starts the server and makes an app. If a clock is given, the test uses a separate `Auth` with that
  /// clock.
  static func start(clock: ManualClock? = nil) async throws -> ScriptedServer {
    let overrides = Guarded<[String: CannedServer.Responder]>([:])
    let tokens = Guarded(0)
    let server = try await CannedServer.start { request in
      if let responder = overrides.withLock({ $0[request.operation] }) { return await responder(request) }
      let number = tokens.withLock { tokens in
        tokens += 1
        return tokens
      }
      return (try? defaultResponse(request, number, clock?.now ?? Date())) ?? .error("INTERNAL", status: 500)
    }
    let app = try makeApp()
    let auth =
      if let clock {
        Auth(app: app, apiKey: "key", store: userStore(for: app), clock: clock.clock)
      } else {
        Auth.auth(app: app)
      }
    auth.useEmulator(withHost: "127.0.0.1", port: server.port)
    return ScriptedServer(server: server, app: app, auth: auth, overrides: overrides)
  }

  private static func defaultResponse(
    _ request: ReceivedRequest, _ number: Int, _ now: Date
  ) throws -> CannedResponse {
    let token = try makeToken("u1", issued: now, claims: ["number": number])
    switch request.operation {
    case "accounts:lookup":
      return .ok(#"{"users":[{"localId":"u1","createdAt":"1700000000000","lastLoginAt":"1700000001000"}]}"#)
    case "token":
      return .ok(#"{"id_token":"\#(token)","refresh_token":"r1","expires_in":"3600","user_id":"u1"}"#)
    default:
      return .ok(#"{"localId":"u1","idToken":"\#(token)","refreshToken":"r1","expiresIn":"3600"}"#)
    }
  }

  /// Overrides the response to an operation from now on.
  func setResponse(_ operation: String, _ responder: @escaping CannedServer.Responder) {
    overrides.withLock { $0[operation] = responder }
  }

  /// Overrides the response to an operation with a fixed response from now on.
  func setResponse(_ operation: String, _ response: CannedResponse) {
    setResponse(operation) { _ in response }
  }

  /// Restores the default response to an operation.
  func restore(_ operation: String) {
    overrides.withLock { $0[operation] = nil }
  }

  /// The number of received requests for an operation.
  func requestCount(of operation: String) -> Int {
    server.operations.filter { $0 == operation }.count
  }

  func stop() async {
    _ = await app.delete()
    await server.stop()
  }
}
