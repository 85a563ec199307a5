// Signs in with a custom token, which a server of the project has made.

import Identity
import JSON

extension IdentityCall {
  /// `accounts:signInWithCustomToken`.
  func signInWithCustomToken() async throws -> JSONObject {
    guard let text = body.text("token") else { throw IdentityError.rejected("MISSING_CUSTOM_TOKEN") }
    let token = try await services.tokens.readCustomToken(text, project: projectID)
    guard let id = Self.identifier(token["uid"] ?? token["user_id"]) else {
      throw IdentityError.rejected("MISSING_IDENTIFIER")
    }
    guard id.utf8.count <= Self.maximumIDBytes else { throw IdentityError.rejected("INVALID_LOCAL_ID") }
    if let tenantID {
      guard token["tenant_id"]?.string == tenantID else { throw IdentityError.rejected("TENANT_ID_MISMATCH") }
    } else if !isEmulator, token["tenant_id"]?.string != nil {
      throw IdentityError.rejected("TENANT_ID_MISMATCH")
    }
    var claims = JSONObject()
    if let value = token["claims"] {
      guard let object = value.object else { throw IdentityError.rejected("INVALID_CLAIMS") }
      try IDTokenClaims.validateCustom(object)
      claims = object
    }
    let extraClaims = claims
    return try await signIn { transaction, _ in
      var account: Account
      let existing = try transaction.reader.account(id, in: self.tenantID)
      if let existing {
        account = existing
      } else {
        account = self.newAccount(id)
        account.lastLoginAt = self.now
      }
      account.usesCustomToken = true
      if !account.isDisabled { try transaction.put(account) }
      var session = self.newSession(account, provider: "custom")
      session.extraClaims = extraClaims
      var factor = FirstFactor(
        account: account, session: session,
        response: [
          "kind": .string("identitytoolkit#VerifyCustomTokenResponse"), "isNewUser": .bool(existing == nil),
        ])
      factor.requiresSecondFactor = false
      return .signIn(factor)
    }
  }

  /// The user's ID: a string, or a number or boolean as text. Nil for other values and for an empty string.
  private static func identifier(_ value: JSONValue?) -> String? {
    switch value {
    case .string(let text) where !text.isEmpty: text
    case .int(let number): String(number)
    case .double(let number): String(number)
    case .bool(let bool): String(bool)
    default: nil
    }
  }
}
