// An action link is a link in an e-mail of the Auth emulator. Its page applies the code of the link, and redirects to
// the app.

import Identity
import IdentityEndpoints
import JSON
import NIOCore
import NIOHTTP1
import Ports

/// A request for the page of an action link.
struct ActionLink {
  private let request: HTTPRequest
  private let service: IdentityService

  /// The placeholder of `newPassword`, which the developer has to replace.
  private static let placeholder = "NEW_PASSWORD_HERE"

  init(_ request: HTTPRequest, _ service: IdentityService) {
    self.request = request
    self.service = service
  }

  private func parameter(_ name: String) -> String? {
    request.target[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  func response() async throws -> HTTPResponse {
    guard parameter("apiKey") != nil else {
      return Self.rejected("missing apiKey query parameter", "Please modify the URL to specify an apiKey.")
    }
    guard let code = parameter("oobCode") else {
      return Self.rejected("missing oobCode query parameter", "Please modify the URL to specify an oobCode.")
    }
    do {
      switch parameter("mode") {
      case "recoverEmail": return try await recoverEmail(code)
      case "resetPassword": return try await resetPassword(code)
      case "verifyEmail":
        return try await apply(code, "The email has been successfully verified.", isRedirected: true)
      case "verifyAndChangeEmail":
        return try await apply(code, "The email has been successfully changed.", isRedirected: true)
      case "signIn": return signIn()
      default: return Self.rejected("Invalid mode", "The mode of the link is unknown.")
      }
    } catch let error as IdentityError where error.message == "INVALID_OOB_CODE" {
      return Self.rejected(
        "Your request has expired or the link has already been used.",
        "Request a new link. GET /emulator/v1/projects/{project}/oobCodes lists the unused ones.")
    }
  }

  private func recoverEmail(_ code: String) async throws -> HTTPResponse {
    // The app that changed the address may belong to an attacker, so the page never redirects to it.
    try await apply(code, "The email has been successfully reset.", isRedirected: false)
  }

  private func apply(_ code: String, _ success: String, isRedirected: Bool) async throws -> HTTPResponse {
    let result = try await call(["oobCode": .string(code)]).runUpdate()
    return done(success, email: result["email"]?.string, isRedirected: isRedirected)
  }

  private func resetPassword(_ code: String) async throws -> HTTPResponse {
    guard let password = parameter("newPassword"), password != Self.placeholder else {
      let text = "\(service.baseURL(of: request))\(request.head.uri)"
      return .identity(
        [
          "authEmulator": .object([
            "error": .string("missing newPassword query parameter"),
            "urlTemplate": .string(
              text.contains("newPassword=") ? text : text + "&newPassword=" + Self.placeholder),
            "instructions": .string(
              "To reset the password for the user, set the newPassword query parameter of the URL."),
          ])
        ], .badRequest)
    }
    let result = try await call(["oobCode": .string(code), "newPassword": .string(password)])
      .runResetPassword()
    return done(
      "The password has been successfully updated.", email: result["email"]?.string, isRedirected: true)
  }

  private func signIn() -> HTTPResponse {
    guard let target = parameter("continueUrl") else {
      return Self.rejected(
        "Missing continueUrl query parameter",
        "To sign in, append &continueUrl=YOUR_APP_URL to the link.")
    }
    // The app completes the sign-in with the code, so the redirect does not use it.
    let parameters = request.target.parameters.filter { $0.name != "continueUrl" }
    return Self.redirect(to: Self.append(parameters, to: target))
  }

  private func done(_ message: String, email: String?, isRedirected: Bool) -> HTTPResponse {
    if isRedirected, let target = parameter("continueUrl") { return Self.redirect(to: target) }
    var object: JSONObject = ["success": .string(message)]
    object.set("email", email)
    return .identity(["authEmulator": .object(object)])
  }

  private func call(_ body: JSONObject) async throws -> IdentityCall {
    try await service.makeCall(
      request, project: service.services.defaultProject, tenant: parameter("tenantId"), isPrivileged: false,
      body: RequestBody(converted: body))
  }

  /// Appends parameters to the query of a URL, before its fragment.
  private static func append(_ parameters: [(name: String, value: String)], to url: String) -> String {
    let parts = url.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
    let base = String(parts[0])
    let separator = base.contains("?") ? "&" : "?"
    let fragment = parts.count > 1 ? "#" + parts[1] : ""
    return base + separator + FormText.encode(parameters) + fragment
  }

  private static func redirect(to url: String) -> HTTPResponse {
    HTTPResponse(status: .seeOther, headers: ["location": url])
  }

  private static func rejected(_ error: String, _ instructions: String) -> HTTPResponse {
    .identity(
      [
        "authEmulator": .object(["error": .string(error), "instructions": .string(instructions)])
      ], .badRequest)
  }
}
