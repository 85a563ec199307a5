// The principal on whose behalf an operation runs. Endpoints derive it from credentials. Both engines and all policies
// use it to decide about operations.
//
// Invariant: a principal with a project has rights in that project only. `acting(in:)` reduces it to nobody in every
// other project.

/// The authenticated caller of an operation.
package struct Principal: Hashable, Sendable {
  /// The kind of a caller.
  package enum Identity: Hashable, Sendable {
    /// A caller without credentials.
    case nobody
    /// A signed-in user, to whom rules apply.
    case user(User)
    /// A service account, to which no rules apply.
    case service(ServiceRole)
  }

  /// The project of the credentials; nil for every project, as for the emulator's owner.
  package let project: String?
  /// The identity of the principal.
  package let identity: Identity
  /// The issuer of the credentials, such as the claim `iss`; nil if none is known.
  package let issuer: String?
  /// The ID of the service account's key from which the credentials derive; nil for users and if none is known.
  package let keyID: String?
  /// When the credentials expire, in seconds since 1970; nil for never.
  package let expiry: Int64?

  /// Makes a principal.
  /// - Parameters:
  ///   - project: the project of the credentials; nil for every project.
  ///   - issuer: the issuer of the credentials; nil if none is known.
  ///   - keyID: the service account's key from which the credentials derive; nil if none is known.
  ///   - expiry: when the credentials expire, in seconds since 1970; nil for never.
  package init(
    _ identity: Identity, project: String? = nil, issuer: String? = nil, keyID: String? = nil,
    expiry: Int64? = nil
  ) {
    self.identity = identity
    self.project = project
    self.issuer = issuer
    self.keyID = keyID
    self.expiry = expiry
  }

  /// A caller without credentials.
  package static let nobody = Principal(.nobody)

  /// An administrator of every project: the emulator's `owner`, and the server itself.
  package static let administrator = Principal(.service(.administrator))

  /// A user of every project whose credentials never expire.
  package static func user(_ id: String, claims: Claims = .none) -> Principal {
    Principal(.user(User(id: id, claims: claims)))
  }

  /// The principal as it acts in a project: the same principal, or ``nobody`` if its credentials are for another
  /// project.
  package func acting(in project: String) -> Principal {
    guard let credentialProject = self.project else { return self }
    return credentialProject.utf8.elementsEqual(project.utf8) ? self : .nobody
  }

  /// Whether the credentials have expired.
  /// - Parameter time: the current time in microseconds since 1970.
  package func hasExpired(at time: Int64) -> Bool {
    guard let expiry else { return false }
    let (limit, isTooLarge) = expiry.multipliedReportingOverflow(by: 1_000_000)
    return isTooLarge ? expiry < 0 : time >= limit
  }

  /// The user; nil for nobody and for service accounts.
  package var user: User? {
    if case .user(let user) = identity { return user }
    return nil
  }

  /// The role of a service account; nil for users and nobody.
  package var role: ServiceRole? {
    if case .service(let role) = identity { return role }
    return nil
  }

  /// Whether the principal is a service account with all rights.
  package var isAdministrator: Bool { role == .administrator }
}

/// The rights of a service account.
package enum ServiceRole: String, Hashable, Sendable, CaseIterable {
  /// Reads all data.
  case reader
  /// Reads and writes all data.
  case writer
  /// Reads and writes all data, and changes rules, indexes and settings.
  case administrator
}

/// A signed-in user.
package struct User: Hashable, Sendable {
  /// The tenant of the user; nil for none.
  package let tenant: String?
  /// The user's id, unique in its project and tenant.
  package let id: String
  /// The claims of the verified token.
  package let claims: Claims
  /// Whether the claims are the complete value of `auth` in the rules of the Realtime Database. True if an
  /// administrator acts as this user, or if a database secret has signed the user's token.
  package let isOverride: Bool

  /// Makes a user.
  package init(id: String, tenant: String? = nil, claims: Claims, isOverride: Bool = false) {
    self.id = id
    self.tenant = tenant
    self.claims = claims
    self.isOverride = isOverride
  }

  /// Whether all parts are equal. Ids are compared as bytes: different Unicode normalization forms are different users.
  package static func == (a: User, b: User) -> Bool {
    a.id.utf8.elementsEqual(b.id.utf8) && a.isOverride == b.isOverride && a.claims == b.claims
      && (a.tenant.map { Array($0.utf8) } == b.tenant.map { Array($0.utf8) })
  }

  /// Hashes the id.
  package func hash(into hasher: inout Hasher) { for byte in id.utf8 { hasher.combine(byte) } }
}
