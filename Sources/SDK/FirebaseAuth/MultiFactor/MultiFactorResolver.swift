// The multi-factor resolver: completes a sign-in that requires a second factor.

public import Foundation

/// Completes a sign-in. The app gets it from the `userInfo` of the error `secondFactorRequired`, with the key
/// `AuthErrorUserInfoMultiFactorResolverKey`.
open class MultiFactorResolver: NSObject, @unchecked Sendable {
  // SAFETY: all properties are constants.
  /// The session of the sign-in that has begun.
  public let session: MultiFactorSession
  /// The user's second factors.
  public let hints: [MultiFactorInfo]
  /// The `Auth` with which the user signs in.
  public let auth: Auth

  init(session: MultiFactorSession, hints: [MultiFactorInfo], auth: Auth) {
    self.session = session
    self.hints = hints
    self.auth = auth
    super.init()
  }

  /// The error for a response without tokens, because a second factor is pending; nil for other responses.
  static func error(for response: SignInResponse, _ auth: Auth) -> NSError? {
    guard let credential = response.mfaPendingCredential else { return nil }
    let factors = (response.mfaInfo ?? []).compactMap { UserRecord.Factor($0).map(MultiFactorInfo.make) }
    let resolver = MultiFactorResolver(
      session: MultiFactorSession(.signIn(pendingCredential: credential), auth), hints: factors, auth: auth)
    return AuthErrorCode.secondFactorRequired.error(
      details: [AuthErrorUserInfoMultiFactorResolverKey: resolver])
  }

  /// Completes the sign-in.
  ///
  /// - Parameter assertion: the proof that the user has one of the factors.
  /// - Returns: the user.
  /// - Throws: `invalidVerificationCode`, `invalidMultiFactorSession`, `sessionExpired`, `userDisabled`.
  open func resolveSignIn(with assertion: MultiFactorAssertion) async throws -> AuthDataResult {
    let tokens = try await assertion.signIn(pendingCredential: session.pendingCredential(), auth.backend)
    let response = SignInResponse(idToken: tokens.idToken, refreshToken: tokens.refreshToken)
    let user = try await auth.user(of: response)
    try auth.setCurrentUser(user)
    return AuthDataResult(user: user)
  }

  /// Completes the sign-in.
  open func resolveSignIn(
    with assertion: MultiFactorAssertion, completion: ((AuthDataResult?, (any Error)?) -> Void)? = nil
  ) {
    complete(completion) { try await self.resolveSignIn(with: assertion) }
  }
}
