// The error codes of authentication. Apps compare and store the raw values, so they are those of Google's
// SDK.

/// A reason why an operation of `Auth` or `User` failed.
///
/// Callbacks and throwing methods deliver `NSError` objects of the domain `AuthErrorDomain`. An app can match
/// them with `error as? AuthErrorCode`, `catch AuthErrorCode.wrongPassword` or `AuthErrorCode(rawValue:
/// (error as NSError).code)`.
public enum AuthErrorCode: Int, Error, Sendable {
  /// The custom token is malformed or its signature is wrong.
  case invalidCustomToken = 17000
  /// The custom token belongs to another project or service account.
  case customTokenMismatch = 17002
  /// The credential is malformed, has expired, or does not match an account.
  case invalidCredential = 17004
  /// An administrator disabled the account.
  case userDisabled = 17005
  /// The project does not allow this sign-in method or operation.
  case operationNotAllowed = 17006
  /// Another account uses the e-mail address.
  case emailAlreadyInUse = 17007
  /// The e-mail address is malformed.
  case invalidEmail = 17008
  /// The password is wrong, or the account has no password.
  case wrongPassword = 17009
  /// The server received too many requests from this device; try again later.
  case tooManyRequests = 17010
  /// No account matches, or the account was deleted.
  case userNotFound = 17011
  /// An account with the same e-mail address exists, with other sign-in methods.
  case accountExistsWithDifferentCredential = 17012
  /// The operation requires a recent sign-in. The user must reauthenticate first.
  case requiresRecentLogin = 17014
  /// The account already has a credential of this provider.
  case providerAlreadyLinked = 17015
  /// The account has no credential of this provider.
  case noSuchProvider = 17016
  /// The user's token is invalid; the user must sign in again.
  case invalidUserToken = 17017
  /// The server could not be reached.
  case networkError = 17020
  /// The user's token was revoked or has expired; the user must sign in again.
  case userTokenExpired = 17021
  /// The API key is not valid.
  case invalidAPIKey = 17023
  /// The credential belongs to another user.
  case userMismatch = 17024
  /// The credential is linked to another account.
  case credentialAlreadyInUse = 17025
  /// The password is too weak.
  case weakPassword = 17026
  /// The API key does not allow this app to use authentication.
  case appNotAuthorized = 17028
  /// The action code has expired.
  case expiredActionCode = 17029
  /// The action code is malformed, was used, or is unknown.
  case invalidActionCode = 17030
  /// The project's e-mail template has an invalid body.
  case invalidMessagePayload = 17031
  /// The project's e-mail template has an invalid sender.
  case invalidSender = 17032
  /// The recipient's e-mail address is invalid.
  case invalidRecipientEmail = 17033
  /// The request requires an e-mail address.
  case missingEmail = 17034
  /// The action code settings require an iOS bundle identifier.
  case missingIosBundleID = 17036
  /// The action code settings require an Android package name.
  case missingAndroidPackageName = 17037
  /// The domain of the continue URL is not authorized in the project.
  case unauthorizedDomain = 17038
  /// The continue URL is not a valid URL.
  case invalidContinueURI = 17039
  /// The request requires a continue URL.
  case missingContinueURI = 17040
  /// The request requires a phone number.
  case missingPhoneNumber = 17041
  /// The phone number is malformed. It must begin with "+" and the country code.
  case invalidPhoneNumber = 17042
  /// The phone credential has no verification code.
  case missingVerificationCode = 17043
  /// The verification code is wrong.
  case invalidVerificationCode = 17044
  /// The phone credential has no verification ID.
  case missingVerificationID = 17045
  /// The verification ID is invalid.
  case invalidVerificationID = 17046
  /// The request requires a proof of the app.
  case missingAppCredential = 17047
  /// The proof of the app is invalid.
  case invalidAppCredential = 17048
  /// The verification code has expired; request another one.
  case sessionExpired = 17051
  /// The project's quota of messages is exhausted.
  case quotaExceeded = 17052
  /// The app has no device token for push notifications.
  case missingAppToken = 17053
  /// The app does not forward push notifications.
  case notificationNotForwarded = 17054
  /// The app could not be verified.
  case appNotVerified = 17055
  /// The reCAPTCHA token is invalid.
  case captchaCheckFailed = 17056
  /// Another web page of this library is presented.
  case webContextAlreadyPresented = 17057
  /// The user closed the web page.
  case webContextCancelled = 17058
  /// The verification of the app in a web page failed.
  case appVerificationUserInteractionFailure = 17059
  /// The OAuth client ID is invalid.
  case invalidClientID = 17060
  /// A network request of the web page failed.
  case webNetworkRequestFailed = 17061
  /// The web page failed.
  case webInternalError = 17062
  /// The sign-in in a web page failed.
  case webSignInUserInteractionFailure = 17063
  /// The local player is not authenticated with Game Center.
  case localPlayerNotAuthenticated = 17066
  /// The operation requires a user, and no user is signed in.
  case nullUser = 17067
  /// The provider ID is not valid for this operation.
  case invalidProviderID = 17071
  /// The tenant of the user or token differs from the tenant of `Auth`.
  case tenantIDMismatch = 17072
  /// The operation is not supported with a tenant.
  case unsupportedTenantOperation = 17073
  /// The link domain is not configured for the project.
  case invalidHostingLinkDomain = 17214
  /// The credential is malformed or does not belong to the app.
  case rejectedCredential = 17075
  /// The app does not link GameKit.
  case gameKitNotLinked = 17076
  /// The sign-in requires a second factor. The error contains a resolver.
  case secondFactorRequired = 17078
  /// The request requires a multi-factor session.
  case missingMultiFactorSession = 17081
  /// The request requires an enrolled second factor.
  case missingMultiFactorInfo = 17082
  /// The multi-factor session is invalid.
  case invalidMultiFactorSession = 17083
  /// The user does not have this second factor.
  case multiFactorInfoNotFound = 17084
  /// Only administrators may perform this operation.
  case adminRestrictedOperation = 17085
  /// The operation requires a verified e-mail address.
  case unverifiedEmail = 17086
  /// The second factor is already enrolled.
  case secondFactorAlreadyEnrolled = 17087
  /// The user has the maximum number of second factors.
  case maximumSecondFactorCountExceeded = 17088
  /// The first factor does not support second factors.
  case unsupportedFirstFactor = 17089
  /// The new e-mail address must be verified before the change.
  case emailChangeNeedsVerification = 17090
  /// The request requires a proof of the app.
  case missingClientIdentifier = 17093
  /// The nonce is missing, or it does not match the ID token.
  case missingOrInvalidNonce = 17094
  /// A blocking function of the project returned an error.
  case blockingCloudFunctionError = 17105
  /// reCAPTCHA Enterprise is not enabled for the project.
  case recaptchaNotEnabled = 17200
  /// The request requires a reCAPTCHA token.
  case missingRecaptchaToken = 17201
  /// The reCAPTCHA token is invalid.
  case invalidRecaptchaToken = 17202
  /// The action of the reCAPTCHA token is invalid.
  case invalidRecaptchaAction = 17203
  /// The request requires a client type.
  case missingClientType = 17204
  /// The request requires a reCAPTCHA version.
  case missingRecaptchaVersion = 17205
  /// The reCAPTCHA version is invalid.
  case invalidRecaptchaVersion = 17206
  /// The request type is invalid.
  case invalidReqType = 17207
  /// The app does not link the reCAPTCHA library.
  case recaptchaSDKNotLinked = 17208
  /// The project has no reCAPTCHA site key.
  case recaptchaSiteKeyMissing = 17209
  /// The reCAPTCHA action could not be created.
  case recaptchaActionCreationFailed = 17210
  /// The password does not meet the project's requirements.
  case passwordDoesNotMeetRequirements = 17211
  /// The signed-in user could not be stored or read on this device.
  case keychainError = 17995
  /// The server or this library failed; the underlying error has details.
  case internalError = 17999
  /// The ID token is not a JSON Web Token that this library can read.
  case malformedJWT = 18000

  /// The code itself. Code that reads `code` therefore compiles for both forms of the error.
  public var code: AuthErrorCode { self }
}
