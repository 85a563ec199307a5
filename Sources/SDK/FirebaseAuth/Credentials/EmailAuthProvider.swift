// The e-mail provider: makes credentials of an e-mail address and a password or link.

public import Foundation

/// Makes credentials of e-mail addresses.
open class EmailAuthProvider: NSObject {
  /// The provider's ID.
  public static let id = EmailAuthProviderID

  /// Makes a credential of an e-mail address and a password.
  open class func credential(withEmail email: String, password: String) -> AuthCredential {
    EmailCredential(email: email, proof: .password(password))
  }

  /// Makes a credential of an e-mail address and the link that was sent to it.
  open class func credential(withEmail email: String, link: String) -> AuthCredential {
    EmailCredential(email: email, proof: .link(link))
  }
}

/// An e-mail address with its proof.
final class EmailCredential: AuthCredential, @unchecked Sendable {
  // SAFETY: both properties are constants.
  enum Proof {
    case password(String)
    case link(String)
  }

  private let email: String
  private let proof: Proof

  init(email: String, proof: Proof) {
    self.email = email
    self.proof = proof
    super.init(provider: EmailAuthProvider.id)
  }

  override func exchange(_ use: CredentialUse, _ backend: AuthBackend) async throws -> SignInResponse {
    switch proof {
    case .password(let password):
      if let idToken = use.idToken {
        return try await backend.call(SignUpRequest(email: email, password: password, idToken: idToken))
      }
      guard !password.isEmpty else { throw AuthErrorCode.wrongPassword.error() }
      return try await backend.call(PasswordSignInRequest(email: email, password: password))
    case .link(let link):
      guard let code = ActionCodeURL.signInCode(of: link) else {
        throw AuthErrorCode.invalidActionCode.error("The link is not a sign-in link.")
      }
      return try await backend.call(EmailLinkSignInRequest(email: email, oobCode: code, idToken: use.idToken))
    }
  }
}
