// Multi-factor assertions: proofs that the user has a second factor.

public import Foundation

/// A proof that the user has a second factor.
open class MultiFactorAssertion: NSObject, @unchecked Sendable {
  // SAFETY: this class and its subclasses have only constants.
  private let kind: String

  init(factorID: String) {
    kind = factorID
    super.init()
  }

  /// The type of the factor: `phone` or `totp`.
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

/// A proof with a code that the user received by phone.
open class PhoneMultiFactorAssertion: MultiFactorAssertion, @unchecked Sendable {
  // SAFETY: this class adds only a constant.
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

/// Makes assertions for phones.
open class PhoneMultiFactorGenerator: NSObject {
  /// Makes an assertion from a credential of `PhoneAuthProvider`.
  open class func assertion(with phoneAuthCredential: PhoneAuthCredential) -> PhoneMultiFactorAssertion {
    PhoneMultiFactorAssertion(phoneAuthCredential)
  }
}
