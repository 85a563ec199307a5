// Writes an account as the UserInfo message of the Identity Toolkit API, as responses contain it.

package import JSON

extension Account {
  /// The recipient of a UserInfo message, which determines its contents.
  package enum Audience: Sendable {
    /// The user. Phone numbers of second factors are masked except for their last digits.
    case user
    /// An administrator.
    case administrator
  }

  /// How a UserInfo message represents the password hash.
  package enum PasswordForm: Sendable {
    /// The stored hash, for exports and in emulator mode.
    case stored
    /// A constant in place of the hash, and no salt, as the hosted product does.
    case redacted
  }

  /// The text `REDACTED` in Base64.
  private static let redactedHash = "UkVEQUNURUQ="

  /// Writes the account as a UserInfo message for a recipient.
  package func userInfo(for audience: Audience, password form: PasswordForm) -> JSONObject {
    var object: JSONObject = ["localId": .string(localID), "createdAt": .string(String(createdAt))]
    object.setDecimal("lastLoginAt", lastLoginAt)
    object.set("lastRefreshAt", lastRefreshAt.map(RFC3339.text))
    object.set("email", email)
    object.set("emailVerified", isEmailVerified)
    object.set("displayName", displayName)
    object.set("photoUrl", photoURL)
    object.set("screenName", screenName)
    object.set("phoneNumber", phoneNumber)
    object.set("disabled", disabled)
    object.set("initialEmail", initialEmail)
    object.set("tenantId", tenantID)
    if let password {
      object["passwordHash"] = .string(form == .stored ? password.hash : Self.redactedHash)
      if form == .stored { object.set("salt", password.salt) }
    }
    object.set("passwordUpdatedAt", passwordUpdatedAt)
    object.setDecimal("validSince", validSince)
    object.set("customAttributes", customAttributes)
    if usesCustomToken { object["customAuth"] = .bool(true) }
    if usesEmailLink { object["emailLinkSignin"] = .bool(true) }
    if let providerInfo { object["providerUserInfo"] = .array(providerInfo) }
    if !secondFactors.isEmpty {
      object["mfaInfo"] = .array(secondFactors.map { .object($0.info(for: audience)) })
    }
    if !passkeys.isEmpty {
      object["passkeyInfo"] = .array(
        passkeys.map { passkey in
          var object: JSONObject = ["credentialId": .string(passkey.credentialID)]
          object.set("name", passkey.name)
          return .object(object)
        })
    }
    return object
  }

  /// The list of providers, including password and phone; nil if the account never had a provider.
  package var providerInfo: [JSONValue]? {
    guard let linked = withProviderList.providers else { return nil }
    var list: [JSONValue] = []
    if hasPasswordProvider, let email {
      var object: JSONObject = [
        "providerId": .string("password"), "email": .string(email), "federatedId": .string(email),
        "rawId": .string(email),
      ]
      object.set("displayName", displayName)
      object.set("photoUrl", photoURL)
      list.append(.object(object))
    }
    for provider in linked {
      var object: JSONObject = ["providerId": .string(provider.id), "rawId": .string(provider.rawID)]
      object.set("federatedId", provider.federatedID)
      object.set("displayName", provider.displayName)
      object.set("photoUrl", provider.photoURL)
      object.set("email", provider.email)
      object.set("phoneNumber", provider.phoneNumber)
      object.set("screenName", provider.screenName)
      list.append(.object(object))
    }
    if let phoneNumber {
      list.append(
        .object([
          "providerId": .string("phone"), "phoneNumber": .string(phoneNumber), "rawId": .string(phoneNumber),
        ]))
    }
    return list
  }
}

extension Account.SecondFactor {
  /// The MfaEnrollment message. It never contains the secret of time-based codes.
  package func info(for audience: Account.Audience) -> JSONObject {
    var object: JSONObject = ["mfaEnrollmentId": .string(id), "enrolledAt": .string(enrolledAt)]
    object.set("displayName", displayName)
    switch kind {
    case .phone(let number):
      object["phoneInfo"] = .string(audience == .user ? PhoneNumber.masked(number) : number)
      if audience == .administrator { object["unobfuscatedPhoneInfo"] = .string(number) }
    case .totp: object["totpInfo"] = .object([:])
    }
    return object
  }
}
