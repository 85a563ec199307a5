// Reads and writes the stored form of an account: a JSON object, so that later versions can add members.

package import JSON

extension Account {
  /// The stored form.
  package var storedForm: JSONObject {
    var object: JSONObject = ["localId": .string(localID), "createdAt": .int(createdAt)]
    object.set("tenantId", tenantID)
    object.set("email", email)
    object.set("initialEmail", initialEmail)
    object.set("emailVerified", isEmailVerified)
    object.set("displayName", displayName)
    object.set("photoUrl", photoURL)
    object.set("screenName", screenName)
    object.set("phoneNumber", phoneNumber)
    object.set("disabled", disabled)
    if let password { object["password"] = .object(password.storedForm) }
    object.set("passwordUpdatedAt", passwordUpdatedAt)
    object.set("lastLoginAt", lastLoginAt)
    object.set("lastRefreshAt", lastRefreshAt)
    object.set("validSince", validSince)
    object.set("customAttributes", customAttributes)
    if usesCustomToken { object["customAuth"] = .bool(true) }
    if usesEmailLink { object["emailLinkSignin"] = .bool(true) }
    if let providers { object["providers"] = .array(providers.map { .object($0.storedForm) }) }
    if !secondFactors.isEmpty { object["mfa"] = .array(secondFactors.map { .object($0.storedForm) }) }
    if !passkeys.isEmpty {
      object["passkeys"] = .array(
        passkeys.map { passkey in
          var object: JSONObject = ["credentialId": .string(passkey.credentialID)]
          object.set("name", passkey.name)
          return .object(object)
        })
    }
    return object
  }

  /// Reads the stored form.
  /// - Throws: ``CorruptRow`` for an object that this module did not write.
  package init(storedForm object: JSONObject) throws(CorruptRow) {
    guard let localID = object["localId"]?.string, let createdAt = object["createdAt"]?.int else {
      throw CorruptRow("an account has no ID or no creation time")
    }
    self.init(localID: localID, tenantID: object["tenantId"]?.string, createdAt: createdAt)
    email = object["email"]?.string
    initialEmail = object["initialEmail"]?.string
    isEmailVerified = object["emailVerified"]?.bool
    displayName = object["displayName"]?.string
    photoURL = object["photoUrl"]?.string
    screenName = object["screenName"]?.string
    phoneNumber = object["phoneNumber"]?.string
    disabled = object["disabled"]?.bool
    if let stored = object["password"]?.object { password = try StoredPassword(storedForm: stored) }
    passwordUpdatedAt = object["passwordUpdatedAt"]?.int
    lastLoginAt = object["lastLoginAt"]?.int
    lastRefreshAt = object["lastRefreshAt"]?.int
    validSince = object["validSince"]?.int
    customAttributes = object["customAttributes"]?.string
    usesCustomToken = object["customAuth"]?.bool ?? false
    usesEmailLink = object["emailLinkSignin"]?.bool ?? false
    if let list = object["providers"]?.array {
      var providers: [Provider] = []
      for element in list { providers.append(try Provider(storedForm: element)) }
      self.providers = providers
    }
    for element in object["mfa"]?.array ?? [] {
      secondFactors.append(try SecondFactor(storedForm: element))
    }
    for element in object["passkeys"]?.array ?? [] {
      guard let id = element["credentialId"]?.string else { throw CorruptRow("a passkey has no ID") }
      passkeys.append(Passkey(credentialID: id, name: element["name"]?.string))
    }
  }
}

extension Account.Provider {
  fileprivate var storedForm: JSONObject {
    var object: JSONObject = ["providerId": .string(id), "rawId": .string(rawID)]
    object.set("federatedId", federatedID)
    object.set("displayName", displayName)
    object.set("photoUrl", photoURL)
    object.set("email", email)
    object.set("phoneNumber", phoneNumber)
    object.set("screenName", screenName)
    return object
  }

  fileprivate init(storedForm value: JSONValue) throws(CorruptRow) {
    guard let id = value["providerId"]?.string, let rawID = value["rawId"]?.string else {
      throw CorruptRow("a linked provider has no ID")
    }
    self.init(id: id, rawID: rawID)
    federatedID = value["federatedId"]?.string
    displayName = value["displayName"]?.string
    photoURL = value["photoUrl"]?.string
    email = value["email"]?.string
    phoneNumber = value["phoneNumber"]?.string
    screenName = value["screenName"]?.string
  }
}

extension Account.SecondFactor {
  fileprivate var storedForm: JSONObject {
    var object: JSONObject = ["id": .string(id), "enrolledAt": .string(enrolledAt)]
    object.set("displayName", displayName)
    switch kind {
    case .phone(let number): object["phone"] = .string(number)
    case .totp(let secret, let lastStep):
      object["secret"] = .string(Base64.encode(secret))
      object["lastStep"] = .int(lastStep)
    }
    return object
  }

  fileprivate init(storedForm value: JSONValue) throws(CorruptRow) {
    guard let id = value["id"]?.string, let enrolledAt = value["enrolledAt"]?.string else {
      throw CorruptRow("a second factor has no ID or no enrolment time")
    }
    let kind: Kind
    if let number = value["phone"]?.string {
      kind = .phone(number)
    } else if let text = value["secret"]?.string,
      let secret = Base64.decode(text.utf8, .standard, paddedBy: [UInt8(ascii: "=")])
    {
      kind = .totp(secret: secret, lastStep: value["lastStep"]?.int ?? 0)
    } else {
      throw CorruptRow("a second factor has neither a number nor a secret")
    }
    self.init(id: id, displayName: value["displayName"]?.string, enrolledAt: enrolledAt, kind: kind)
  }
}
