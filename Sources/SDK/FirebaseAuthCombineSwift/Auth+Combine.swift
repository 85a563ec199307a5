// Signs users in and observes the current user with futures and publishers.

import Dispatch
public import FirebaseAuth
import PublisherSupport

#if canImport(Combine)
  public import Combine
#else
  public import OpenCombine
#endif

extension Auth {
  /// Publishes the user when it changes.
  ///
  /// ```swift
  /// let cancellable = Auth.auth().authStateDidChangePublisher()
  ///   .sink { user in print(user?.uid ?? "signed out") }
  /// ```
  ///
  /// - Returns: a publisher of the current user, and then of each user who signs in, or nil after a sign-out.
  ///   It publishes on the main queue and never completes.
  public func authStateDidChangePublisher() -> AnyPublisher<User?, Never> {
    ListenerPublisher<User?, Never>(on: .main) { receive in
      let handle = self.addStateDidChangeListener { _, user in receive(.success(user)) }
      return { self.removeStateDidChangeListener(handle) }
    }.eraseToAnyPublisher()
  }

  /// Publishes the user when the user or the ID token changes.
  ///
  /// - Returns: a publisher of the current user, and then of the user after each change of the user or the ID
  ///   token, or nil after a sign-out. It publishes on the main queue and never completes.
  public func idTokenDidChangePublisher() -> AnyPublisher<User?, Never> {
    ListenerPublisher<User?, Never>(on: .main) { receive in
      let handle = self.addIDTokenDidChangeListener { _, user in receive(.success(user)) }
      return { self.removeIDTokenDidChangeListener(handle) }
    }.eraseToAnyPublisher()
  }

  /// Makes a user the current user. The call starts immediately, without a subscriber.
  ///
  /// - Parameter user: a user of the same project and tenant.
  /// - Returns: a future that completes when the server has responded. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func updateCurrentUser(_ user: User) -> Future<Void, any Error> {
    .starting { completion in updateCurrentUser(user) { completion.complete($0) } }
  }

  /// Signs in as an anonymous user. The call starts immediately, without a subscriber.
  ///
  /// - Returns: a future of the result. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func signInAnonymously() -> Future<AuthDataResult, any Error> {
    .starting { completion in signInAnonymously { completion.complete($0, $1) } }
  }

  /// Creates an account with a password and signs in. The call starts immediately, without a subscriber.
  ///
  /// - Parameters:
  ///   - email: the account's address.
  ///   - password: the password.
  /// - Returns: a future of the result. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func createUser(withEmail email: String, password: String) -> Future<AuthDataResult, any Error> {
    .starting { completion in
      createUser(withEmail: email, password: password) { completion.complete($0, $1) }
    }
  }

  /// Signs in with a password. The call starts immediately, without a subscriber.
  ///
  /// - Parameters:
  ///   - email: the account's address.
  ///   - password: the password.
  /// - Returns: a future of the result. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func signIn(withEmail email: String, password: String) -> Future<AuthDataResult, any Error> {
    .starting { completion in
      signIn(withEmail: email, password: password) { completion.complete($0, $1) }
    }
  }

  /// Signs in with a link from an e-mail. The call starts immediately, without a subscriber.
  ///
  /// - Parameters:
  ///   - email: the account's address.
  ///   - link: the link.
  /// - Returns: a future of the result. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func signIn(withEmail email: String, link: String) -> Future<AuthDataResult, any Error> {
    .starting { completion in signIn(withEmail: email, link: link) { completion.complete($0, $1) } }
  }

  /// Signs in with a token that a server of the app issued. The call starts immediately, without a subscriber.
  ///
  /// - Parameter token: the custom token.
  /// - Returns: a future of the result. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func signIn(withCustomToken token: String) -> Future<AuthDataResult, any Error> {
    .starting { completion in signIn(withCustomToken: token) { completion.complete($0, $1) } }
  }

  /// Signs in with a credential of a provider. The call starts immediately, without a subscriber.
  ///
  /// - Parameter credential: the credential.
  /// - Returns: a future of the result. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func signIn(with credential: AuthCredential) -> Future<AuthDataResult, any Error> {
    .starting { completion in signIn(with: credential) { completion.complete($0, $1) } }
  }

  /// Sends a sign-in link. The call starts immediately, without a subscriber.
  ///
  /// - Parameters:
  ///   - email: the recipient.
  ///   - actionCodeSettings: the URL that the link opens.
  /// - Returns: a future that completes when the server has responded. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func sendSignInLink(
    toEmail email: String, actionCodeSettings: ActionCodeSettings
  ) -> Future<Void, any Error> {
    .starting { completion in
      sendSignInLink(toEmail: email, actionCodeSettings: actionCodeSettings) { completion.complete($0) }
    }
  }

  /// Sets a new password with the action code of an e-mail. The call starts immediately, without a
  /// subscriber.
  ///
  /// - Parameters:
  ///   - code: the code of the e-mail.
  ///   - newPassword: the new password.
  /// - Returns: a future that completes when the server has responded. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func confirmPasswordReset(withCode code: String, newPassword: String) -> Future<Void, any Error> {
    .starting { completion in
      confirmPasswordReset(withCode: code, newPassword: newPassword) { completion.complete($0) }
    }
  }

  /// Verifies the action code of a password reset. The call starts immediately, without a subscriber.
  ///
  /// - Parameter code: the code of the e-mail.
  /// - Returns: a future of the account's address. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func verifyPasswordResetCode(_ code: String) -> Future<String, any Error> {
    .starting { completion in verifyPasswordResetCode(code) { completion.complete($0, $1) } }
  }

  /// Gets the operation of an action code from an e-mail. The call starts immediately, without a subscriber.
  ///
  /// - Parameter code: the code of the e-mail.
  /// - Returns: a future of the result. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func checkActionCode(code: String) -> Future<ActionCodeInfo, any Error> {
    .starting { completion in checkActionCode(code) { completion.complete($0, $1) } }
  }

  /// Applies an action code from an e-mail. The call starts immediately, without a subscriber.
  ///
  /// - Parameter code: the code of the e-mail.
  /// - Returns: a future that completes when the server has responded. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func applyActionCode(code: String) -> Future<Void, any Error> {
    .starting { completion in applyActionCode(code) { completion.complete($0) } }
  }

  /// Sends an e-mail with a link that resets the password. The call starts immediately, without a subscriber.
  ///
  /// - Parameter email: the account's address.
  /// - Returns: a future that completes when the server has responded. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func sendPasswordReset(withEmail email: String) -> Future<Void, any Error> {
    .starting { completion in sendPasswordReset(withEmail: email) { completion.complete($0) } }
  }

  /// Sends an e-mail with a link that resets the password. The call starts immediately, without a subscriber.
  ///
  /// - Parameters:
  ///   - email: the account's address.
  ///   - actionCodeSettings: the URL that the link opens.
  /// - Returns: a future that completes when the server has responded. It fails with the same error as the variant
  ///   with a completion handler.
  @discardableResult
  public func sendPasswordReset(
    withEmail email: String, actionCodeSettings: ActionCodeSettings
  ) -> Future<Void, any Error> {
    .starting { completion in
      sendPasswordReset(withEmail: email, actionCodeSettings: actionCodeSettings) { completion.complete($0) }
    }
  }
}
