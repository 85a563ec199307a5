// The classes that make credentials of Google, Facebook, GitHub and Twitter.

public import Foundation

/// Makes credentials of Google accounts.
open class GoogleAuthProvider: NSObject {
  /// The provider's id.
  public static let id = GoogleAuthProviderID

  private override init() { super.init() }

  /// Makes a credential of Google's ID token and access token.
  open class func credential(withIDToken idToken: String, accessToken: String) -> AuthCredential {
    OAuthCredential(.init(provider: id, idToken: idToken, accessToken: accessToken))
  }
}

/// Makes credentials of Facebook accounts.
open class FacebookAuthProvider: NSObject {
  /// The provider's id.
  public static let id = FacebookAuthProviderID

  private override init() { super.init() }

  /// Makes a credential of Facebook's access token.
  open class func credential(withAccessToken accessToken: String) -> AuthCredential {
    OAuthCredential(.init(provider: id, accessToken: accessToken))
  }
}

/// Makes credentials of GitHub accounts.
open class GitHubAuthProvider: NSObject {
  /// The provider's id.
  public static let id = GitHubAuthProviderID

  private override init() { super.init() }

  /// Makes a credential of GitHub's access token.
  open class func credential(withToken token: String) -> AuthCredential {
    OAuthCredential(.init(provider: id, accessToken: token))
  }
}

/// Makes credentials of Twitter accounts.
open class TwitterAuthProvider: NSObject {
  /// The provider's id.
  public static let id = TwitterAuthProviderID

  private override init() { super.init() }

  /// Makes a credential of Twitter's token and its secret.
  open class func credential(withToken token: String, secret: String) -> AuthCredential {
    OAuthCredential(.init(provider: id, accessToken: token, secret: secret))
  }
}
