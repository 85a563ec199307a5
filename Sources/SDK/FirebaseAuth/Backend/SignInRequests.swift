// The requests that sign a user in. Their responses contain tokens, or report that a second factor is
// required.

import Foundation

/// The response of every request that signs a user in. Each operation sets some of the members.
struct SignInResponse: Decodable, Sendable {
  var idToken: String?
  var refreshToken: String?
  var expiresIn: String?
  var localId: String?
  var isNewUser: Bool?
  var email: String?
  // Members for a sign-in with an identity provider.
  var providerId: String?
  var rawUserInfo: String?
  var screenName: String?
  var oauthIdToken: String?
  var oauthAccessToken: String?
  var oauthTokenSecret: String?
  var pendingToken: String?
  var needConfirmation: Bool?
  var errorMessage: String?
  // Members for a sign-in with a phone number that belongs to another account.
  var phoneNumber: String?
  var temporaryProof: String?
  // Members if a second factor is required.
  var mfaPendingCredential: String?
  var mfaInfo: [FactorInfo]?
}

/// Creates an account: anonymous, or with an e-mail address and a password. With an ID token, it adds the
/// address and the password to the token's account.
struct SignUpRequest: AuthRequest {
  typealias Response = SignInResponse
  static let operation = "accounts:signUp"

  var email: String?
  var password: String?
  var displayName: String?
  var idToken: String?
  var returnSecureToken = true
}

/// Signs in with an e-mail address and a password.
struct PasswordSignInRequest: AuthRequest {
  typealias Response = SignInResponse
  static let operation = "accounts:signInWithPassword"

  let email: String
  let password: String
  var returnSecureToken = true
}

/// Signs in with an e-mail address and the code of a link. With an ID token, it adds the address to the
/// token's account.
struct EmailLinkSignInRequest: AuthRequest {
  typealias Response = SignInResponse
  static let operation = "accounts:signInWithEmailLink"

  let email: String
  let oobCode: String
  var idToken: String?
  var returnSecureToken = true
}

/// Signs in with a token that a server of the app signed.
struct CustomTokenSignInRequest: AuthRequest {
  typealias Response = SignInResponse
  static let operation = "accounts:signInWithCustomToken"

  let token: String
  var returnSecureToken = true
}

/// Signs in with a credential of an identity provider. With an ID token, it adds the credential to the
/// token's account.
struct ProviderSignInRequest: AuthRequest {
  typealias Response = SignInResponse
  static let operation = "accounts:signInWithIdp"

  /// The credential in form encoding.
  var postBody: String
  /// A token from an earlier attempt, instead of the provider's tokens.
  var pendingToken: String?
  var idToken: String?
  /// The URL of a redirect. The API requires it, but it is used only with a browser.
  var requestUri = "http://localhost"
  var autoCreate: Bool?
  var returnIdpCredential = true
  var returnSecureToken = true
}

/// Signs in with a phone number: with a verification code, or with the proof of an earlier attempt.
struct PhoneSignInRequest: AuthRequest {
  typealias Response = SignInResponse
  static let operation = "accounts:signInWithPhoneNumber"

  var sessionInfo: String?
  var code: String?
  var phoneNumber: String?
  var temporaryProof: String?
  var idToken: String?
  /// `SIGN_UP_OR_IN`, `REAUTH`, `UPDATE` or `LINK`.
  var operation: String
}

/// Sends a verification code to a phone.
struct VerificationCodeRequest: AuthRequest {
  struct Response: Decodable, Sendable {
    var sessionInfo: String?
  }

  static let operation = "accounts:sendVerificationCode"

  let phoneNumber: String
}
