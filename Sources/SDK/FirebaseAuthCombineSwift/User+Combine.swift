// Changes a user's account with futures.

public import FirebaseAuth
import PublisherSupport

#if canImport(Combine)
  public import Combine
#else
  public import OpenCombine
#endif

extension User {
  /// Links a credential of a provider to the account. The call starts immediately, without a subscriber.
  ///
  /// - Parameter credential: the credential.
  /// - Returns: a future of the result. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func link(with credential: AuthCredential) -> Future<AuthDataResult, any Error> {
    .starting { completion in link(with: credential) { completion.complete($0, $1) } }
  }

  /// Signs in again. Operations that fail with `requiresRecentLogin` succeed after that. The call starts
  /// immediately, without a subscriber.
  ///
  /// - Parameter credential: a credential of the account.
  /// - Returns: a future of the result. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func reauthenticate(with credential: AuthCredential) -> Future<AuthDataResult, any Error> {
    .starting { completion in reauthenticate(with: credential) { completion.complete($0, $1) } }
  }

  /// Removes a provider from the account. The call starts immediately, without a subscriber.
  ///
  /// - Parameter provider: the provider's ID.
  /// - Returns: a future of this user. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func unlink(fromProvider provider: String) -> Future<User, any Error> {
    .starting { completion in unlink(fromProvider: provider) { completion.complete($0, $1) } }
  }

  /// Sends an e-mail that verifies the account's address. The call starts immediately, without a subscriber.
  ///
  /// - Returns: a future that completes when the server has responded. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func sendEmailVerification() -> Future<Void, any Error> {
    .starting { completion in sendEmailVerification { completion.complete($0) } }
  }

  /// Sends an e-mail that verifies the account's address. The call starts immediately, without a subscriber.
  ///
  /// - Parameter actionCodeSettings: the URL that the link opens.
  /// - Returns: a future that completes when the server has responded. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func sendEmailVerification(with actionCodeSettings: ActionCodeSettings) -> Future<Void, any Error> {
    .starting { completion in
      sendEmailVerification(with: actionCodeSettings) { completion.complete($0) }
    }
  }
}
