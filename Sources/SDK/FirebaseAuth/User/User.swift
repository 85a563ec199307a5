// A user: the data of an account and its tokens.
//
// Invariant: the record changes only under its lock. Operations that change the account run one after
// another.

public import Foundation
import FirebaseCore
import Locking

/// A user who signed in.
///
/// The object's identity stays the same when its data changes, for instance by `reload()`. Safe to use from
/// any thread.
open class User: NSObject, UserInfo, NSSecureCoding, @unchecked Sendable {
  // SAFETY: the record and the weak reference are behind locks; everything else is a constant.
  private struct Owner {
    weak var auth: Auth?
  }

  private let guardedRecord: Guarded<UserRecord>
  private let owner: Guarded<Owner>
  /// Orders the operations that change the account.
  let updates = SerialTasks()
  private let refresher = Guarded<TokenRefresher?>(nil)

  init(record: UserRecord, auth: Auth?) {
    guardedRecord = Guarded(record)
    owner = Guarded(Owner(auth: auth))
    super.init()
  }

  // MARK: Internal state

  var record: UserRecord { guardedRecord.withLock { $0 } }

  /// The `Auth` with which the user signed in; nil if it was released, or if the user was decoded.
  var auth: Auth? { owner.withLock { $0.auth } }

  var tokenState: TokenState {
    guardedRecord.withLock { TokenState(userID: $0.uid, token: $0.tokens.idToken) }
  }

  /// Sets the `Auth` through which the user sends requests.
  func attach(to auth: Auth) {
    owner.withLock { $0.auth = auth }
  }

  /// Changes the record.
  func change<Result>(_ body: (inout UserRecord) throws -> Result) rethrows -> Result {
    try guardedRecord.withLock(body)
  }

  /// The object that shares token refreshes between callers.
  var tokenRefresher: TokenRefresher {
    refresher.withLock { refresher in
      if let refresher { return refresher }
      let new = TokenRefresher { [weak self] in
        guard let self else { throw AuthErrorCode.nullUser.error() }
        return try await self.refreshTokens()
      }
      refresher = new
      return new
    }
  }

  // MARK: The account

  /// Always `Firebase`.
  open var providerID: String { "Firebase" }
  /// The user's ID, which is unique in the project.
  open var uid: String { record.uid }
  /// The name to display.
  open var displayName: String? { record.displayName }
  /// The URL of a picture.
  open var photoURL: URL? { record.photoURL }
  /// The e-mail address.
  open var email: String? { record.email }
  /// The phone number, with a plus sign and the country code.
  open var phoneNumber: String? { record.phoneNumber }
  /// Whether the user signed in anonymously and has not linked a credential.
  public internal(set) var isAnonymous: Bool {
    get { record.isAnonymous }
    set { change { $0.isAnonymous = newValue } }
  }
  /// Whether the e-mail address was verified.
  public internal(set) var isEmailVerified: Bool {
    get { record.isEmailVerified }
    set { change { $0.isEmailVerified = newValue } }
  }
  /// The user's profiles at the identity providers with which the user can sign in.
  open var providerData: [any UserInfo] { record.providers.map(ProviderUserInfo.init) }
  /// The times at which the account was created and the user last signed in.
  public var metadata: UserMetadata {
    let record = record
    return UserMetadata(creationDate: record.creationDate, lastSignInDate: record.lastSignInDate)
  }
  /// The tenant to which the user belongs; nil for the project itself.
  public var tenantID: String? { record.tenantID }
  /// The token with which new ID tokens are requested.
  open var refreshToken: String? { record.tokens.refreshToken }

  /// The same as `isAnonymous`.
  open func anonymous() -> Bool { isAnonymous }
  /// The same as `isEmailVerified`.
  open func emailVerified() -> Bool { isEmailVerified }

  // MARK: Archiving

  /// Always true.
  public static var supportsSecureCoding: Bool { true }

  /// Encodes the account and its tokens. Anyone who can read the archive can act as the user.
  public func encode(with coder: NSCoder) {
    coder.encodeValue(record)
  }

  /// Decodes a user. `Auth.updateCurrentUser(_:)` can make it the current user. Returns nil for an archive of
  /// another type.
  public required init?(coder: NSCoder) {
    guard let record = coder.decodeValue(UserRecord.self) else { return nil }
    guardedRecord = Guarded(record)
    owner = Guarded(Owner())
    super.init()
  }
}
