// The token endpoint of service accounts (RFC 6749, RFC 7523): exchanges an assertion for an access token. The files of
// service accounts name this endpoint as their `token_uri`.

package import Identity
import JSON
import NIOCore
import NIOHTTP1
package import Ports

/// Serves the token endpoint of service accounts.
package struct ServiceTokenHandler: IdentityRouteHandler {
  /// The path of the endpoint.
  package static let path = "/token"
  private static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"

  private let authority: ProductionTokenAuthority

  /// Creates the handler.
  package init(_ authority: ProductionTokenAuthority) { self.authority = authority }

  package func response(to request: HTTPRequest, _ service: IdentityService) async throws -> HTTPResponse? {
    guard [Self.path, "/oauth2.googleapis.com/token"].contains(request.target.rawPath) else { return nil }
    guard request.head.method == .POST else {
      return Self.failure("invalid_request", "The method must be POST.", .methodNotAllowed)
    }
    var parameters: [String: String] = [:]
    for pair in FormText.decode(String(buffer: request.body)) ?? [] {
      guard parameters.updateValue(pair.value, forKey: pair.name) == nil else {
        return Self.failure("invalid_request", "The parameter \(pair.name.prefix(40)) is repeated.")
      }
    }
    guard parameters["grant_type"] == Self.grantType else {
      return Self.failure("unsupported_grant_type", "The grant type must be \(Self.grantType).")
    }
    guard let assertion = parameters["assertion"], !assertion.isEmpty else {
      return Self.failure("invalid_request", "The assertion is missing.")
    }
    do {
      let (token, seconds) = try await authority.accessToken(assertion: assertion)
      return .identity([
        "access_token": .string(token), "expires_in": .int(seconds), "token_type": .string("Bearer"),
      ])
    } catch let error as IdentityError {
      return Self.failure("invalid_grant", error.message)
    }
  }

  private static func failure(
    _ code: String, _ description: String, _ status: HTTPResponseStatus = .badRequest
  ) -> HTTPResponse {
    .identity(["error": .string(code), "error_description": .string(description)], status)
  }
}
