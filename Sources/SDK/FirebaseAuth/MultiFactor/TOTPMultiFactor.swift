// Second factors by time-based one-time passwords (RFC 6238) from an authenticator app.

public import Foundation

/// A proof with a one-time password.
open class TOTPMultiFactorAssertion: MultiFactorAssertion, @unchecked Sendable {
  // SAFETY: this class adds only constants.
  private let password: String
  private let sessionInfo: String?
  private let enrollmentID: String?

  init(password: String, sessionInfo: String? = nil, enrollmentID: String? = nil) {
    self.password = password
    self.sessionInfo = sessionInfo
    self.enrollmentID = enrollmentID
    super.init(factorID: TOTPMultiFactorID)
  }

  override func enroll(
    idToken: String, displayName: String?, _ backend: AuthBackend
  ) async throws -> FactorTokensResponse {
    guard let sessionInfo else { throw AuthErrorCode.missingMultiFactorSession.error() }
    return try await backend.call(
      FinalizeEnrollmentRequest(
        idToken: idToken, displayName: displayName,
        totpVerificationInfo: .init(sessionInfo: sessionInfo, verificationCode: password)))
  }

  override func signIn(pendingCredential: String, _ backend: AuthBackend) async throws -> FactorTokensResponse
  {
    guard let enrollmentID else { throw AuthErrorCode.missingMultiFactorInfo.error() }
    return try await backend.call(
      FinalizeFactorSignInRequest(
        mfaPendingCredential: pendingCredential, mfaEnrollmentId: enrollmentID,
        totpVerificationInfo: .init(verificationCode: password)))
  }
}

/// Makes secrets for authenticator apps, and assertions from their passwords.
open class TOTPMultiFactorGenerator: NSObject {
  /// Requests a secret for an authenticator app.
  ///
  /// - Parameter session: the session of `MultiFactor.session()`.
  /// - Throws: `invalidMultiFactorSession`, `operationNotAllowed`, `unverifiedEmail`.
  open class func generateSecret(with session: MultiFactorSession) async throws -> TOTPSecret {
    let request = StartEnrollmentRequest(idToken: try session.idToken(), totpEnrollmentInfo: .init())
    let response = try await session.auth.backend.call(request)
    guard let info = response.totpSessionInfo, let key = info.sharedSecretKey,
      let sessionInfo = info.sessionInfo
    else { throw AuthInternalError.unexpectedResponse.error() }
    return TOTPSecret(
      key: key, sessionInfo: sessionInfo, algorithm: info.hashingAlgorithm ?? "SHA1",
      digits: info.verificationCodeLength ?? 6, period: info.periodSec ?? 30)
  }

  /// Requests a secret for an authenticator app.
  open class func generateSecret(
    with session: MultiFactorSession, completion: @escaping (TOTPSecret?, (any Error)?) -> Void
  ) {
    complete(completion) { try await generateSecret(with: session) }
  }

  /// Makes the assertion for an enrollment.
  ///
  /// - Parameters:
  ///   - secret: the secret in the authenticator app.
  ///   - oneTimePassword: the password that the authenticator app displays.
  open class func assertionForEnrollment(
    with secret: TOTPSecret, oneTimePassword: String
  ) -> TOTPMultiFactorAssertion {
    TOTPMultiFactorAssertion(password: oneTimePassword, sessionInfo: secret.sessionInfo)
  }

  /// Makes the assertion for a sign-in.
  ///
  /// - Parameters:
  ///   - enrollmentID: the ID of the factor, from the hints of the resolver.
  ///   - oneTimePassword: the password that the authenticator app displays.
  open class func assertionForSignIn(
    withEnrollmentID enrollmentID: String, oneTimePassword: String
  ) -> TOTPMultiFactorAssertion {
    TOTPMultiFactorAssertion(password: oneTimePassword, enrollmentID: enrollmentID)
  }
}

/// A secret that an authenticator app and the server share.
open class TOTPSecret: NSObject, @unchecked Sendable {
  // SAFETY: all properties are constants.
  private let key: String
  let sessionInfo: String
  private let algorithm: String
  private let digits: Int
  private let period: Int

  init(key: String, sessionInfo: String, algorithm: String, digits: Int, period: Int) {
    self.key = key
    self.sessionInfo = sessionInfo
    self.algorithm = algorithm
    self.digits = digits
    self.period = period
    super.init()
  }

  /// The secret in base32, for manual input.
  open func sharedSecretKey() -> String { key }

  /// The URL that authenticator apps read from a QR code.
  ///
  /// - Parameters:
  ///   - accountName: the name of the account, such as the user's e-mail address.
  ///   - issuer: the name of the service.
  open func generateQRCodeURL(withAccountName accountName: String, issuer: String) -> String {
    var allowed = CharacterSet.urlQueryAllowed
    allowed.remove(charactersIn: "&=+?/:#")
    func escape(_ text: String) -> String { text.addingPercentEncoding(withAllowedCharacters: allowed) ?? "" }
    return "otpauth://totp/\(escape(issuer)):\(escape(accountName))?secret=\(key)&issuer=\(escape(issuer))"
      + "&algorithm=\(algorithm)&digits=\(digits)&period=\(period)"
  }
}
