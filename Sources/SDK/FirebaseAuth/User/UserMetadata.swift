// User metadata: the dates of an account.

public import Foundation

/// The times at which an account was created and its user last signed in.
open class UserMetadata: NSObject, NSSecureCoding, @unchecked Sendable {
  // SAFETY: both properties are constants.
  /// The time at which the user last signed in; nil if the server did not send it.
  public let lastSignInDate: Date?
  /// The time at which the account was created; nil if the server did not send it.
  public let creationDate: Date?

  init(creationDate: Date?, lastSignInDate: Date?) {
    self.creationDate = creationDate
    self.lastSignInDate = lastSignInDate
    super.init()
  }

  /// Always true.
  public static var supportsSecureCoding: Bool { true }

  /// Encodes both dates.
  public func encode(with coder: NSCoder) {
    coder.encodeValue([creationDate, lastSignInDate])
  }

  /// Decodes both dates; nil for an archive of another type.
  public required init?(coder: NSCoder) {
    guard let dates = coder.decodeValue([Date?].self), dates.count == 2 else { return nil }
    creationDate = dates[0]
    lastSignInDate = dates[1]
    super.init()
  }
}
