// Tests the small endpoints that SDKs read when they start, and requests to paths and methods that do not exist.

import JSON
import Testing

@Suite("Small endpoints of the auth port")
struct StartupEndpointTests {
  private static let version2 = "/identitytoolkit.googleapis.com/v2"

  @Test("Password policy and reCAPTCHA settings enforce nothing")
  func settings() async throws {
    try await AuthTestServer.with { server in
      let policy = try await server.client.send("GET", Self.version2 + "/passwordPolicy?key=k")
      #expect(policy["enforcementState"]?.string == "OFF" && policy["schemaVersion"]?.int == 1)
      #expect(policy["customStrengthOptions"]?["minPasswordLength"]?.int == 6)
      let recaptcha = try await server.client.send("GET", Self.version2 + "/recaptchaConfig?key=k")
      #expect(recaptcha.status == 200 && recaptcha.json == .object([:]))
      let project = try await server.client.send(
        "GET", "/www.googleapis.com/identitytoolkit/v3/relyingparty/getProjectConfig?key=k")
      #expect(project["authorizedDomains"]?.array?.contains(.string("127.0.0.1")) == true)
    }
  }

  @Test("Unknown paths are 404, other methods 405, and missing features 501, all as JSON")
  func errors() async throws {
    try await AuthTestServer.with { server in
      let unknown = try await server.client.send(
        "POST", "/identitytoolkit.googleapis.com/v1/accounts:fly?key=k", body: [])
      #expect(unknown.status == 404 && unknown["error"]?["status"]?.string == "NOT_FOUND")
      let method = try await server.client.send(
        "GET", "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=k")
      #expect(method.status == 405 && method["message"] != nil && method["error"] == nil)
      for path in ["oauthIdpConfigs", "inboundSamlConfigs", "defaultSupportedIdpConfigs"] {
        let reply = try await server.client.administer(Self.version2 + "/projects/p/" + path, [:])
        #expect(reply.status == 501 && reply["error"]?["status"]?.string == "NOT_IMPLEMENTED")
      }
    }
  }

  @Test(
    "Malformed bodies get an error of the API, never a failure of the server",
    arguments: [
      "", "null", "[]", "1", #""x""#, "{", #"{"email":"#, #"{"email":1e400}"#, #"{"idToken":{"a":[]}}"#,
      #"{"users":[1]}"#, #"{"users":[{"localId":["x"]}]}"#, #"{"mfa":{"enrollments":[{}]}}"#,
      #"{"localIds":"x"}"#, "\u{FEFF}{}", #"{"email":"\ud800"}"#, String(repeating: "[", count: 5000),
      #"{"postBody":"%zz","requestUri":"http://h"}"#, #"{"rounds":1.5}"#,
      #"{"validDuration":"99999999999999999999"}"#,
    ])
  func malformed(_ body: String) async throws {
    try await AuthTestServer.with { server in
      for path in [
        "accounts:signUp", "accounts:signInWithPassword", "accounts:signInWithIdp", "accounts:update",
        "accounts:lookup", "accounts:signInWithCustomToken", "accounts:signInWithPhoneNumber",
        "projects/p/accounts:batchCreate", "projects/p/accounts:batchDelete",
        "projects/p:createSessionCookie",
      ] {
        let reply = try await server.client.send(
          "POST", "/identitytoolkit.googleapis.com/v1/" + path,
          headers: [("authorization", "Bearer owner"), ("content-type", "application/json")],
          body: Array(body.utf8))
        #expect(reply.status < 500 || reply.status == 501, "\(path) \(reply.status)")
      }
    }
  }
}
