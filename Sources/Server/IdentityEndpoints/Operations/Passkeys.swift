// Enrols passkeys of an emulator and signs in with them. Like Google's emulator, it accepts every credential without a
// WebAuthn ceremony, so that apps can test their flow. A production server does not implement passkeys.

import Identity
import JSON

extension IdentityCall {
  private func requireEmulator() throws(IdentityError) {
    guard isEmulator else { throw .notImplemented("Passkeys are not implemented by this server.") }
  }

  /// `passkeyEnrollment:start`.
  func startPasskeyEnrolment() async throws -> JSONObject {
    try requireEmulator()
    guard body.text("idToken") != nil else { throw IdentityError.rejected("MISSING_ID_TOKEN") }
    let account = try await read { try self.account($0).account }
    return [
      "credentialCreationOptions": .object([
        "rp": .object(["id": .string("localhost"), "name": .string(projectID)]),
        "user": .object([
          "id": .string(Base64.encode(Array(account.localID.utf8), .urlSafe, padded: false)),
          "name": .string(account.email ?? account.localID),
          "displayName": .string(account.displayName ?? account.email ?? account.localID),
        ]),
        "challenge": .string(RandomText.code(43)),
        "pubKeyCredParams": .array([
          .object(["type": .string("public-key"), "alg": .int(-7)]),
          .object(["type": .string("public-key"), "alg": .int(-257)]),
        ]),
        "excludeCredentials": .array(
          account.passkeys.map {
            .object(["type": .string("public-key"), "id": .string($0.credentialID)])
          }),
      ])
    ]
  }

  /// `passkeyEnrollment:finalize`.
  func finalizePasskeyEnrolment() async throws -> JSONObject {
    try requireEmulator()
    guard body.text("idToken") != nil else { throw IdentityError.rejected("MISSING_ID_TOKEN") }
    return try await signIn { transaction, _ in
      var (account, _) = try self.account(transaction.reader)
      guard let id = self.body.object("authenticatorRegistrationResponse")?["id"]?.string, !id.isEmpty else {
        throw IdentityError.rejected("MISSING_AUTHENTICATOR_RESPONSE")
      }
      if let owner = try transaction.reader.account(passkey: id, in: self.tenantID),
        !owner.hasID(account.localID)
      {
        throw IdentityError.rejected("CREDENTIAL_ALREADY_IN_USE")
      }
      account.passkeys.removeAll { $0.credentialID == id }
      account.passkeys.append(.init(credentialID: id, name: self.body.string("name")))
      try transaction.put(account)
      return .signIn(self.passkeyFactor(account))
    }
  }

  /// `passkeySignIn:start`.
  func startPasskeySignIn() async throws -> JSONObject {
    try requireEmulator()
    return [
      "credentialRequestOptions": .object([
        "challenge": .string(RandomText.code(43)), "rpId": .string("localhost"),
        "userVerification": .string("required"),
      ])
    ]
  }

  /// `passkeySignIn:finalize`.
  func finalizePasskeySignIn() async throws -> JSONObject {
    try requireEmulator()
    guard let id = body.object("authenticatorAuthenticationResponse")?["id"]?.string, !id.isEmpty else {
      throw IdentityError.rejected("MISSING_AUTHENTICATOR_RESPONSE")
    }
    return try await signIn { transaction, _ in
      guard let account = try transaction.reader.account(passkey: id, in: self.tenantID) else {
        throw IdentityError.rejected("USER_NOT_FOUND")
      }
      return .signIn(self.passkeyFactor(account))
    }
  }

  private func passkeyFactor(_ account: Account) -> FirstFactor {
    var factor = FirstFactor(
      account: account, session: newSession(account, provider: "passkey"),
      response: ["localId": .string(account.localID)])
    factor.requiresSecondFactor = false
    return factor
  }
}
