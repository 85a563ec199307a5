// Signs users in with passwords, credentials, custom tokens, or anonymously.

import FirebaseCore
import Foundation

extension Auth {
  /// Creates an account with an e-mail address and a password, and signs its user in.
  ///
  /// - Returns: the new user.
  /// - Throws: `emailAlreadyInUse`, `invalidEmail`, `missingEmail`, `weakPassword`, `operationNotAllowed`,
  ///   `networkError`.
  @discardableResult
  public func createUser(withEmail email: String, password: String) async throws -> AuthDataResult {
    guard !password.isEmpty else { throw AuthErrorCode.weakPassword.error("The password is empty.") }
    guard !email.isEmpty else { throw AuthErrorCode.missingEmail.error() }
    let response = try await backend.call(SignUpRequest(email: email, password: password))
    return try await signIn(
      response, info: AdditionalUserInfo(providerID: EmailAuthProvider.id, isNewUser: true))
  }

  /// Creates an account with an e-mail address and a password, and signs its user in.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password, with at least six characters unless the project requires more.
  ///   - completion: receives the new user or the error, on the main queue.
  public func createUser(
    withEmail email: String, password: String, completion: ((AuthDataResult?, (any Error)?) -> Void)? = nil
  ) {
    complete(completion) { try await self.createUser(withEmail: email, password: password) }
  }

  /// Signs in with an e-mail address and a password.
  ///
  /// - Throws: `wrongPassword` or `userNotFound`; `invalidCredential` instead if the project protects against
  ///   account enumeration. Also `invalidEmail`, `userDisabled`, `operationNotAllowed`, `tooManyRequests`,
  ///   `secondFactorRequired`, `networkError`.
  @discardableResult
  public func signIn(withEmail email: String, password: String) async throws -> AuthDataResult {
    try await signIn(with: EmailAuthProvider.credential(withEmail: email, password: password))
  }

  /// Signs in with an e-mail address and a password.
  ///
  /// - Parameters:
  ///   - email: the address.
  ///   - password: the password.
  ///   - completion: receives the user or the error, on the main queue.
  public func signIn(
    withEmail email: String, password: String, completion: ((AuthDataResult?, (any Error)?) -> Void)? = nil
  ) {
    complete(completion) { try await self.signIn(withEmail: email, password: password) }
  }

  /// Signs in with a credential of any provider.
  ///
  /// - Returns: the user, with the provider's data.
  /// - Throws: `invalidCredential`, `accountExistsWithDifferentCredential`, `userDisabled`, `operationNotAllowed`,
  ///   `secondFactorRequired`, `networkError`, and the errors of the provider.
  @discardableResult
  public func signIn(with credential: AuthCredential) async throws -> AuthDataResult {
    let result = try await authenticate(with: credential, .signIn)
    try setCurrentUser(result.user)
    return result
  }

  /// Signs in with a credential of any provider.
  ///
  /// - Parameters:
  ///   - credential: the credential.
  ///   - completion: receives the user or the error, on the main queue.
  public func signIn(
    with credential: AuthCredential, completion: ((AuthDataResult?, (any Error)?) -> Void)? = nil
  ) {
    complete(completion) { try await self.signIn(with: credential) }
  }

  /// Creates an anonymous account and signs its user in. If the current user is anonymous, it creates
  /// nothing.
  ///
  /// - Returns: the new user, or the current user if it is anonymous.
  /// - Throws: `operationNotAllowed`, `adminRestrictedOperation`, `networkError`.
  @discardableResult
  public func signInAnonymously() async throws -> AuthDataResult {
    if let user = currentUser, user.isAnonymous { return AuthDataResult(user: user) }
    let response = try await backend.call(SignUpRequest())
    return try await signIn(
      response, isAnonymous: true, info: AdditionalUserInfo(providerID: "", isNewUser: true))
  }

  /// Creates an anonymous account and signs its user in. If the current user is anonymous, it creates
  /// nothing.
  ///
  /// - Parameter completion: receives the user or the error, on the main queue.
  public func signInAnonymously(completion: ((AuthDataResult?, (any Error)?) -> Void)? = nil) {
    complete(completion) { try await self.signInAnonymously() }
  }

  /// Signs in with a custom token, which a server of the app signed with a service account.
  ///
  /// - Returns: the user, who is created at the first sign-in.
  /// - Throws: `invalidCustomToken`, `customTokenMismatch`, `userDisabled`, `networkError`.
  @discardableResult
  public func signIn(withCustomToken token: String) async throws -> AuthDataResult {
    let response = try await backend.call(CustomTokenSignInRequest(token: token))
    return try await signIn(
      response, info: AdditionalUserInfo(providerID: "", isNewUser: response.isNewUser ?? false))
  }

  /// Signs in with a custom token, which a server of the app signed with a service account.
  ///
  /// - Parameters:
  ///   - token: the token.
  ///   - completion: receives the user or the error, on the main queue.
  public func signIn(
    withCustomToken token: String, completion: ((AuthDataResult?, (any Error)?) -> Void)? = nil
  ) {
    complete(completion) { try await self.signIn(withCustomToken: token) }
  }

  // MARK: Internal

  private func signIn(
    _ response: SignInResponse, isAnonymous: Bool = false, info: AdditionalUserInfo
  ) async throws -> AuthDataResult {
    let user = try await user(of: response, isAnonymous: isAnonymous)
    try setCurrentUser(user)
    return AuthDataResult(user: user, additionalUserInfo: info)
  }

  /// Exchanges a credential for a user, without making it the current user.
  func authenticate(with credential: AuthCredential, _ use: CredentialUse) async throws -> AuthDataResult {
    let response = try await credential.exchange(use, backend)
    return AuthDataResult(
      user: try await user(of: response), additionalUserInfo: AdditionalUserInfo(response, of: credential),
      credential: OAuthCredential(response))
  }

  /// Makes the user of a response, with the data of the account.
  ///
  /// - Throws: `secondFactorRequired` if the response has no tokens yet.
  func user(of response: SignInResponse, isAnonymous: Bool = false) async throws -> User {
    guard let tokens = UserTokens(response, now: clock.now()) else {
      if let error = MultiFactorResolver.error(for: response, self) { throw error }
      throw AuthInternalError.unexpectedResponse.error()
    }
    var record = UserRecord(uid: response.localId ?? "", tokens: tokens)
    record.isAnonymous = isAnonymous
    record.tenantID = tenantID
    let user = User(record: record, auth: self)
    try await user.loadAccount()
    guard !user.uid.isEmpty else { throw AuthInternalError.unexpectedResponse.error() }
    return user
  }
}

extension UserTokens {
  /// The tokens of a sign-in; nil without tokens.
  init?(_ response: SignInResponse, now: Date) {
    self.init(
      idToken: response.idToken, refreshToken: response.refreshToken, expiresIn: response.expiresIn, now: now)
  }
}
