// User info: the data about a user at identity providers.

public import Foundation

/// The profile of a user at one identity provider, or the user's Firebase account.
public protocol UserInfo: NSObjectProtocol {
  /// The provider's ID, such as `google.com`; `Firebase` for the Firebase account.
  var providerID: String { get }
  /// The user's ID at the provider.
  var uid: String { get }
  /// The name to display.
  var displayName: String? { get }
  /// The URL of a picture.
  var photoURL: URL? { get }
  /// The e-mail address.
  var email: String? { get }
  /// The phone number, with a plus sign and the country code.
  var phoneNumber: String? { get }
}

/// The profile of a user at one identity provider.
final class ProviderUserInfo: NSObject, UserInfo, Sendable {
  private let record: UserRecord.Provider

  init(_ record: UserRecord.Provider) {
    self.record = record
    super.init()
  }

  var providerID: String { record.providerID }
  var uid: String { record.uid }
  var displayName: String? { record.displayName }
  var photoURL: URL? { record.photoURL }
  var email: String? { record.email }
  var phoneNumber: String? { record.phoneNumber }
}
