// The IDs of identity providers and sign-in methods.

/// The ID of an identity provider.
public struct AuthProviderID: Equatable, Sendable {
  /// The ID, such as `apple.com`.
  public let rawValue: String
}

extension AuthProviderID {
  /// Sign in with Apple.
  public static var apple: AuthProviderID { AuthProviderID(rawValue: "apple.com") }
  /// E-mail address and password, or e-mail link.
  public static var email: AuthProviderID { AuthProviderID(rawValue: "password") }
  /// Facebook.
  public static var facebook: AuthProviderID { AuthProviderID(rawValue: "facebook.com") }
  /// Game Center, which exists only on Apple's platforms.
  public static var gameCenter: AuthProviderID { AuthProviderID(rawValue: "gc.apple.com") }
  /// GitHub.
  public static var gitHub: AuthProviderID { AuthProviderID(rawValue: "github.com") }
  /// Google.
  public static var google: AuthProviderID { AuthProviderID(rawValue: "google.com") }
  /// Phone number.
  public static var phone: AuthProviderID { AuthProviderID(rawValue: "phone") }
  /// Any other provider, such as `oidc.example`.
  public static func custom(_ value: String) -> AuthProviderID { AuthProviderID(rawValue: value) }
}

/// The ID of the provider for e-mail address and password.
public let EmailAuthProviderID = "password"
/// The sign-in method by e-mail link.
public let EmailLinkAuthSignInMethod = "emailLink"
/// The sign-in method by e-mail address and password.
public let EmailPasswordAuthSignInMethod = "password"
/// The ID of Facebook.
public let FacebookAuthProviderID = "facebook.com"
/// The sign-in method by Facebook.
public let FacebookAuthSignInMethod = "facebook.com"
/// The ID of GitHub.
public let GitHubAuthProviderID = "github.com"
/// The sign-in method by GitHub.
public let GitHubAuthSignInMethod = "github.com"
/// The ID of Google.
public let GoogleAuthProviderID = "google.com"
/// The sign-in method by Google.
public let GoogleAuthSignInMethod = "google.com"
/// The ID of the provider for phone numbers.
public let PhoneAuthProviderID = "phone"
/// The sign-in method by phone number.
public let PhoneAuthSignInMethod = "phone"
/// The ID of Twitter.
public let TwitterAuthProviderID = "twitter.com"
/// The sign-in method by Twitter.
public let TwitterAuthSignInMethod = "twitter.com"
