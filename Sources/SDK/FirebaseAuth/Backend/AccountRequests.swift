// The requests that read, change and delete an account, and that refresh its tokens.

import Foundation

/// Reads the account of an ID token.
struct LookupRequest: AuthRequest {
  static let operation = "accounts:lookup"

  let idToken: String

  struct Response: Decodable, Sendable {
    var users: [AccountInfo]?
  }
}

/// An account, as the server returns it.
struct AccountInfo: Decodable, Sendable {
  struct Provider: Decodable, Sendable {
    var providerId: String?
    var rawId: String?
    var federatedId: String?
    var displayName: String?
    var photoUrl: String?
    var email: String?
    var phoneNumber: String?
  }

  var localId: String?
  var email: String?
  var emailVerified: Bool?
  var displayName: String?
  var photoUrl: String?
  var phoneNumber: String?
  var passwordHash: String?
  var providerUserInfo: [Provider]?
  /// Milliseconds since 1970.
  var createdAt: String?
  /// Milliseconds since 1970.
  var lastLoginAt: String?
  var mfaInfo: [FactorInfo]?
}

/// A second factor, as the server returns it.
struct FactorInfo: Decodable, Sendable {
  /// Present if the second factor is a time-based one-time password.
  struct OneTimePassword: Decodable, Sendable {}

  var mfaEnrollmentId: String?
  var displayName: String?
  /// RFC 3339.
  var enrolledAt: String?
  var phoneInfo: String?
  var totpInfo: OneTimePassword?
}

/// Changes an account, or applies an action code.
struct UpdateRequest: AuthRequest {
  static let operation = "accounts:update"

  var idToken: String?
  var oobCode: String?
  var email: String?
  var password: String?
  var displayName: String?
  var photoUrl: String?
  var deleteAttribute: [String]?
  var deleteProvider: [String]?
  var returnSecureToken = true

  /// The changed account, with new tokens if the old ones became invalid.
  struct Response: Decodable, Sendable {
    var email: String?
    var idToken: String?
    var refreshToken: String?
    var expiresIn: String?
  }
}

/// Deletes the account of an ID token.
struct DeleteRequest: AuthRequest {
  typealias Response = EmptyResponse
  static let operation = "accounts:delete"

  let idToken: String
}

/// Gets the sign-in methods of an e-mail address.
struct SignInMethodsRequest: AuthRequest {
  static let operation = "accounts:createAuthUri"

  let identifier: String
  /// The API requires this URL, but it is used only with a browser.
  var continueUri = "http://localhost"

  struct Response: Decodable, Sendable {
    var signinMethods: [String]?
  }
}

/// Revokes the token of an identity provider.
struct RevokeTokenRequest: AuthRequest {
  typealias Response = EmptyResponse
  static let service = AuthServer.Service.identityV2
  static let operation = "accounts:revokeToken"

  let providerId: String
  let token: String
  let idToken: String
  /// The kind of token: an authorization code.
  var tokenType = "CODE"
}

/// Gets a new ID token for a refresh token.
struct RefreshRequest: AuthRequest {
  static let service = AuthServer.Service.token
  static let operation = "token"
  static let hasTenant = false

  let refreshToken: String
  var grantType = "refresh_token"

  enum CodingKeys: String, CodingKey {
    case refreshToken = "refresh_token"
    case grantType = "grant_type"
  }

  struct Response: Decodable, Sendable {
    var idToken: String?
    var refreshToken: String?
    var expiresIn: String?

    enum CodingKeys: String, CodingKey {
      case idToken = "id_token"
      case refreshToken = "refresh_token"
      case expiresIn = "expires_in"
    }
  }
}
