// Plays the recorded requests of the auth port, and compares the responses with the recorded ones. Each case has a new
// server.

import Foundation
import JSON
import Testing

@Suite("Auth conformance cases", .serialized)
struct AuthConformanceTests {
  static let folder = ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"]

  private static let groups = [
    "transport", "v3-names", "errors", "sign-up", "admin-sign-up", "password", "custom-token", "lookup",
    "update", "delete", "refresh", "session-cookie", "token-form", "oob", "reset-password", "action-links",
    "email-link", "phone", "idp", "create-auth-uri", "batch", "hashes", "tenants", "mfa", "totp",
    "passkeys", "blocking", "emulator-routes", "project-config",
  ]

  private static func cases() throws -> [JSONValue] {
    guard let folder else { return [] }
    let data = try Data(contentsOf: URL(fileURLWithPath: folder + "/auth-requests/cases.json"))
    return try JSONValue(json: Array(data))["cases"]?.array ?? []
  }

  @Test(
    "Every case of a group gets the recorded responses",
    .enabled(if: folder != nil, "HEARTH_CONFORMANCE names no folder with the vectors"), arguments: groups)
  func group(_ group: String) async throws {
    let cases = try Self.cases().filter { $0["group"]?.string == group }
    #expect(!cases.isEmpty)
    for item in cases {
      let id = item["id"]?.string ?? ""
      let usesReceiver = item["requires"]?.array?.contains(.string("receiver")) == true
      let receiver = usesReceiver ? try await HTTPReceiver.start() : nil
      do {
        try await AuthTestServer.with { server in
          var player = CasePlayer(server, receiver)
          try await player.play(item["steps"]?.array ?? [])
        }
      } catch {
        Issue.record("\(id): \(error)")
      }
      await receiver?.stop()
    }
  }

  @Test(
    "The tests play every group of the recorded cases",
    .enabled(if: folder != nil, "HEARTH_CONFORMANCE names no folder with the vectors"))
  func everyGroup() throws {
    let groups = Set(try Self.cases().compactMap { $0["group"]?.string })
    #expect(groups == Set(Self.groups))
  }
}
