// One user account of a project or of a tenant, with every property that the store keeps.

/// A user account.
package struct Account: Sendable, Equatable {
  /// A sign-in provider that is linked to the account, other than password and phone.
  package struct Provider: Sendable, Equatable {
    /// The provider's ID, such as `google.com`.
    package var id: String
    /// The user's ID at the provider.
    package var rawID: String
    package var federatedID: String?
    package var displayName: String?
    package var photoURL: String?
    package var email: String?
    package var phoneNumber: String?
    package var screenName: String?

    /// Creates a linked provider.
    package init(id: String, rawID: String) {
      self.id = id
      self.rawID = rawID
    }
  }

  /// A second factor of sign-in.
  package struct SecondFactor: Sendable, Equatable {
    /// The proof that the factor requires.
    package enum Kind: Sendable, Equatable {
      /// A code in a text message to this number.
      case phone(String)
      /// A time-based code (RFC 6238). `lastStep` is the last time step whose code was used.
      case totp(secret: [UInt8], lastStep: Int64)
    }

    package var id: String
    package var displayName: String?
    /// An RFC 3339 time.
    package var enrolledAt: String
    package var kind: Kind

    /// Creates a factor.
    package init(id: String, displayName: String?, enrolledAt: String, kind: Kind) {
      self.id = id
      self.displayName = displayName
      self.enrolledAt = enrolledAt
      self.kind = kind
    }

    /// The number of a phone factor; nil for another kind.
    package var phoneNumber: String? { if case .phone(let number) = kind { number } else { nil } }
  }

  /// A passkey of the emulator, which does not verify WebAuthn.
  package struct Passkey: Sendable, Equatable {
    package var credentialID: String
    package var name: String?

    /// Creates a passkey.
    package init(credentialID: String, name: String?) {
      self.credentialID = credentialID
      self.name = name
    }
  }

  /// The account's ID, unique in its tenant.
  package var localID: String
  /// The tenant; nil for accounts of the project itself.
  package var tenantID: String?
  /// The canonical e-mail address: ``EmailAddress/canonical(_:)``.
  package var email: String?
  /// The address before the first change. The user can return to it by undoing a change.
  package var initialEmail: String?
  /// Nil until an operation sets it.
  package var isEmailVerified: Bool?
  package var displayName: String?
  package var photoURL: String?
  package var screenName: String?
  package var phoneNumber: String?
  /// Nil until an operation sets it; nil counts as enabled.
  package var disabled: Bool?
  package var password: StoredPassword?
  /// Milliseconds since the Unix epoch.
  package var passwordUpdatedAt: Int64?
  /// Milliseconds since the Unix epoch.
  package var createdAt: Int64
  /// Milliseconds since the Unix epoch.
  package var lastLoginAt: Int64?
  /// Milliseconds since the Unix epoch.
  package var lastRefreshAt: Int64?
  /// Seconds since the Unix epoch. Tokens issued before this time are revoked.
  package var validSince: Int64?
  /// The custom claims as JSON text.
  package var customAttributes: String?
  /// Whether the account has signed in with a custom token.
  package var usesCustomToken = false
  /// Whether the account has signed in with a link in an e-mail.
  package var usesEmailLink = false
  /// The linked providers. Nil if the account never had any provider, password or phone.
  package var providers: [Provider]?
  package var secondFactors: [SecondFactor] = []
  package var passkeys: [Passkey] = []

  /// Creates an account without any way to sign in.
  /// - Parameter createdAt: milliseconds since the Unix epoch.
  package init(localID: String, tenantID: String?, createdAt: Int64) {
    self.localID = localID
    self.tenantID = tenantID
    self.createdAt = createdAt
  }

  /// Whether the account has an ID. IDs are compared as bytes: different Unicode normalization forms are different accounts.
  package func hasID(_ id: String) -> Bool { localID.utf8.elementsEqual(id.utf8) }

  /// Whether an administrator disabled the account.
  package var isDisabled: Bool { disabled == true }

  /// Whether the account has an e-mail address and a password or an e-mail link to sign in with it.
  package var hasPasswordProvider: Bool { email != nil && (password != nil || usesEmailLink) }

  /// Adds a linked provider or replaces the one with the same ID.
  package mutating func link(_ provider: Provider) {
    var list = providers ?? []
    if let index = list.firstIndex(where: { $0.id == provider.id }) {
      list[index] = provider
    } else {
      list.append(provider)
    }
    providers = list
  }

  /// The account. If it can sign in with its address or phone number, an empty list of providers replaces nil.
  package var withProviderList: Account {
    guard providers == nil, hasPasswordProvider || phoneNumber != nil else { return self }
    var account = self
    account.providers = []
    return account
  }
}

/// E-mail addresses, checked to the same extent as by the Identity Toolkit API.
package enum EmailAddress {
  /// Maximum bytes of an address (RFC 3696, erratum 1690, allows 254).
  private static let maximumBytes = 320

  /// Whether a text has exactly one `@`, with text on both sides.
  package static func isValid(_ text: String) -> Bool {
    guard text.utf8.count <= maximumBytes else { return false }
    let parts = text.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    return parts.count == 2 && parts.allSatisfy { !$0.isEmpty }
  }

  /// The form in which addresses are stored and compared.
  package static func canonical(_ text: String) -> String { text.lowercased() }
}

/// Phone numbers, checked to the same extent as by the Identity Toolkit API.
package enum PhoneNumber {
  /// Maximum bytes; E.164 numbers have at most 15 digits, and visual separators are tolerated.
  private static let maximumBytes = 64

  /// Whether a text begins with `+`.
  package static func isValid(_ text: String) -> Bool {
    text.utf8.first == UInt8(ascii: "+") && text.utf8.count > 1 && text.utf8.count <= maximumBytes
  }

  /// The number with all but its last four digits replaced by `*`.
  package static func masked(_ number: String) -> String {
    let digits = number.dropFirst(number.first == "+" ? 1 : 0)
    let hidden = max(0, digits.count - 4)
    return "+" + String(repeating: "*", count: hidden) + digits.suffix(4)
  }
}
