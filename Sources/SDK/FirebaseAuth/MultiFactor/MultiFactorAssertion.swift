// Proofs that the user has a second factor.

public import Foundation

/// A proof that the user has a second factor.
open class MultiFactorAssertion: NSObject, @unchecked Sendable {
  // SAFETY: this class and its subclasses have constants only.
  private let kind: String

  init(factorID: String) {
    kind = factorID
    super.init()
  }

  /// The kind: `phone` or `totp`.
  open var factorID: String { kind }

  func enroll(idToken: String, displayName: String?, _ backend: AuthBackend) async throws
    -> FactorTokensResponse
  {
    throw AuthErrorCode.invalidCredential.error()
  }

  func signIn(pendingCredential: String, _ backend: AuthBackend) async throws -> FactorTokensResponse {
    throw AuthErrorCode.invalidCredential.error()
  }
}

/// A proof by a code that the user received by phone.
open class PhoneMultiFactorAssertion: MultiFactorAssertion, @unchecked Sendable {
  // SAFETY: only a constant is added.
  private let credential: PhoneAuthCredential

  init(_ credential: PhoneAuthCredential) {
    self.credential = credential
    super.init(factorID: PhoneMultiFactorID)
  }

  private func verification() throws -> PhoneVerification {
    guard case .code(let verificationID, let code) = credential.proof else {
      throw AuthErrorCode.missingVerificationCode.error()
    }
    return PhoneVerification(sessionInfo: verificationID, code: code)
  }

  override func enroll(
    idToken: String, displayName: String?, _ backend: AuthBackend
  ) async throws -> FactorTokensResponse {
    try await backend.call(
      FinalizeEnrollmentRequest(
        idToken: idToken, displayName: displayName, phoneVerificationInfo: try verification()))
  }

  override func signIn(pendingCredential: String, _ backend: AuthBackend) async throws -> FactorTokensResponse
  {
    try await backend.call(
      FinalizeFactorSignInRequest(
        mfaPendingCredential: pendingCredential, phoneVerificationInfo: try verification()))
  }
}

/// Makes proofs by phone.
open class PhoneMultiFactorGenerator: NSObject {
  /// Makes a proof of a credential from `PhoneAuthProvider`.
  open class func assertion(with phoneAuthCredential: PhoneAuthCredential) -> PhoneMultiFactorAssertion {
    PhoneMultiFactorAssertion(phoneAuthCredential)
  }
}

extension PhoneAuthProvider {
  /// Sends a code to a phone that becomes a second factor.
  ///
  /// - Parameters:
  ///   - phoneNumber: the number, with a plus sign and the country code.
  ///   - multiFactorSession: the session of `MultiFactor.session()`.
  /// - Returns: the verification ID.
  /// - Throws: `invalidMultiFactorSession`, `invalidPhoneNumber`, `unverifiedEmail`, `secondFactorAlreadyEnrolled`.
  public func verifyPhoneNumber(
    _ phoneNumber: String, multiFactorSession: MultiFactorSession
  ) async throws -> String {
    let request = StartEnrollmentRequest(
      idToken: try multiFactorSession.idToken(), phoneEnrollmentInfo: .init(phoneNumber: phoneNumber))
    let response = try await multiFactorSession.auth.backend.call(request)
    guard let session = response.phoneSessionInfo?.sessionInfo else {
      throw AuthInternalError.unexpectedResponse.error()
    }
    return session
  }

  /// Sends a code to the phone that is the second factor of a sign-in.
  ///
  /// - Parameters:
  ///   - multiFactorInfo: the phone, one of the hints of the resolver.
  ///   - multiFactorSession: the session of the resolver.
  /// - Returns: the verification ID.
  /// - Throws: `invalidMultiFactorSession`, `multiFactorInfoNotFound`, `quotaExceeded`.
  public func verifyPhoneNumber(
    with multiFactorInfo: PhoneMultiFactorInfo, multiFactorSession: MultiFactorSession
  ) async throws -> String {
    let request = StartFactorSignInRequest(
      mfaPendingCredential: try multiFactorSession.pendingCredential(), mfaEnrollmentId: multiFactorInfo.uid)
    let response = try await multiFactorSession.auth.backend.call(request)
    guard let session = response.phoneResponseInfo?.sessionInfo else {
      throw AuthInternalError.unexpectedResponse.error()
    }
    return session
  }
}
