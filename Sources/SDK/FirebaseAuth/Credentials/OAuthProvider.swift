// The OAuth provider: makes credentials from tokens that identity providers issued.
//
// A provider's sign-in page needs a browser, which this library does not open. An app gets the tokens itself,
// for instance with the provider's library.

import FirebaseCore
public import Foundation

/// A provider with a sign-in page. The protocol has no requirements on Linux, like Google's on macOS.
public protocol FederatedAuthProvider: NSObjectProtocol {}

/// Makes credentials of OAuth and OpenID Connect providers.
open class OAuthProvider: NSObject, FederatedAuthProvider {
  /// The name of this type of provider.
  public static let id = "OAuth"

  /// The provider's ID, such as `oidc.example`.
  public let providerID: String

  /// Creates a provider.
  ///
  /// - Parameters:
  ///   - providerID: the ID, such as `oidc.example`.
  ///   - auth: the `Auth` with which users sign in.
  public init(providerID: String, auth: Auth = Auth.auth()) {
    self.providerID = providerID
    super.init()
  }

  /// Creates a provider.
  public convenience init(providerID: AuthProviderID, auth: Auth = Auth.auth()) {
    self.init(providerID: providerID.rawValue, auth: auth)
  }

  /// Creates a provider for the default app.
  public class func provider(providerID: AuthProviderID) -> OAuthProvider {
    OAuthProvider(providerID: providerID)
  }

  /// Creates a provider.
  public class func provider(providerID: AuthProviderID, auth: Auth) -> OAuthProvider {
    OAuthProvider(providerID: providerID, auth: auth)
  }

  /// Makes a credential from a provider's ID token.
  ///
  /// - Parameters:
  ///   - providerID: the provider.
  ///   - idToken: its ID token.
  ///   - accessToken: its access token, if it issued one.
  public static func credential(
    providerID: AuthProviderID, idToken: String, accessToken: String? = nil
  ) -> OAuthCredential {
    OAuthCredential(.init(provider: providerID.rawValue, idToken: idToken, accessToken: accessToken))
  }

  /// Makes a credential from a provider's access token.
  public static func credential(providerID: AuthProviderID, accessToken: String) -> OAuthCredential {
    OAuthCredential(.init(provider: providerID.rawValue, accessToken: accessToken))
  }

  /// Makes a credential from a provider's ID token that was requested with a nonce.
  ///
  /// - Parameters:
  ///   - providerID: the provider.
  ///   - idToken: its ID token, which contains the hash of the nonce.
  ///   - rawNonce: the nonce.
  ///   - accessToken: its access token, if it issued one.
  public static func credential(
    providerID: AuthProviderID, idToken: String, rawNonce: String, accessToken: String? = nil
  ) -> OAuthCredential {
    OAuthCredential(
      .init(provider: providerID.rawValue, idToken: idToken, accessToken: accessToken, rawNonce: rawNonce))
  }

  /// Makes a credential for Sign in with Apple.
  ///
  /// - Parameters:
  ///   - idToken: Apple's ID token.
  ///   - rawNonce: the nonce of the request, if the request had one.
  ///   - fullName: the user's name, which Apple sends only at the first sign-in.
  public static func appleCredential(
    withIDToken idToken: String, rawNonce: String?, fullName: PersonNameComponents?
  ) -> OAuthCredential {
    OAuthCredential(
      .init(provider: AuthProviderID.apple.rawValue, idToken: idToken, rawNonce: rawNonce, fullName: fullName)
    )
  }
}
