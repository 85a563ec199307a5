// Additional user info: the identity provider's data about a user.

public import Foundation

/// The identity provider's data at the time of a sign-in.
open class AdditionalUserInfo: NSObject, NSSecureCoding, @unchecked Sendable {
  // SAFETY: all properties are constants; the profile consists of immutable JSON values.
  /// The provider's ID, such as `google.com`; empty for an anonymous user and for a custom token.
  public let providerID: String
  /// The provider's profile of the user.
  public let profile: [String: Any]?
  /// The user's name at the provider.
  public let username: String?
  /// Whether the sign-in created the account.
  public let isNewUser: Bool

  init(providerID: String, profile: [String: Any]? = nil, username: String? = nil, isNewUser: Bool) {
    self.providerID = providerID
    self.profile = profile
    self.username = username
    self.isNewUser = isNewUser
    super.init()
  }

  /// Reads the data from the response to a credential.
  convenience init(_ response: SignInResponse, of credential: AuthCredential) {
    let profile = response.rawUserInfo.flatMap {
      try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }
    self.init(
      providerID: response.providerId ?? credential.provider, profile: profile, username: response.screenName,
      isNewUser: response.isNewUser ?? false)
  }

  /// The same as `isNewUser`.
  open func newUser() -> Bool { isNewUser }

  private struct Archive: Codable {
    let providerID: String
    let profile: Data?
    let username: String?
    let isNewUser: Bool
  }

  /// Always true.
  public static var supportsSecureCoding: Bool { true }

  /// Encodes the properties.
  public func encode(with coder: NSCoder) {
    let profile = profile.flatMap { try? JSONSerialization.data(withJSONObject: $0) }
    coder.encodeValue(
      Archive(providerID: providerID, profile: profile, username: username, isNewUser: isNewUser))
  }

  /// Decodes the properties; nil for an archive of another type.
  public required convenience init?(coder: NSCoder) {
    guard let archive = coder.decodeValue(Archive.self) else { return nil }
    self.init(
      providerID: archive.providerID,
      profile: archive.profile.flatMap { try? JSONSerialization.jsonObject(with: $0) as? [String: Any] },
      username: archive.username, isNewUser: archive.isNewUser)
  }
}
