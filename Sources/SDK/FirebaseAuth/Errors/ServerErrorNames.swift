// Maps the error names of the Identity Toolkit API to error codes.
//
// A server sends `NAME` or `NAME : detail`. An unknown name becomes an internal error, as in Google's SDK.
// Unlike in that SDK, INVALID_REFRESH_TOKEN becomes `invalidUserToken`, because a user with an invalid
// refresh token can never get a token again.

import Foundation

/// The names of the server's errors.
enum ServerErrorNames {
  static let codes: [String: AuthErrorCode] = [
    "ADMIN_ONLY_OPERATION": .adminRestrictedOperation,
    "APP_NOT_VERIFIED": .appNotVerified,
    "BLOCKING_FUNCTION_ERROR_RESPONSE": .blockingCloudFunctionError,
    "CAPTCHA_CHECK_FAILED": .captchaCheckFailed,
    "CREDENTIAL_MISMATCH": .customTokenMismatch,
    "CREDENTIAL_TOO_OLD_LOGIN_AGAIN": .requiresRecentLogin,
    "EMAIL_CHANGE_NEEDS_VERIFICATION": .emailChangeNeedsVerification,
    "EMAIL_EXISTS": .emailAlreadyInUse,
    "EMAIL_NOT_FOUND": .userNotFound,
    "EXPIRED_OOB_CODE": .expiredActionCode,
    "FEDERATED_USER_ID_ALREADY_LINKED": .credentialAlreadyInUse,
    "INVALID_APP_CREDENTIAL": .invalidAppCredential,
    "INVALID_CODE": .invalidVerificationCode,
    "INVALID_CONTINUE_URI": .invalidContinueURI,
    "INVALID_CUSTOM_TOKEN": .invalidCustomToken,
    "INVALID_EMAIL": .invalidEmail,
    "INVALID_HOSTING_LINK_DOMAIN": .invalidHostingLinkDomain,
    "INVALID_IDENTIFIER": .invalidEmail,
    "INVALID_IDP_RESPONSE": .invalidCredential,
    "INVALID_ID_TOKEN": .invalidUserToken,
    "INVALID_LOGIN_CREDENTIALS": .invalidCredential,
    "INVALID_MESSAGE_PAYLOAD": .invalidMessagePayload,
    "INVALID_MFA_PENDING_CREDENTIAL": .invalidMultiFactorSession,
    "INVALID_OOB_CODE": .invalidActionCode,
    "INVALID_PASSWORD": .wrongPassword,
    "INVALID_PENDING_TOKEN": .invalidCredential,
    "INVALID_PHONE_NUMBER": .invalidPhoneNumber,
    "INVALID_PROVIDER_ID": .invalidProviderID,
    "INVALID_RECAPTCHA_ACTION": .invalidRecaptchaAction,
    "INVALID_RECAPTCHA_TOKEN": .invalidRecaptchaToken,
    "INVALID_RECAPTCHA_VERSION": .invalidRecaptchaVersion,
    "INVALID_RECIPIENT_EMAIL": .invalidRecipientEmail,
    "INVALID_REFRESH_TOKEN": .invalidUserToken,
    "INVALID_REQ_TYPE": .invalidReqType,
    "INVALID_SENDER": .invalidSender,
    "INVALID_SESSION_INFO": .invalidVerificationID,
    "MFA_ENROLLMENT_NOT_FOUND": .multiFactorInfoNotFound,
    "MISSING_ANDROID_PACKAGE_NAME": .missingAndroidPackageName,
    "MISSING_APP_CREDENTIAL": .missingAppCredential,
    "MISSING_CLIENT_IDENTIFIER": .missingClientIdentifier,
    "MISSING_CLIENT_TYPE": .missingClientType,
    "MISSING_CONTINUE_URI": .missingContinueURI,
    "MISSING_EMAIL": .missingEmail,
    "MISSING_IOS_APP_TOKEN": .missingAppToken,
    "MISSING_IOS_BUNDLE_ID": .missingIosBundleID,
    "MISSING_MFA_ENROLLMENT_ID": .missingMultiFactorInfo,
    "MISSING_MFA_PENDING_CREDENTIAL": .missingMultiFactorSession,
    "MISSING_OR_INVALID_NONCE": .missingOrInvalidNonce,
    "MISSING_RECAPTCHA_TOKEN": .missingRecaptchaToken,
    "MISSING_RECAPTCHA_VERSION": .missingRecaptchaVersion,
    "OPERATION_NOT_ALLOWED": .operationNotAllowed,
    "PASSWORD_DOES_NOT_MEET_REQUIREMENTS": .passwordDoesNotMeetRequirements,
    "PASSWORD_LOGIN_DISABLED": .operationNotAllowed,
    "QUOTA_EXCEEDED": .quotaExceeded,
    "RECAPTCHA_NOT_ENABLED": .recaptchaNotEnabled,
    "SECOND_FACTOR_EXISTS": .secondFactorAlreadyEnrolled,
    "SECOND_FACTOR_LIMIT_EXCEEDED": .maximumSecondFactorCountExceeded,
    "SESSION_EXPIRED": .sessionExpired,
    "TENANT_ID_MISMATCH": .tenantIDMismatch,
    "TOKEN_EXPIRED": .userTokenExpired,
    "TOO_MANY_ATTEMPTS_TRY_LATER": .tooManyRequests,
    "UNAUTHORIZED_DOMAIN": .unauthorizedDomain,
    "UNSUPPORTED_FIRST_FACTOR": .unsupportedFirstFactor,
    "UNSUPPORTED_TENANT_OPERATION": .unsupportedTenantOperation,
    "UNVERIFIED_EMAIL": .unverifiedEmail,
    "USER_DISABLED": .userDisabled,
    "USER_NOT_FOUND": .userNotFound,
    "WEAK_PASSWORD": .weakPassword,
  ]

  /// Makes the error object for a message of the server.
  ///
  /// - Parameters:
  ///   - message: `NAME` or `NAME : detail`.
  ///   - reasons: the members `reason` in the error's list. They report rejected API keys.
  ///   - details: further entries of `userInfo`.
  /// - Returns: the error object; nil for an unknown name.
  static func error(for message: String, reasons: [String] = [], details: [String: Any] = [:]) -> NSError? {
    let parts = message.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    let name = parts.first.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) } ?? ""
    let detail = parts.dropFirst().first?.trimmingCharacters(in: .whitespacesAndNewlines)
    guard let code = codes[name] else {
      if reasons.contains(where: { $0.hasPrefix("keyInvalid") }) {
        return AuthErrorCode.invalidAPIKey.error()
      }
      if reasons.contains("ipRefererBlocked") { return AuthErrorCode.appNotAuthorized.error() }
      return nil
    }
    var details = details
    if code == .weakPassword, let detail { details[NSLocalizedFailureReasonErrorKey] = detail }
    return code.error(detail, details: details)
  }
}
