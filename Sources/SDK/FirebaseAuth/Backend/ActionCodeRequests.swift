// The requests about action codes. The server sends action codes in links of e-mails.

import Foundation

/// Sends an e-mail with an action code.
struct SendCodeRequest: AuthRequest {
  typealias Response = EmptyResponse
  static let operation = "accounts:sendOobCode"

  /// The type of e-mail to send.
  enum Kind: String, Encodable, Sendable {
    case passwordReset = "PASSWORD_RESET"
    case signIn = "EMAIL_SIGNIN"
    case verifyEmail = "VERIFY_EMAIL"
    case verifyAndChangeEmail = "VERIFY_AND_CHANGE_EMAIL"
  }

  let requestType: Kind
  var email: String?
  var newEmail: String?
  var idToken: String?
  var continueUrl: String?
  var canHandleCodeInApp: Bool?
  var iOSBundleId: String?
  var androidPackageName: String?
  var androidMinimumVersion: String?
  var androidInstallApp: Bool?
  var linkDomain: String?

  init(_ kind: Kind, settings: ActionCodeSettings? = nil) {
    requestType = kind
    guard let settings else { return }
    continueUrl = settings.url?.absoluteString
    canHandleCodeInApp = settings.handleCodeInApp
    iOSBundleId = settings.iOSBundleID
    androidPackageName = settings.androidPackageName
    androidMinimumVersion = settings.androidMinimumVersion
    androidInstallApp = settings.androidInstallIfNotAvailable
    linkDomain = settings.linkDomain
  }
}

/// Gets the operation of an action code. With a new password, it applies the action code of a password reset.
struct ResetPasswordRequest: AuthRequest {
  static let operation = "accounts:resetPassword"

  let oobCode: String
  var newPassword: String?

  struct Response: Decodable, Sendable {
    var requestType: String?
    var email: String?
    var newEmail: String?
  }
}
