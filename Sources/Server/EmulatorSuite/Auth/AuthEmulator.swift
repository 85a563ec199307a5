// Serves the Auth emulator's own paths: its settings, the lists of codes that it would send, and the links in its e-mails.
// They need no credentials, so only a server that runs as an emulator registers this handler.

import Identity
package import IdentityEndpoints
import JSON
import NIOCore
import NIOHTTP1
package import Ports

/// Serves the emulator's paths on the auth port.
package struct AuthEmulator: IdentityRouteHandler {
  /// Creates the handler.
  package init() {}

  package func response(to request: HTTPRequest, _ service: IdentityService) async throws -> HTTPResponse? {
    let segments = request.target.segments ?? []
    switch (request.head.method, segments) {
    case (.GET, []): return .identity(Self.status)
    case (.GET, ["emulator", "openapi.json"]): return .identity(Self.description)
    case (.GET, ["emulator", "action"]): return try await ActionLink(request, service).response()
    case (.GET, ["emulator", "auth", "handler"]), (.GET, ["emulator", "auth", "iframe"]):
      return ProviderPage.response
    default: break
    }
    guard segments.count > 4, segments.starts(with: ["emulator", "v1", "projects"]) else { return nil }
    var rest = Array(segments[4...])
    var tenant: String?
    if rest.count == 3, rest[0] == "tenants" {
      tenant = rest[1]
      rest.removeFirst(2)
    }
    guard rest.count == 1 else { return nil }
    return try await resource(
      rest[0], request, try await call(request, service, project: segments[3], tenant: tenant))
  }

  private func call(
    _ request: HTTPRequest, _ service: IdentityService, project: String, tenant: String?
  ) async throws -> IdentityCall {
    let body = try RequestBody(configuration: request.head.method == .PATCH ? request.body : nil)
    return try await service.makeCall(
      request, project: project, tenant: tenant, isPrivileged: true, body: body)
  }

  private func resource(
    _ name: String, _ request: HTTPRequest, _ call: IdentityCall
  ) async throws -> HTTPResponse? {
    switch (request.head.method, name) {
    case (.DELETE, "accounts"):
      try await call.write { try $0.removeAllAccounts(in: call.tenantID) }
      return .identity([:])
    case (.GET, "config"): return .identity(Self.configuration(call.project))
    case (.PATCH, "config"):
      let settings = try await call.write { transaction in
        var settings = try transaction.reader.projectSettings()
        if let isAllowed = call.body.object("signIn")?["allowDuplicateEmails"]?.bool {
          settings.allowsDuplicateEmails = isAllowed
        }
        if let isHidden = call.body.object("emailPrivacyConfig")?["enableImprovedEmailPrivacy"]?.bool {
          settings.hidesAccounts = isHidden
        }
        try transaction.put(settings)
        return settings
      }
      return .identity(Self.configuration(settings))
    case (.GET, "oobCodes"):
      let codes = try await call.read { try $0.codes(in: call.tenantID) }
      return .identity(["oobCodes": .array(codes.map { .object(Self.json($0)) })])
    case (.GET, "verificationCodes"):
      let sessions = try await call.read { try $0.phoneSessions(in: call.tenantID) }
      let list = sessions.map { session in
        JSONValue.object([
          "phoneNumber": .string(session.phoneNumber), "code": .string(session.code),
          "sessionInfo": .string(session.session),
        ])
      }
      return .identity(["verificationCodes": .array(list)])
    default: return nil
    }
  }

  static func configuration(_ settings: ProjectSettings) -> JSONObject {
    [
      "signIn": .object(["allowDuplicateEmails": .bool(settings.allowsDuplicateEmails)]),
      "emailPrivacyConfig": .object([
        "enableImprovedEmailPrivacy": .bool(settings.hidesAccounts ?? false)
      ]),
    ]
  }

  private static func json(_ code: OutOfBandCode) -> JSONObject {
    var object: JSONObject = [
      "email": .string(code.email), "requestType": .string(code.purpose.rawValue),
      "oobCode": .string(code.code), "oobLink": .string(code.link),
    ]
    object.set("newEmail", code.newEmail)
    return object
  }

  private static let status: JSONObject = [
    "authEmulator": .object([
      "ready": .bool(true), "docs": .string("https://firebase.google.com/docs/emulator-suite"),
      "apiSpec": .string("/emulator/openapi.json"),
    ])
  ]

  private static let description: JSONObject = [
    "openapi": .string("3.0.0"),
    "info": .object([
      "title": .string("Identity Toolkit and secure token APIs"), "version": .string("v1"),
      "description": .string(
        "The paths of the hosted product's APIs, with the host name as the first segment, and the emulator's own paths."
      ),
    ]),
    "paths": .object([:]),
  ]
}
