// OAuth credentials: tokens that an identity provider issued to the app.

public import Foundation

/// A credential with the tokens of an identity provider.
open class OAuthCredential: AuthCredential, NSSecureCoding, @unchecked Sendable {
  // SAFETY: all properties are constants.
  /// The values of a credential.
  struct Values: Codable, Equatable, Sendable {
    var provider: String
    var idToken: String?
    var accessToken: String?
    var secret: String?
    var rawNonce: String?
    /// A token from an earlier exchange. It replaces the provider's tokens.
    var pendingToken: String?
    /// The user's name, which Sign in with Apple sends only at the first sign-in.
    var fullName: PersonNameComponents?
  }

  /// The provider's ID token.
  public let idToken: String?
  /// The provider's access token.
  public let accessToken: String?
  /// The secret of an OAuth 1 access token.
  public let secret: String?
  let values: Values

  init(_ values: Values) {
    self.values = values
    idToken = values.idToken
    accessToken = values.accessToken
    secret = values.secret
    super.init(provider: values.provider)
  }

  /// Reads the provider's tokens from a response; nil if the response has none.
  convenience init?(_ response: SignInResponse) {
    guard let provider = response.providerId else { return nil }
    let values = Values(
      provider: provider, idToken: response.oauthIdToken, accessToken: response.oauthAccessToken,
      secret: response.oauthTokenSecret, pendingToken: response.pendingToken)
    guard values.idToken != nil || values.accessToken != nil || values.pendingToken != nil else { return nil }
    self.init(values)
  }

  override func exchange(_ use: CredentialUse, _ backend: AuthBackend) async throws -> SignInResponse {
    var request = ProviderSignInRequest(postBody: try form())
    request.pendingToken = values.pendingToken
    request.idToken = use.idToken
    if use.isReauthentication { request.autoCreate = false }
    let response = try await backend.call(request)
    // The status is 200 although the response contains an error. It also contains a credential with which the
    // user may sign in instead.
    if let message = response.errorMessage {
      throw ServerErrorNames.error(for: message, details: alternatives(response))
        ?? AuthInternalError.unexpectedResponse.error(response: message)
    }
    if response.needConfirmation ?? false {
      throw AuthErrorCode.accountExistsWithDifferentCredential.error(details: alternatives(response))
    }
    return response
  }

  /// The entries of `userInfo` with which the app can continue: the e-mail address and a credential.
  private func alternatives(_ response: SignInResponse) -> [String: Any] {
    var details: [String: Any] = [:]
    details[AuthErrorUserInfoUpdatedCredentialKey] = OAuthCredential(response) ?? self
    if let email = response.email { details[AuthErrorUserInfoEmailKey] = email }
    return details
  }

  /// The tokens in form encoding.
  private func form() throws -> String {
    var items = [URLQueryItem(name: "providerId", value: values.provider)]
    let members = [
      ("id_token", values.idToken), ("access_token", values.accessToken),
      ("oauth_token_secret", values.secret),
      ("nonce", values.rawNonce),
    ]
    for case (let name, let value?) in members { items.append(URLQueryItem(name: name, value: value)) }
    if let name = values.fullName {
      let names = [("firstName", name.givenName), ("lastName", name.familyName)].compactMap { key, value in
        value.map { (key, $0) }
      }
      let user = ["name": Dictionary(uniqueKeysWithValues: names)]
      items.append(
        URLQueryItem(name: "user", value: String(decoding: try JSONEncoder().encode(user), as: UTF8.self)))
    }
    var components = URLComponents()
    components.queryItems = items
    // A plus sign means a space in form encoding.
    return (components.percentEncodedQuery ?? "").replacingOccurrences(of: "+", with: "%2B")
  }

  /// Always true.
  public static var supportsSecureCoding: Bool { true }

  /// Encodes the tokens.
  public func encode(with coder: NSCoder) {
    coder.encodeValue(values)
  }

  /// Decodes the tokens; nil for an archive of another type.
  public required convenience init?(coder: NSCoder) {
    guard let values = coder.decodeValue(Values.self) else { return nil }
    self.init(values)
  }
}
