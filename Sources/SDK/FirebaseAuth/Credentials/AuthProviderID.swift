// The ids of identity providers and sign-in methods.

/// The id of an identity provider.
public struct AuthProviderID: Equatable, Sendable {
  /// The id, such as `apple.com`.
  public let rawValue: String
}

extension AuthProviderID {
  /// Sign in with Apple.
  public static var apple: AuthProviderID { AuthProviderID(rawValue: "apple.com") }
  /// E-mail address and password, or e-mail link.
  public static var email: AuthProviderID { AuthProviderID(rawValue: "password") }
  /// Facebook.
  public static var facebook: AuthProviderID { AuthProviderID(rawValue: "facebook.com") }
  /// Game Center, which exists on Apple's platforms only.
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

/// The id of the provider for e-mail address and password.
public let EmailAuthProviderID = "password"
/// The sign-in method by e-mail link.
public let EmailLinkAuthSignInMethod = "emailLink"
/// The sign-in method by e-mail address and password.
public let EmailPasswordAuthSignInMethod = "password"
/// The id of Facebook.
public let FacebookAuthProviderID = "facebook.com"
/// The sign-in method by Facebook.
public let FacebookAuthSignInMethod = "facebook.com"
/// The id of GitHub.
public let GitHubAuthProviderID = "github.com"
/// The sign-in method by GitHub.
public let GitHubAuthSignInMethod = "github.com"
/// The id of Google.
public let GoogleAuthProviderID = "google.com"
/// The sign-in method by Google.
public let GoogleAuthSignInMethod = "google.com"
/// The id of the provider for phone numbers.
public let PhoneAuthProviderID = "phone"
/// The sign-in method by phone number.
public let PhoneAuthSignInMethod = "phone"
/// The id of Twitter.
public let TwitterAuthProviderID = "twitter.com"
/// The sign-in method by Twitter.
public let TwitterAuthSignInMethod = "twitter.com"
