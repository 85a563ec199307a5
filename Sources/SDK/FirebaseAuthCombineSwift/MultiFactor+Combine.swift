// Enrolls and uses second factors with futures.

public import FirebaseAuth
import PublisherSupport

#if canImport(Combine)
  public import Combine
#else
  public import OpenCombine
#endif

extension MultiFactor {
  /// Starts the enrollment of a second factor. The call starts immediately, without a subscriber.
  ///
  /// - Returns: a future of the result. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func getSession() -> Future<MultiFactorSession, any Error> {
    .starting { completion in getSessionWithCompletion { completion.complete($0, $1) } }
  }

  /// Enrolls a second factor. The call starts immediately, without a subscriber.
  ///
  /// - Parameters:
  ///   - assertion: the proof that the user has the factor.
  ///   - displayName: the name of the factor.
  /// - Returns: a future that completes when the server has responded. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func enroll(with assertion: MultiFactorAssertion, displayName: String?) -> Future<Void, any Error> {
    .starting { completion in
      enroll(with: assertion, displayName: displayName) { completion.complete($0) }
    }
  }

  /// Removes a second factor. The call starts immediately, without a subscriber.
  ///
  /// - Parameter factorInfo: the factor.
  /// - Returns: a future that completes when the server has responded. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func unenroll(with factorInfo: MultiFactorInfo) -> Future<Void, any Error> {
    .starting { completion in unenroll(with: factorInfo) { completion.complete($0) } }
  }

  /// Removes a second factor. The call starts immediately, without a subscriber.
  ///
  /// - Parameter factorUID: the factor's ID.
  /// - Returns: a future that completes when the server has responded. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func unenroll(withFactorUID factorUID: String) -> Future<Void, any Error> {
    .starting { completion in unenroll(withFactorUID: factorUID) { completion.complete($0) } }
  }
}

extension MultiFactorResolver {
  /// Completes a sign-in with a second factor. The call starts immediately, without a subscriber.
  ///
  /// - Parameter assertion: the proof that the user has the factor.
  /// - Returns: a future of the result. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func resolveSignIn(with assertion: MultiFactorAssertion) -> Future<AuthDataResult, any Error> {
    .starting { completion in resolveSignIn(with: assertion) { completion.complete($0, $1) } }
  }
}
