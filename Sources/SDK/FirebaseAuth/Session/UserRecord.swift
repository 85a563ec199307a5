// The user record: the data of a signed-in user, which is stored between runs of the program.

import Foundation

/// The tokens of a user.
struct UserTokens: Codable, Equatable, Sendable {
  /// The ID token that the databases send.
  var idToken: String
  var refreshToken: String
  /// The time at which the ID token expires by this device's clock; nil if the server did not send it.
  var expiration: Date?

  /// The remaining validity in seconds below which a token is refreshed. It is that of Google's SDK.
  static let minimumValidity = 300.0

  /// Whether the ID token stays valid for longer than `minimumValidity`.
  func isValid(at now: Date) -> Bool {
    expiration.map { $0.timeIntervalSince(now) > Self.minimumValidity } ?? false
  }

  /// Reads the tokens of a response; nil if the response has no tokens.
  init?(idToken: String?, refreshToken: String?, expiresIn: String?, now: Date) {
    guard let idToken, !idToken.isEmpty, let refreshToken, !refreshToken.isEmpty else { return nil }
    self.idToken = idToken
    self.refreshToken = refreshToken
    let seconds = expiresIn.flatMap(TimeInterval.init) ?? Self.validity(of: idToken)
    expiration = seconds.flatMap { $0.isFinite ? now.addingTimeInterval($0) : nil }
  }

  /// The validity in seconds according to the token. Responses to second factors contain it only in the
  /// token.
  private static func validity(of idToken: String) -> TimeInterval? {
    guard let token = try? IDToken(idToken), let issued = token.date("iat"), let expiration = token.expiration
    else { return nil }
    return expiration.timeIntervalSince(issued)
  }
}

/// An account and its tokens.
struct UserRecord: Codable, Equatable, Sendable {
  /// The data of one identity provider.
  struct Provider: Codable, Equatable, Sendable {
    var providerID: String
    var uid: String
    var displayName: String?
    var photoURL: URL?
    var email: String?
    var phoneNumber: String?
  }

  /// An enrolled second factor.
  struct Factor: Codable, Equatable, Sendable {
    var uid: String
    var displayName: String?
    var enrollmentDate: Date?
    /// The masked phone number; nil for one-time passwords.
    var phoneNumber: String?
  }

  var uid: String
  var isAnonymous = false
  var email: String?
  var isEmailVerified = false
  var displayName: String?
  var photoURL: URL?
  var phoneNumber: String?
  var hasPassword = false
  var creationDate: Date?
  var lastSignInDate: Date?
  var tenantID: String?
  var providers: [Provider] = []
  var factors: [Factor] = []
  var tokens: UserTokens

  init(uid: String, tokens: UserTokens) {
    self.uid = uid
    self.tokens = tokens
  }

  /// Updates the record with the data of an account. This data does not contain whether the user is
  /// anonymous, but a user with a provider is not anonymous.
  mutating func update(with account: AccountInfo) {
    uid = account.localId ?? uid
    email = account.email
    isEmailVerified = account.emailVerified ?? false
    displayName = account.displayName
    photoURL = account.photoUrl.flatMap { URL(string: $0) }
    phoneNumber = account.phoneNumber
    hasPassword = account.passwordHash.map { !$0.isEmpty } ?? false
    creationDate = account.createdAt.flatMap(Self.date(milliseconds:))
    lastSignInDate = account.lastLoginAt.flatMap(Self.date(milliseconds:))
    providers = (account.providerUserInfo ?? []).compactMap { provider in
      guard let id = provider.providerId else { return nil }
      return Provider(
        providerID: id, uid: provider.rawId ?? provider.federatedId ?? "", displayName: provider.displayName,
        photoURL: provider.photoUrl.flatMap { URL(string: $0) }, email: provider.email,
        phoneNumber: provider.phoneNumber)
    }
    if !providers.isEmpty { isAnonymous = false }
    factors = (account.mfaInfo ?? []).compactMap(Factor.init)
  }

  private static func date(milliseconds: String) -> Date? {
    TimeInterval(milliseconds).flatMap { $0.isFinite ? Date(timeIntervalSince1970: $0 / 1000) : nil }
  }
}

extension UserRecord.Factor {
  /// Reads the data of a second factor; nil without an enrollment ID.
  init?(_ info: FactorInfo) {
    guard let id = info.mfaEnrollmentId else { return nil }
    uid = id
    displayName = info.displayName
    enrollmentDate = info.enrolledAt.flatMap { text in
      (try? Date(text, strategy: .iso8601))
        ?? (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
    }
    phoneNumber = info.phoneInfo
  }
}
