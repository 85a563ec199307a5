// Changes a user by futures.

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
  /// - Returns: a future of the result; it fails with the same error as the variant with a completion handler.
  @discardableResult
  public func link(with credential: AuthCredential) -> Future<AuthDataResult, any Error> {
    .starting { completion in link(with: credential) { completion.complete($0, $1) } }
  }

  /// Signs the same user in again, for calls that demand a recent sign-in. The call starts immediately, without a subscriber.
  ///
  /// - Parameter credential: a credential of the account.
  /// - Returns: a future of the result; it fails with the same error as the variant with a completion handler.
  @discardableResult
  public func reauthenticate(with credential: AuthCredential) -> Future<AuthDataResult, any Error> {
    .starting { completion in reauthenticate(with: credential) { completion.complete($0, $1) } }
  }

  /// Removes a provider from the account. The call starts immediately, without a subscriber.
  ///
  /// - Parameter provider: the provider's ID.
  /// - Returns: a future of this user; it fails with the same error as the variant with a completion handler.
  @discardableResult
  public func unlink(fromProvider provider: String) -> Future<User, any Error> {
    .starting { completion in unlink(fromProvider: provider) { completion.complete($0, $1) } }
  }

  /// Sends an e-mail that verifies the account's address. The call starts immediately, without a subscriber.
  ///
  /// - Returns: a future that completes when the server has answered; it fails with the same error as the variant with a completion handler.
  @discardableResult
  public func sendEmailVerification() -> Future<Void, any Error> {
    .starting { completion in sendEmailVerification { completion.complete($0) } }
  }

  /// Sends an e-mail that verifies the account's address. The call starts immediately, without a subscriber.
  ///
  /// - Parameter actionCodeSettings: the address that the link opens.
  /// - Returns: a future that completes when the server has answered; it fails with the same error as the variant with a completion handler.
  @discardableResult
  public func sendEmailVerification(with actionCodeSettings: ActionCodeSettings) -> Future<Void, any Error> {
    .starting { completion in
      sendEmailVerification(with: actionCodeSettings) { completion.complete($0) }
    }
  }
}
