// Multi-factor authentication: enrolls and removes second factors.

public import Foundation

/// The second factors of a user.
open class MultiFactor: NSObject, NSSecureCoding, @unchecked Sendable {
  // SAFETY: the only property is a constant.
  private let user: User

  init(_ user: User) {
    self.user = user
    super.init()
  }

  /// The enrolled factors when the account was last read.
  open var enrolledFactors: [MultiFactorInfo] { user.record.factors.map(MultiFactorInfo.make) }

  /// Begins an enrollment, and returns its session.
  ///
  /// - Throws: the errors of `User.getIDToken()`.
  open func session() async throws -> MultiFactorSession {
    MultiFactorSession(
      .enrollment(idToken: try await user.token(forcingRefresh: false)), try user.requireAuth())
  }

  /// Begins an enrollment, and passes its session to the completion.
  open func getSessionWithCompletion(_ completion: ((MultiFactorSession?, (any Error)?) -> Void)?) {
    complete(completion) { try await self.session() }
  }

  /// Enrolls a factor. Other devices must sign in again.
  ///
  /// - Parameters:
  ///   - assertion: the proof that the user has the factor.
  ///   - displayName: a name by which the user recognises the factor.
  /// - Throws: `invalidVerificationCode`, `secondFactorAlreadyEnrolled`, `unverifiedEmail`, `requiresRecentLogin`.
  open func enroll(with assertion: MultiFactorAssertion, displayName: String?) async throws {
    try await user.updates.run { [user] in
      try await user.withToken { token, auth in
        try self.storeTokens(
          try await assertion.enroll(idToken: token, displayName: displayName, auth.backend), auth)
      }
      try await user.loadAccount()
    }
  }

  /// Enrolls a factor. Other devices must sign in again.
  open func enroll(
    with assertion: MultiFactorAssertion, displayName: String?, completion: (((any Error)?) -> Void)?
  ) {
    completeVoid(completion) { try await self.enroll(with: assertion, displayName: displayName) }
  }

  /// Removes a factor.
  ///
  /// - Throws: `multiFactorInfoNotFound`, `requiresRecentLogin`.
  open func unenroll(with factorInfo: MultiFactorInfo) async throws {
    try await unenroll(withFactorUID: factorInfo.uid)
  }

  /// Removes a factor.
  open func unenroll(with factorInfo: MultiFactorInfo, completion: (((any Error)?) -> Void)?) {
    unenroll(withFactorUID: factorInfo.uid, completion: completion)
  }

  /// Removes a factor by its enrollment ID.
  ///
  /// - Throws: `multiFactorInfoNotFound`, `requiresRecentLogin`.
  open func unenroll(withFactorUID factorUID: String) async throws {
    try await user.updates.run { [user] in
      try await user.withToken { token, auth in
        let request = WithdrawRequest(idToken: token, mfaEnrollmentId: factorUID)
        try self.storeTokens(try await auth.backend.call(request), auth)
      }
      try await user.loadAccount()
    }
  }

  /// Removes a factor by its enrollment ID.
  open func unenroll(withFactorUID factorUID: String, completion: (((any Error)?) -> Void)?) {
    completeVoid(completion) { try await self.unenroll(withFactorUID: factorUID) }
  }

  /// Stores the new tokens of a change of the factors. A response without tokens changes nothing.
  private func storeTokens(_ response: FactorTokensResponse, _ auth: Auth) throws {
    guard
      let tokens = UserTokens(
        idToken: response.idToken, refreshToken: response.refreshToken, expiresIn: nil, now: auth.clock.now())
    else { return }
    user.change { $0.tokens = tokens }
    try auth.saveChanges(of: user)
  }

  /// Always true.
  public static var supportsSecureCoding: Bool { true }

  /// Encodes the user.
  public func encode(with coder: NSCoder) {
    coder.encode(user, forKey: "user")
  }

  /// Decodes the user; nil for an archive of another type.
  public required init?(coder: NSCoder) {
    guard let user = coder.decodeObject(of: User.self, forKey: "user") else { return nil }
    self.user = user
    super.init()
  }
}

extension User {
  /// The second factors of the user.
  public var multiFactor: MultiFactor { MultiFactor(self) }
}

/// A session: an enrollment or a sign-in that has begun.
open class MultiFactorSession: NSObject, @unchecked Sendable {
  // SAFETY: both properties are constants.
  enum Kind: Sendable {
    case enrollment(idToken: String)
    case signIn(pendingCredential: String)
  }

  let kind: Kind
  let auth: Auth

  init(_ kind: Kind, _ auth: Auth) {
    self.kind = kind
    self.auth = auth
    super.init()
  }

  func idToken() throws -> String {
    guard case .enrollment(let token) = kind else { throw AuthErrorCode.invalidMultiFactorSession.error() }
    return token
  }

  func pendingCredential() throws -> String {
    guard case .signIn(let credential) = kind else { throw AuthErrorCode.invalidMultiFactorSession.error() }
    return credential
  }
}
