// The phone provider: makes credentials of phone numbers that were verified with a code.
//
// Google's servers send messages only to apps that prove their identity with a push notification or a
// reCAPTCHA page. This library supports neither, so such a server responds with `missingClientIdentifier` or
// `missingAppCredential`. A Hearth server and the emulator require no proof.

public import Foundation
import Locking

/// A verified phone number.
open class PhoneAuthCredential: AuthCredential, NSSecureCoding, @unchecked Sendable {
  // SAFETY: the only property is a constant.
  /// The proof of the number.
  enum Proof: Codable, Equatable, Sendable {
    case code(verificationID: String, code: String)
    /// An earlier attempt to link the number has verified it, but failed. The server returned this proof.
    case temporary(proof: String, phoneNumber: String)
  }

  let proof: Proof

  init(_ proof: Proof) {
    self.proof = proof
    super.init(provider: PhoneAuthProvider.id)
  }

  override func exchange(_ use: CredentialUse, _ backend: AuthBackend) async throws -> SignInResponse {
    let operation =
      switch use {
      case .signIn: "SIGN_UP_OR_IN"
      case .reauthenticate: "REAUTH"
      case .link: "LINK"
      case .update: "UPDATE"
      }
    var request = PhoneSignInRequest(idToken: use.idToken, operation: operation)
    switch proof {
    case .code(let verificationID, let code):
      guard !verificationID.isEmpty else { throw AuthErrorCode.missingVerificationID.error() }
      guard !code.isEmpty else { throw AuthErrorCode.missingVerificationCode.error() }
      request.sessionInfo = verificationID
      request.code = code
    case .temporary(let proof, let phoneNumber):
      request.temporaryProof = proof
      request.phoneNumber = phoneNumber
    }
    let response = try await backend.call(request)
    if let proof = response.temporaryProof, let number = response.phoneNumber, !proof.isEmpty {
      let credential = PhoneAuthCredential(.temporary(proof: proof, phoneNumber: number))
      throw AuthErrorCode.credentialAlreadyInUse.error(
        details: [AuthErrorUserInfoUpdatedCredentialKey: credential])
    }
    return response
  }

  /// Always true.
  public static var supportsSecureCoding: Bool { true }

  /// Encodes the proof.
  public func encode(with coder: NSCoder) {
    coder.encodeValue(proof)
  }

  /// Decodes the proof; nil for an archive of another type.
  public required convenience init?(coder: NSCoder) {
    guard let proof = coder.decodeValue(Proof.self) else { return nil }
    self.init(proof)
  }
}

/// Verifies phone numbers by a code in a message.
open class PhoneAuthProvider: NSObject, @unchecked Sendable {
  // SAFETY: the only property is a constant.
  /// The provider's ID.
  public static let id = PhoneAuthProviderID

  let auth: Auth

  init(auth: Auth) {
    self.auth = auth
    super.init()
  }

  /// The provider of the default app.
  open class func provider() -> PhoneAuthProvider { PhoneAuthProvider(auth: Auth.auth()) }

  /// The provider of an app.
  open class func provider(auth: Auth) -> PhoneAuthProvider { PhoneAuthProvider(auth: auth) }

  /// Makes a credential from a verification ID and the code that the user received.
  ///
  /// - Parameters:
  ///   - verificationID: the result of `verifyPhoneNumber(_:)`.
  ///   - verificationCode: the code of the message.
  open func credential(
    withVerificationID verificationID: String, verificationCode: String
  ) -> PhoneAuthCredential {
    PhoneAuthCredential(.code(verificationID: verificationID, code: verificationCode))
  }
}

extension User {
  /// Replaces the phone number of the account.
  ///
  /// - Throws: `credentialAlreadyInUse`, `invalidVerificationCode`, `sessionExpired`, `requiresRecentLogin`.
  public func updatePhoneNumber(_ credential: PhoneAuthCredential) async throws {
    try await updates.run {
      let auth = try self.requireAuth()
      let response = try await self.withToken { token, auth in
        try await credential.exchange(.update(idToken: token), auth.backend)
      }
      guard let tokens = UserTokens(response, now: auth.clock.now()) else {
        throw AuthInternalError.unexpectedResponse.error()
      }
      self.change {
        $0.tokens = tokens
        $0.isAnonymous = false
      }
      try await self.loadAccount()
    }
  }

  /// Replaces the phone number of the account.
  ///
  /// - Parameters:
  ///   - credential: the verified number.
  ///   - completion: receives nil or the error, on the main queue.
  public func updatePhoneNumber(
    _ credential: PhoneAuthCredential, completion: (((any Error)?) -> Void)? = nil
  ) {
    completeVoid(completion) { try await self.updatePhoneNumber(credential) }
  }
}
