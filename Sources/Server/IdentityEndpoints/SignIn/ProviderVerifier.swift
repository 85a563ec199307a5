// Reads and verifies the responses of identity providers.

import Identity
package import JSON

/// Verifies the tokens of a provider's response and reads its user.
package protocol ProviderVerifier: Sendable {
  /// Returns the claims of a response. A production server verifies them.
  /// - Parameter provider: the ID of the provider, such as `google.com`.
  func claims(
    provider: String, idToken: String?, accessToken: String?, nonce: String?, project: String, now: Int64
  ) async throws -> JSONObject
}

extension ProviderVerifier {
  /// The user of a provider's response.
  /// - Parameter parameters: the decoded parameters, such as `providerId` and `id_token`.
  func user(of parameters: [String: String], call: IdentityCall) async throws -> ProviderResponse {
    guard let provider = parameters["providerId"]?.lowercased(), !provider.isEmpty else {
      throw IdentityError.rejected(
        "INVALID_CREDENTIAL_OR_PROVIDER_ID", "Invalid IdP response/credential: it has no providerId.")
    }
    let (idToken, accessToken) = (parameters["id_token"], parameters["access_token"])
    guard idToken != nil || accessToken != nil else {
      throw IdentityError.rejected(
        "INVALID_CREDENTIAL_OR_PROVIDER_ID", "Invalid IdP response/credential: it has no token.")
    }
    let claims = try await claims(
      provider: provider, idToken: idToken, accessToken: accessToken, nonce: parameters["nonce"],
      project: call.projectID, now: call.now)
    var saml: SAMLResponse?
    if provider.hasPrefix("saml."), let text = parameters["SAMLResponse"] {
      guard call.isEmulator else {
        throw IdentityError.notImplemented("Sign-in with SAML providers is not implemented.")
      }
      saml = try SAMLResponse(json: text)
    }
    return try ProviderResponse(
      provider: provider, claims, saml: saml, idToken: idToken, accessToken: accessToken)
  }
}

/// The providers of an emulator. Their tokens may be invented, and are not verified.
package struct EmulatorProviders: ProviderVerifier {
  /// Creates the providers of an emulator.
  package init() {}

  package func claims(
    provider: String, idToken: String?, accessToken: String?, nonce: String?, project: String, now: Int64
  ) async throws -> JSONObject {
    if let claims = Self.read(idToken) ?? Self.read(accessToken) { return claims }
    if idToken != nil {
      throw IdentityError.rejected(
        "INVALID_IDP_RESPONSE", "Unable to parse id_token: it is neither a JWT nor strict JSON.")
    }
    if provider == "google.com" || provider == "apple.com" {
      throw IdentityError.notImplemented(
        "The emulator does not exchange access tokens of \(provider). Send an id_token.")
    }
    throw IdentityError.rejected(
      "INVALID_IDP_RESPONSE", "Unable to parse access_token: it is neither a JWT nor strict JSON.")
  }

  private static func read(_ text: String?) -> JSONObject? {
    guard let text else { return nil }
    if text.hasPrefix("{") { return (try? JSONValue(json: text, limits: JSONLimits(depth: 32)))?.object }
    return JSONWebToken(text)?.claims
  }
}
