// Credentials: proofs of identity that are exchanged for a user.

public import Foundation

/// The purpose of exchanging a credential.
enum CredentialUse {
  case signIn
  case reauthenticate
  /// Adds the credential to the account of an ID token.
  case link(idToken: String)
  /// Replaces the phone number of the account.
  case update(idToken: String)

  /// The ID token of the account to change.
  var idToken: String? {
    switch self {
    case .signIn, .reauthenticate: nil
    case .link(let token), .update(let token): token
    }
  }

  var isReauthentication: Bool {
    if case .reauthenticate = self { true } else { false }
  }
}

/// A proof of identity, made by a provider class such as `EmailAuthProvider`.
open class AuthCredential: NSObject, @unchecked Sendable {
  // SAFETY: this class and its subclasses have only constants.
  /// The provider's ID, such as `password`.
  public let provider: String

  init(provider: String) {
    self.provider = provider
    super.init()
  }

  /// Exchanges the credential for tokens.
  func exchange(_ use: CredentialUse, _ backend: AuthBackend) async throws -> SignInResponse {
    throw AuthErrorCode.invalidCredential.error("The credential cannot be used to sign in.")
  }
}
