// The response of an identity provider (IdP), which a client forwards: an ID token, an access token, or a SAML
// assertion. An emulator accepts invented tokens: unsigned JSON Web Tokens, and strict JSON objects.

import Identity
import JSON

/// The user and the tokens in a response of an identity provider.
struct ProviderResponse: Sendable {
  var providerID: String
  var rawID: String
  var email: String?
  var isEmailVerified = false
  var displayName: String?
  var photoURL: String?
  var firstName: String?
  var lastName: String?
  var screenName: String?
  var oauthIDToken: String?
  var oauthAccessToken: String
  var rawUserInfo: String
  /// The attributes of a SAML assertion.
  var signInAttributes: JSONValue?

  /// Creates a response from the provider's claims and tokens.
  init(
    provider: String, _ claims: JSONObject, saml: SAMLResponse?, idToken: String?, accessToken: String?
  ) throws(IdentityError) {
    guard let subject = claims["sub"]?.string, !subject.isEmpty else {
      throw .rejected(
        "INVALID_IDP_RESPONSE", "((The claims of the id_token need a non-empty string member 'sub'.))")
    }
    providerID = provider
    rawID = saml?.nameID ?? subject
    let address = saml?.email ?? claims["email"]?.string
    if let address, !address.isEmpty {
      guard EmailAddress.isValid(address) else { throw .rejected("INVALID_EMAIL") }
      email = EmailAddress.canonical(address)
    }
    let verified = claims["email_verified"]
    isEmailVerified = verified?.bool ?? (verified?.string == "true")
    // The address in a SAML assertion counts as verified.
    if saml != nil { isEmailVerified = email != nil }
    displayName = claims["name"]?.string
    photoURL = claims["picture"]?.string
    firstName = claims["given_name"]?.string
    lastName = claims["family_name"]?.string
    screenName = claims["screen_name"]?.string
    oauthIDToken = idToken
    oauthAccessToken = accessToken ?? "FirebaseAuthEmulatorFakeAccessToken_\(provider)"
    signInAttributes = saml?.attributes
    rawUserInfo = ""
    rawUserInfo = Self.rawUserInfo(provider, claims, rawID, email, isEmailVerified)
  }

  private static func rawUserInfo(
    _ provider: String, _ claims: JSONObject, _ rawID: String, _ email: String?, _ isVerified: Bool
  ) -> String {
    var info = claims
    if provider == "google.com" {
      info = [
        "granted_scopes": .string(
          "openid https://www.googleapis.com/auth/userinfo.profile "
            + "https://www.googleapis.com/auth/userinfo.email"),
        "id": .string(rawID), "locale": .string("en"),
      ]
      for name in ["name", "given_name", "family_name", "picture"] { info.set(name, claims[name]?.string) }
      info["verified_email"] = .bool(isVerified)
      info.set("email", email)
    }
    return String(decoding: JSONValue.object(info).json(), as: UTF8.self)
  }

  /// The linked provider as the account stores it.
  var provider: Account.Provider {
    var provider = Account.Provider(id: providerID, rawID: rawID)
    provider.federatedID = rawID
    provider.displayName = displayName
    provider.photoURL = photoURL
    provider.email = email
    provider.screenName = screenName
    return provider
  }

  /// The members of the response that describe the provider's user.
  var json: JSONObject {
    var object: JSONObject = [
      "kind": .string("identitytoolkit#VerifyAssertionResponse"), "context": .string(""),
      "providerId": .string(providerID),
      "federatedId": .string(providerID == "google.com" ? "https://accounts.google.com/\(rawID)" : rawID),
      "oauthAccessToken": .string(oauthAccessToken), "rawUserInfo": .string(rawUserInfo),
    ]
    object.set("oauthIdToken", oauthIDToken)
    object.set("email", email)
    if email != nil { object["emailVerified"] = .bool(isEmailVerified) }
    object.set("displayName", displayName)
    object.set("fullName", displayName)
    object.set("firstName", firstName)
    object.set("lastName", lastName)
    object.set("photoUrl", photoURL)
    object.set("screenName", screenName)
    return object
  }
}

/// The part of a SAML response that a sign-in uses.
struct SAMLResponse: Sendable {
  var nameID: String
  var attributes: JSONValue?

  /// The e-mail address: the name ID, if that is an address.
  var email: String? { EmailAddress.isValid(nameID) ? nameID : nil }

  /// Reads the JSON form that an emulator accepts.
  init(json text: String) throws(IdentityError) {
    guard let response = (try? JSONValue(json: text, limits: JSONLimits(depth: 32)))?.object else {
      throw .rejected("INVALID_IDP_RESPONSE", "((SAMLResponse must be strict JSON in the emulator.))")
    }
    guard let assertion = response["assertion"]?.object else {
      throw .rejected("INVALID_IDP_RESPONSE", "((Missing assertion in SAMLResponse.))")
    }
    guard let name = assertion["subject"]?["nameId"]?.string, !name.isEmpty else {
      throw .rejected("INVALID_IDP_RESPONSE", "((Missing assertion.subject.nameId in SAMLResponse.))")
    }
    nameID = name
    attributes = assertion["attributeStatements"]
  }
}
