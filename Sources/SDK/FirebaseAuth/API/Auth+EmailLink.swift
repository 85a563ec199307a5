// Signs in with links that were sent by e-mail.

import FirebaseCore
import Foundation

extension Auth {
  /// Sends an e-mail with a link. The recipient signs in with the link.
  ///
  /// Stops the program unless `handleCodeInApp` is true.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - actionCodeSettings: the page or app that opens the link.
  /// - Throws: `missingEmail`, `invalidEmail`, `operationNotAllowed`, `missingContinueURI`, `invalidContinueURI`,
  ///   `unauthorizedDomain`, `tooManyRequests`, `networkError`.
  public func sendSignInLink(toEmail email: String, actionCodeSettings: ActionCodeSettings) async throws {
    guard actionCodeSettings.handleCodeInApp else {
      usageException("FIRAuthErrorDomain", "`handleCodeInApp` must be true when a sign-in link is sent")
    }
    var request = SendCodeRequest(.signIn, settings: actionCodeSettings)
    request.email = email
    _ = try await backend.call(request)
  }

  /// Sends an e-mail with a link. The recipient signs in with the link.
  ///
  /// Stops the program unless `handleCodeInApp` is true.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - actionCodeSettings: the page or app that opens the link.
  ///   - completion: receives nil or the error, on the main queue.
  public func sendSignInLink(
    toEmail email: String, actionCodeSettings: ActionCodeSettings, completion: (((any Error)?) -> Void)? = nil
  ) {
    completeVoid(completion) {
      try await self.sendSignInLink(toEmail: email, actionCodeSettings: actionCodeSettings)
    }
  }

  /// Whether a link is a sign-in link from `sendSignInLink(toEmail:actionCodeSettings:)`.
  public func isSignIn(withEmailLink link: String) -> Bool {
    ActionCodeURL.signInCode(of: link) != nil
  }

  /// Signs in with the link of an e-mail.
  ///
  /// Google's SDK stops the program for a string that is not a sign-in link. This SDK throws an error,
  /// because a link comes from outside the program.
  ///
  /// - Parameters:
  ///   - email: the address to which the link was sent.
  ///   - link: the link.
  /// - Returns: the user, who is created at the first sign-in.
  /// - Throws: `invalidActionCode`, `expiredActionCode`, `invalidEmail`, `userDisabled`, `networkError`.
  public func signIn(withEmail email: String, link: String) async throws -> AuthDataResult {
    try await signIn(with: EmailAuthProvider.credential(withEmail: email, link: link))
  }

  /// Signs in with the link of an e-mail.
  ///
  /// - Parameters:
  ///   - email: the address to which the link was sent.
  ///   - link: the link.
  ///   - completion: receives the user or the error, on the main queue.
  public func signIn(
    withEmail email: String, link: String, completion: ((AuthDataResult?, (any Error)?) -> Void)? = nil
  ) {
    complete(completion) { try await self.signIn(withEmail: email, link: link) }
  }

  /// Gets the sign-in methods of an e-mail address. The result is empty if the project protects against
  /// account enumeration.
  ///
  /// - Throws: `invalidEmail`, `networkError`.
  @available(*, deprecated, message: "Projects that protect against account enumeration return no methods.")
  public func fetchSignInMethods(forEmail email: String) async throws -> [String] {
    try await backend.call(SignInMethodsRequest(identifier: email)).signinMethods ?? []
  }

  /// Gets the sign-in methods of an e-mail address. The result is empty if the project protects against
  /// account enumeration.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - completion: receives the methods or the error, on the main queue.
  @available(*, deprecated, message: "Projects that protect against account enumeration return no methods.")
  public func fetchSignInMethods(
    forEmail email: String, completion: (([String]?, (any Error)?) -> Void)? = nil
  ) {
    complete(completion) {
      try await self.backend.call(SignInMethodsRequest(identifier: email)).signinMethods ?? []
    }
  }
}
