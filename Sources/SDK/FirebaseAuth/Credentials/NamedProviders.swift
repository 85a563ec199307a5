// The providers for accounts of Google, Facebook, GitHub and Twitter. They make credentials from tokens.

public import Foundation

/// Makes credentials of Google accounts.
open class GoogleAuthProvider: NSObject {
  /// The provider's ID.
  public static let id = GoogleAuthProviderID

  private override init() { super.init() }

  /// Makes a credential from an ID token and an access token of Google.
  open class func credential(withIDToken idToken: String, accessToken: String) -> AuthCredential {
    OAuthCredential(.init(provider: id, idToken: idToken, accessToken: accessToken))
  }
}

/// Makes credentials of Facebook accounts.
open class FacebookAuthProvider: NSObject {
  /// The provider's ID.
  public static let id = FacebookAuthProviderID

  private override init() { super.init() }

  /// Makes a credential from an access token of Facebook.
  open class func credential(withAccessToken accessToken: String) -> AuthCredential {
    OAuthCredential(.init(provider: id, accessToken: accessToken))
  }
}

/// Makes credentials of GitHub accounts.
open class GitHubAuthProvider: NSObject {
  /// The provider's ID.
  public static let id = GitHubAuthProviderID

  private override init() { super.init() }

  /// Makes a credential from an access token of GitHub.
  open class func credential(withToken token: String) -> AuthCredential {
    OAuthCredential(.init(provider: id, accessToken: token))
  }
}

/// Makes credentials of Twitter accounts.
open class TwitterAuthProvider: NSObject {
  /// The provider's ID.
  public static let id = TwitterAuthProviderID

  private override init() { super.init() }

  /// Makes a credential from a token of Twitter and its secret.
  open class func credential(withToken token: String, secret: String) -> AuthCredential {
    OAuthCredential(.init(provider: id, accessToken: token, secret: secret))
  }
}
