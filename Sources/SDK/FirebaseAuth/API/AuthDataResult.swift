// The result of a sign-in.

public import Foundation

/// The user who signed in, and the data of the identity provider.
open class AuthDataResult: NSObject, NSSecureCoding, @unchecked Sendable {
  // SAFETY: all properties are constants.
  /// The user.
  public let user: User
  /// The provider's data; nil if the operation has none.
  public let additionalUserInfo: AdditionalUserInfo?
  /// The provider's tokens; nil for other sign-in methods.
  public let credential: OAuthCredential?

  init(user: User, additionalUserInfo: AdditionalUserInfo? = nil, credential: OAuthCredential? = nil) {
    self.user = user
    self.additionalUserInfo = additionalUserInfo
    self.credential = credential
    super.init()
  }

  /// Always true.
  public static var supportsSecureCoding: Bool { true }

  /// Encodes the three properties, including the user's tokens.
  public func encode(with coder: NSCoder) {
    coder.encode(user, forKey: "user")
    coder.encode(additionalUserInfo, forKey: "additionalUserInfo")
    coder.encode(credential, forKey: "credential")
  }

  /// Decodes a result; nil for an archive of another type.
  public required init?(coder: NSCoder) {
    guard let user = coder.decodeObject(of: User.self, forKey: "user") else { return nil }
    self.user = user
    additionalUserInfo = coder.decodeObject(of: AdditionalUserInfo.self, forKey: "additionalUserInfo")
    credential = coder.decodeObject(of: OAuthCredential.self, forKey: "credential")
    super.init()
  }
}
