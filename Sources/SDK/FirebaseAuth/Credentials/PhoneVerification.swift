// Phone verification: sends verification codes for a sign-in, for the enrollment of a second factor, and for
// its use.

import Dispatch
public import Foundation

/// Presents the web page on which Google's servers verify the app. This library presents no page, so the
/// protocol has no requirements and the object is not called.
public protocol AuthUIDelegate: NSObjectProtocol {}

extension PhoneAuthProvider {
  /// Sends a message with a verification code.
  ///
  /// - Parameters:
  ///   - phoneNumber: the number, with a plus sign and the country code.
  ///   - uiDelegate: not called.
  ///   - multiFactorSession: the session from `MultiFactor.session()` to enroll the phone as a second factor;
  ///     nil to sign in with the number.
  /// - Returns: the verification ID.
  /// - Throws: `missingPhoneNumber`, `invalidPhoneNumber`, `quotaExceeded`, `networkError`;
  ///   `missingClientIdentifier` if the server requires a proof of the app. With a session also
  ///   `invalidMultiFactorSession`, `unverifiedEmail`, `secondFactorAlreadyEnrolled`.
  public func verifyPhoneNumber(
    _ phoneNumber: String, uiDelegate: (any AuthUIDelegate)? = nil,
    multiFactorSession: MultiFactorSession? = nil
  ) async throws -> String {
    try await sendCode(to: phoneNumber, multiFactorSession)
  }

  /// Sends a message with a verification code.
  ///
  /// - Parameters:
  ///   - phoneNumber: the number, with a plus sign and the country code.
  ///   - uiDelegate: not called.
  ///   - completion: receives the verification ID or the error, on the main actor.
  public func verifyPhoneNumber(
    _ phoneNumber: String, uiDelegate: (any AuthUIDelegate)? = nil,
    completion: (@MainActor (String?, (any Error)?) -> Void)?
  ) {
    complete(onMainQueue(completion)) { try await self.sendCode(to: phoneNumber, nil) }
  }

  /// Sends a message with a verification code.
  ///
  /// - Parameters:
  ///   - phoneNumber: the number, with a plus sign and the country code.
  ///   - uiDelegate: not called.
  ///   - multiFactorSession: the session from `MultiFactor.session()` to enroll the phone as a second factor;
  ///     nil to sign in with the number.
  ///   - completion: receives the verification ID or the error, on the main actor.
  public func verifyPhoneNumber(
    _ phoneNumber: String, uiDelegate: (any AuthUIDelegate)? = nil, multiFactorSession: MultiFactorSession?,
    completion: (@MainActor (String?, (any Error)?) -> Void)?
  ) {
    complete(onMainQueue(completion)) { try await self.sendCode(to: phoneNumber, multiFactorSession) }
  }

  /// Sends a code to the phone that is the second factor of the sign-in.
  ///
  /// - Parameters:
  ///   - multiFactorInfo: the phone, from the hints of the resolver.
  ///   - uiDelegate: not called.
  ///   - multiFactorSession: the session of the resolver.
  /// - Returns: the verification ID.
  /// - Throws: `missingMultiFactorSession`, `invalidMultiFactorSession`, `multiFactorInfoNotFound`, `quotaExceeded`.
  public func verifyPhoneNumber(
    with multiFactorInfo: PhoneMultiFactorInfo, uiDelegate: (any AuthUIDelegate)? = nil,
    multiFactorSession: MultiFactorSession?
  ) async throws -> String {
    guard let multiFactorSession else { throw AuthErrorCode.missingMultiFactorSession.error() }
    let request = StartFactorSignInRequest(
      mfaPendingCredential: try multiFactorSession.pendingCredential(), mfaEnrollmentId: multiFactorInfo.uid)
    let response = try await multiFactorSession.auth.backend.call(request)
    return try verificationID(response.phoneResponseInfo?.sessionInfo)
  }

  /// Sends a code to the phone that is the second factor of the sign-in.
  ///
  /// - Parameters:
  ///   - multiFactorInfo: the phone, from the hints of the resolver.
  ///   - uiDelegate: not called.
  ///   - multiFactorSession: the session of the resolver.
  ///   - completion: receives the verification ID or the error, on the main queue.
  public func verifyPhoneNumber(
    with multiFactorInfo: PhoneMultiFactorInfo, uiDelegate: (any AuthUIDelegate)? = nil,
    multiFactorSession: MultiFactorSession?, completion: ((String?, (any Error)?) -> Void)?
  ) {
    complete(completion) {
      try await self.verifyPhoneNumber(with: multiFactorInfo, multiFactorSession: multiFactorSession)
    }
  }

  private func sendCode(to phoneNumber: String, _ session: MultiFactorSession?) async throws -> String {
    guard !phoneNumber.isEmpty else { throw AuthErrorCode.missingPhoneNumber.error() }
    guard let session else {
      return try verificationID(
        try await auth.backend.call(VerificationCodeRequest(phoneNumber: phoneNumber)).sessionInfo)
    }
    let request = StartEnrollmentRequest(
      idToken: try session.idToken(), phoneEnrollmentInfo: .init(phoneNumber: phoneNumber))
    return try verificationID(try await session.auth.backend.call(request).phoneSessionInfo?.sessionInfo)
  }

  private func verificationID(_ sessionInfo: String?) throws -> String {
    guard let sessionInfo else { throw AuthInternalError.unexpectedResponse.error() }
    return sessionInfo
  }
}

/// Wraps a handler that is isolated to the main actor. The result is called on the main queue, which is the
/// main actor's executor.
private func onMainQueue(
  _ completion: (@MainActor (String?, (any Error)?) -> Void)?
) -> ((String?, (any Error)?) -> Void)? {
  completion.map { completion in
    { id, error in MainActor.assumeIsolated { completion(id, error) } }
  }
}
