// Issues and reads the tokens of users. The emulator's tokens are unsigned; a production server signs them.

package import JSON

/// Issues and reads ID tokens, session cookies and custom tokens.
package protocol TokenAuthority: Sendable {
  /// Encodes the claims of an ID token or session cookie.
  func encode(_ claims: JSONObject) async throws -> String
  /// Reads an ID token of a project.
  /// - Throws: `INVALID_ID_TOKEN` or `TOKEN_EXPIRED`.
  func readIDToken(_ text: String, project: String) async throws -> IDToken
  /// Reads a custom token, and returns its claims.
  /// - Throws: `INVALID_CUSTOM_TOKEN`.
  func readCustomToken(_ text: String, project: String) async throws -> JSONObject
  /// The keys with which others can verify the tokens; empty for unsigned tokens.
  var publishedKeys: [SigningKey] { get }
  /// Authenticates an `authorization` header's bearer token as an administrator of a project.
  /// - Throws: UNAUTHENTICATED or PERMISSION_DENIED.
  func authenticateAdministrator(bearer token: String, project: String?) async throws
}

/// The tokens of an emulator: unsigned, and accepted without verification.
package struct EmulatorTokenAuthority: TokenAuthority {
  /// The audience of custom tokens.
  package static let customTokenAudience =
    "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"

  /// Creates the authority of an emulator.
  package init() {}

  package var publishedKeys: [SigningKey] { [] }

  package func encode(_ claims: JSONObject) async throws -> String { JSONWebToken.unsigned(claims) }

  package func readIDToken(_ text: String, project: String) async throws -> IDToken {
    guard let token = JSONWebToken(text), let contents = IDToken(token.claims) else {
      throw IdentityError.rejected("INVALID_ID_TOKEN")
    }
    return contents
  }

  package func readCustomToken(_ text: String, project: String) async throws -> JSONObject {
    if text.hasPrefix("{") {
      guard let claims = (try? JSONValue(json: text, limits: JSONLimits(depth: 32)))?.object else {
        throw IdentityError.rejected(
          "INVALID_CUSTOM_TOKEN",
          "((Auth Emulator only accepts strict JSON or JWTs as fake custom tokens.))")
      }
      return claims
    }
    guard let token = JSONWebToken(text) else {
      throw IdentityError.rejected("INVALID_CUSTOM_TOKEN", "Invalid assertion format")
    }
    guard token.claims["aud"]?.string == Self.customTokenAudience else {
      throw IdentityError.rejected(
        "INVALID_CUSTOM_TOKEN", "((Invalid aud (audience): must be \(Self.customTokenAudience).))")
    }
    return token.claims
  }

  package func authenticateAdministrator(bearer token: String, project: String?) async throws {
    guard token.lowercased() == "owner" || token.hasPrefix("ya29.") else {
      throw IdentityError.invalidCredentials
    }
  }
}

extension IdentityError {
  /// A bearer token that the server does not accept.
  package static let invalidCredentials = IdentityError(
    401, "UNAUTHENTICATED",
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
      + "authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.",
    reason: "authError", location: "Authorization", detail: "Invalid Credentials")
}
