// The strings of the error codes: the names in `userInfo`, and the messages for users.

extension AuthErrorCode {
  /// The name in `userInfo` under `AuthErrorUserInfoNameKey`.
  var name: String {
    switch self {
    case .invalidCustomToken: "ERROR_INVALID_CUSTOM_TOKEN"
    case .customTokenMismatch: "ERROR_CUSTOM_TOKEN_MISMATCH"
    case .invalidCredential: "ERROR_INVALID_CREDENTIAL"
    case .userDisabled: "ERROR_USER_DISABLED"
    case .operationNotAllowed: "ERROR_OPERATION_NOT_ALLOWED"
    case .emailAlreadyInUse: "ERROR_EMAIL_ALREADY_IN_USE"
    case .invalidEmail: "ERROR_INVALID_EMAIL"
    case .wrongPassword: "ERROR_WRONG_PASSWORD"
    case .tooManyRequests: "ERROR_TOO_MANY_REQUESTS"
    case .userNotFound: "ERROR_USER_NOT_FOUND"
    case .accountExistsWithDifferentCredential: "ERROR_ACCOUNT_EXISTS_WITH_DIFFERENT_CREDENTIAL"
    case .requiresRecentLogin: "ERROR_REQUIRES_RECENT_LOGIN"
    case .providerAlreadyLinked: "ERROR_PROVIDER_ALREADY_LINKED"
    case .noSuchProvider: "ERROR_NO_SUCH_PROVIDER"
    case .invalidUserToken: "ERROR_INVALID_USER_TOKEN"
    case .networkError: "ERROR_NETWORK_REQUEST_FAILED"
    case .userTokenExpired: "ERROR_USER_TOKEN_EXPIRED"
    case .invalidAPIKey: "ERROR_INVALID_API_KEY"
    case .userMismatch: "ERROR_USER_MISMATCH"
    case .credentialAlreadyInUse: "ERROR_CREDENTIAL_ALREADY_IN_USE"
    case .weakPassword: "ERROR_WEAK_PASSWORD"
    case .appNotAuthorized: "ERROR_APP_NOT_AUTHORIZED"
    case .expiredActionCode: "ERROR_EXPIRED_ACTION_CODE"
    case .invalidActionCode: "ERROR_INVALID_ACTION_CODE"
    case .invalidMessagePayload: "ERROR_INVALID_MESSAGE_PAYLOAD"
    case .invalidSender: "ERROR_INVALID_SENDER"
    case .invalidRecipientEmail: "ERROR_INVALID_RECIPIENT_EMAIL"
    case .missingEmail: "ERROR_MISSING_EMAIL"
    case .missingIosBundleID: "ERROR_MISSING_IOS_BUNDLE_ID"
    case .missingAndroidPackageName: "ERROR_MISSING_ANDROID_PKG_NAME"
    case .unauthorizedDomain: "ERROR_UNAUTHORIZED_DOMAIN"
    case .invalidContinueURI: "ERROR_INVALID_CONTINUE_URI"
    case .missingContinueURI: "ERROR_MISSING_CONTINUE_URI"
    case .missingPhoneNumber: "ERROR_MISSING_PHONE_NUMBER"
    case .invalidPhoneNumber: "ERROR_INVALID_PHONE_NUMBER"
    case .missingVerificationCode: "ERROR_MISSING_VERIFICATION_CODE"
    case .invalidVerificationCode: "ERROR_INVALID_VERIFICATION_CODE"
    case .missingVerificationID: "ERROR_MISSING_VERIFICATION_ID"
    case .invalidVerificationID: "ERROR_INVALID_VERIFICATION_ID"
    case .missingAppCredential: "MISSING_APP_CREDENTIAL"
    case .invalidAppCredential: "INVALID_APP_CREDENTIAL"
    case .sessionExpired: "ERROR_SESSION_EXPIRED"
    case .quotaExceeded: "ERROR_QUOTA_EXCEEDED"
    case .missingAppToken: "ERROR_MISSING_APP_TOKEN"
    case .notificationNotForwarded: "ERROR_NOTIFICATION_NOT_FORWARDED"
    case .appNotVerified: "ERROR_APP_NOT_VERIFIED"
    case .captchaCheckFailed: "ERROR_CAPTCHA_CHECK_FAILED"
    case .webContextAlreadyPresented: "ERROR_WEB_CONTEXT_ALREADY_PRESENTED"
    case .webContextCancelled: "ERROR_WEB_CONTEXT_CANCELLED"
    case .appVerificationUserInteractionFailure: "ERROR_APP_VERIFICATION_FAILED"
    case .invalidClientID: "ERROR_INVALID_CLIENT_ID"
    case .webNetworkRequestFailed: "ERROR_WEB_NETWORK_REQUEST_FAILED"
    case .webInternalError: "ERROR_WEB_INTERNAL_ERROR"
    case .webSignInUserInteractionFailure: "ERROR_WEB_USER_INTERACTION_FAILURE"
    case .localPlayerNotAuthenticated: "ERROR_LOCAL_PLAYER_NOT_AUTHENTICATED"
    case .nullUser: "ERROR_NULL_USER"
    case .invalidProviderID: "ERROR_INVALID_PROVIDER_ID"
    case .tenantIDMismatch: "ERROR_TENANT_ID_MISMATCH"
    case .unsupportedTenantOperation: "ERROR_UNSUPPORTED_TENANT_OPERATION"
    case .invalidHostingLinkDomain: "ERROR_INVALID_HOSTING_LINK_DOMAIN"
    case .rejectedCredential: "ERROR_REJECTED_CREDENTIAL"
    case .gameKitNotLinked: "ERROR_GAME_KIT_NOT_LINKED"
    case .secondFactorRequired: "ERROR_SECOND_FACTOR_REQUIRED"
    case .missingMultiFactorSession: "ERROR_MISSING_MULTI_FACTOR_SESSION"
    case .missingMultiFactorInfo: "ERROR_MISSING_MULTI_FACTOR_INFO"
    case .invalidMultiFactorSession: "ERROR_INVALID_MULTI_FACTOR_SESSION"
    case .multiFactorInfoNotFound: "ERROR_MULTI_FACTOR_INFO_NOT_FOUND"
    case .adminRestrictedOperation: "ERROR_ADMIN_RESTRICTED_OPERATION"
    case .unverifiedEmail: "ERROR_UNVERIFIED_EMAIL"
    case .secondFactorAlreadyEnrolled: "ERROR_SECOND_FACTOR_ALREADY_ENROLLED"
    case .maximumSecondFactorCountExceeded: "ERROR_MAXIMUM_SECOND_FACTOR_COUNT_EXCEEDED"
    case .unsupportedFirstFactor: "ERROR_UNSUPPORTED_FIRST_FACTOR"
    case .emailChangeNeedsVerification: "ERROR_EMAIL_CHANGE_NEEDS_VERIFICATION"
    case .missingClientIdentifier: "ERROR_MISSING_CLIENT_IDENTIFIER"
    case .missingOrInvalidNonce: "ERROR_MISSING_OR_INVALID_NONCE"
    case .blockingCloudFunctionError: "ERROR_BLOCKING_CLOUD_FUNCTION_RETURNED_ERROR"
    case .recaptchaNotEnabled: "ERROR_RECAPTCHA_NOT_ENABLED"
    case .missingRecaptchaToken: "ERROR_MISSING_RECAPTCHA_TOKEN"
    case .invalidRecaptchaToken: "ERROR_INVALID_RECAPTCHA_TOKEN"
    case .invalidRecaptchaAction: "ERROR_INVALID_RECAPTCHA_ACTION"
    case .missingClientType: "ERROR_MISSING_CLIENT_TYPE"
    case .missingRecaptchaVersion: "ERROR_MISSING_RECAPTCHA_VERSION"
    case .invalidRecaptchaVersion: "ERROR_INVALID_RECAPTCHA_VERSION"
    case .invalidReqType: "ERROR_INVALID_REQ_TYPE"
    case .recaptchaSDKNotLinked: "ERROR_RECAPTCHA_SDK_NOT_LINKED"
    case .recaptchaSiteKeyMissing: "ERROR_RECAPTCHA_SITE_KEY_MISSING"
    case .recaptchaActionCreationFailed: "ERROR_RECAPTCHA_ACTION_CREATION_FAILED"
    case .passwordDoesNotMeetRequirements: "ERROR_PASSWORD_DOES_NOT_MEET_REQUIREMENTS"
    case .keychainError: "ERROR_KEYCHAIN_ERROR"
    case .internalError: "ERROR_INTERNAL_ERROR"
    case .malformedJWT: "ERROR_MALFORMED_JWT"
    }
  }

  /// The message of an error for which the server sent no message.
  var message: String {
    switch self {
    case .invalidCustomToken:
      "The custom token is malformed or its signature is wrong."
    case .customTokenMismatch:
      "The custom token belongs to another project or service account."
    case .invalidCredential:
      "The credential is malformed, has expired, or does not match an account."
    case .userDisabled:
      "An administrator disabled the account."
    case .operationNotAllowed:
      "The project does not allow this sign-in method or operation."
    case .emailAlreadyInUse:
      "Another account uses the e-mail address."
    case .invalidEmail:
      "The e-mail address is malformed."
    case .wrongPassword:
      "The password is wrong, or the account has no password."
    case .tooManyRequests:
      "The server received too many requests from this device; try again later."
    case .userNotFound:
      "No account matches, or it was deleted."
    case .accountExistsWithDifferentCredential:
      "An account with the same e-mail address exists, with other sign-in methods."
    case .requiresRecentLogin:
      "The operation needs a recent sign-in: reauthenticate, then try again."
    case .providerAlreadyLinked:
      "The account already has a credential of this provider."
    case .noSuchProvider:
      "The account has no credential of this provider."
    case .invalidUserToken:
      "The user's token is invalid; the user must sign in again."
    case .networkError:
      "The server could not be reached."
    case .userTokenExpired:
      "The user's token was revoked or has expired; the user must sign in again."
    case .invalidAPIKey:
      "The API key is not valid."
    case .userMismatch:
      "The credential belongs to another user."
    case .credentialAlreadyInUse:
      "The credential is linked to another account."
    case .weakPassword:
      "The password is too weak."
    case .appNotAuthorized:
      "The API key does not allow this app to use authentication."
    case .expiredActionCode:
      "The action code has expired."
    case .invalidActionCode:
      "The action code is malformed, was used, or is unknown."
    case .invalidMessagePayload:
      "The project's e-mail template has an invalid body."
    case .invalidSender:
      "The project's e-mail template has an invalid sender."
    case .invalidRecipientEmail:
      "The recipient's e-mail address is invalid."
    case .missingEmail:
      "The request needs an e-mail address."
    case .missingIosBundleID:
      "The action code settings need an iOS bundle identifier."
    case .missingAndroidPackageName:
      "The action code settings need an Android package name."
    case .unauthorizedDomain:
      "The domain of the continue URL is not authorized in the project."
    case .invalidContinueURI:
      "The continue URL is not a valid URL."
    case .missingContinueURI:
      "The request needs a continue URL."
    case .missingPhoneNumber:
      "The request needs a phone number."
    case .invalidPhoneNumber:
      "The phone number is malformed; it begins with \"+\" and the country code."
    case .missingVerificationCode:
      "The phone credential has no verification code."
    case .invalidVerificationCode:
      "The verification code is wrong."
    case .missingVerificationID:
      "The phone credential has no verification ID."
    case .invalidVerificationID:
      "The verification ID is invalid."
    case .missingAppCredential:
      "The request needs a proof of the app."
    case .invalidAppCredential:
      "The proof of the app is invalid."
    case .sessionExpired:
      "The verification code has expired; request another one."
    case .quotaExceeded:
      "The project's quota of messages is exhausted."
    case .missingAppToken:
      "The app has no device token for push notifications."
    case .notificationNotForwarded:
      "The app does not forward push notifications."
    case .appNotVerified:
      "The app could not be verified."
    case .captchaCheckFailed:
      "The reCAPTCHA token is invalid."
    case .webContextAlreadyPresented:
      "Another web page of this library is presented."
    case .webContextCancelled:
      "The user closed the web page."
    case .appVerificationUserInteractionFailure:
      "The verification of the app in a web page failed."
    case .invalidClientID:
      "The OAuth client ID is invalid."
    case .webNetworkRequestFailed:
      "A network request of the web page failed."
    case .webInternalError:
      "The web page failed."
    case .webSignInUserInteractionFailure:
      "The sign-in in a web page failed."
    case .localPlayerNotAuthenticated:
      "The local player is not authenticated with Game Center."
    case .nullUser:
      "The operation requires a user, and no user is signed in."
    case .invalidProviderID:
      "The provider ID is not valid for this operation."
    case .tenantIDMismatch:
      "The tenant of the user or token differs from the tenant of `Auth`."
    case .unsupportedTenantOperation:
      "The operation is not supported with a tenant."
    case .invalidHostingLinkDomain:
      "The link domain is not configured for the project."
    case .rejectedCredential:
      "The credential is malformed or does not belong to the app."
    case .gameKitNotLinked:
      "The app does not link GameKit."
    case .secondFactorRequired:
      "The sign-in needs a second factor; the error contains a resolver."
    case .missingMultiFactorSession:
      "The request needs a multi-factor session."
    case .missingMultiFactorInfo:
      "The request needs an enrolled second factor."
    case .invalidMultiFactorSession:
      "The multi-factor session is invalid."
    case .multiFactorInfoNotFound:
      "The user does not have this second factor."
    case .adminRestrictedOperation:
      "Only administrators may perform this operation."
    case .unverifiedEmail:
      "The operation needs a verified e-mail address."
    case .secondFactorAlreadyEnrolled:
      "The second factor is enrolled already."
    case .maximumSecondFactorCountExceeded:
      "The user has the maximum number of second factors."
    case .unsupportedFirstFactor:
      "The first factor does not support second factors."
    case .emailChangeNeedsVerification:
      "The new e-mail address must be verified before the change."
    case .missingClientIdentifier:
      "The request needs a proof of the app."
    case .missingOrInvalidNonce:
      "The nonce is missing, or it does not match the ID token."
    case .blockingCloudFunctionError:
      "A blocking function of the project returned an error."
    case .recaptchaNotEnabled:
      "reCAPTCHA Enterprise is not enabled for the project."
    case .missingRecaptchaToken:
      "The request needs a reCAPTCHA token."
    case .invalidRecaptchaToken:
      "The reCAPTCHA token is invalid."
    case .invalidRecaptchaAction:
      "The action of the reCAPTCHA token is invalid."
    case .missingClientType:
      "The request needs a client type."
    case .missingRecaptchaVersion:
      "The request needs a reCAPTCHA version."
    case .invalidRecaptchaVersion:
      "The reCAPTCHA version is invalid."
    case .invalidReqType:
      "The request type is invalid."
    case .recaptchaSDKNotLinked:
      "The app does not link the reCAPTCHA library."
    case .recaptchaSiteKeyMissing:
      "The project has no reCAPTCHA site key."
    case .recaptchaActionCreationFailed:
      "The reCAPTCHA action could not be created."
    case .passwordDoesNotMeetRequirements:
      "The password does not meet the project's requirements."
    case .keychainError:
      "The signed-in user could not be stored or read on this device."
    case .internalError:
      "The server or this library failed; the underlying error has details."
    case .malformedJWT:
      "The ID token is not a JSON Web Token that this library can read."
    }
  }
}
