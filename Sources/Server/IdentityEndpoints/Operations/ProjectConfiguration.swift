// Reads and changes the settings of a project.

import Identity
import JSON
import Ports

extension IdentityCall {
  /// The settings in the form of `projects/{project}/config`.
  func configurationJSON(_ settings: ProjectSettings) -> JSONObject {
    [
      "name": .string("projects/\(projectID)/config"),
      "signIn": .object([
        "allowDuplicateEmails": .bool(settings.allowsDuplicateEmails),
        "anonymous": .object(["enabled": .bool(settings.allowsAnonymous ?? true)]),
        "email": .object([
          "enabled": .bool(settings.allowsPassword ?? true),
          "passwordRequired": .bool(!(settings.allowsEmailLink ?? true)),
        ]),
      ]),
      "emailPrivacyConfig": .object([
        "enableImprovedEmailPrivacy": .bool(settings.hidesAccounts ?? !isEmulator)
      ]),
      "blockingFunctions": .object(settings.blockingFunctionsJSON),
      "mfa": .object((settings.multiFactor ?? .phone).json),
    ]
  }

  /// `config` (GET).
  func getConfiguration() async throws -> JSONObject { configurationJSON(project) }

  /// `config` (PATCH). Without a mask, absent members are set to their defaults.
  func updateConfiguration() async throws -> JSONObject {
    let mask = (target["updateMask"] ?? "").split(separator: ",").map(String.init)
    if let functions = body.object("blockingFunctions") { try Self.checkBlockingFunctions(functions) }
    return try await write { transaction in
      var settings = try transaction.reader.projectSettings()
      if mask.isEmpty {
        let keys = settings.apiKeys
        settings = ProjectSettings()
        settings.apiKeys = keys
      }
      let paths = mask.isEmpty ? ["signIn", "emailPrivacyConfig", "blockingFunctions", "mfa"] : mask
      for path in paths { self.apply(path, to: &settings) }
      try transaction.put(settings)
      return self.configurationJSON(settings)
    }
  }

  private func apply(_ path: String, to settings: inout ProjectSettings) {
    func isNamed(_ name: String) -> Bool {
      path == name || name.hasPrefix(path + ".") || path.hasPrefix(name + ".")
    }
    let signIn = body.object("signIn") ?? [:]
    if isNamed("signIn.allowDuplicateEmails") {
      settings.allowsDuplicateEmails = signIn["allowDuplicateEmails"]?.bool ?? false
    }
    if isNamed("signIn.anonymous") {
      settings.allowsAnonymous = signIn["anonymous"]?["enabled"]?.bool ?? settings.allowsAnonymous
    }
    if isNamed("signIn.email"), let email = signIn["email"]?.object {
      if let isEnabled = email["enabled"]?.bool { settings.allowsPassword = isEnabled }
      if let isRequired = email["passwordRequired"]?.bool { settings.allowsEmailLink = !isRequired }
    }
    if isNamed("emailPrivacyConfig.enableImprovedEmailPrivacy") {
      settings.hidesAccounts = body.object("emailPrivacyConfig")?["enableImprovedEmailPrivacy"]?.bool
    }
    if isNamed("blockingFunctions") { settings.setBlockingFunctions(body.object("blockingFunctions") ?? [:]) }
    if isNamed("mfa") {
      settings.multiFactor = body.object("mfa").map { json in
        var multiFactor = MultiFactorSettings(json: json)
        // The emulator's project offers text messages unless a request names the providers.
        if isEmulator, json["enabledProviders"] == nil { multiFactor.hasPhone = true }
        return multiFactor
      }
    }
  }

  private static func checkBlockingFunctions(_ functions: JSONObject) throws(IdentityError) {
    for trigger in functions["triggers"]?.object?.members ?? [] {
      guard ProjectSettings.BlockingEvent(rawValue: trigger.key) != nil else {
        throw .rejected("INVALID_BLOCKING_FUNCTION", "((Event type is invalid.))")
      }
      guard let uri = trigger.value["functionUri"]?.string, AbsoluteURL.isValid(uri) else {
        throw .rejected(
          "INVALID_BLOCKING_FUNCTION", "((Expected an absolute URI with valid scheme and host.))")
      }
    }
  }

  /// `projects` (GET).
  func getProject() async throws -> JSONObject {
    guard tenantID == nil else { throw IdentityError.rejected("UNSUPPORTED_TENANT_OPERATION") }
    return [
      "projectId": .string(ProjectNumber.of(projectID)),
      "authorizedDomains": .array([.string("localhost"), .string("127.0.0.1")]),
    ]
  }

  /// `recaptchaParams` (GET). The values are placeholders: this server never requires reCAPTCHA.
  func getRecaptchaParameters() async throws -> JSONObject {
    [
      "kind": .string("identitytoolkit#GetRecaptchaParamResponse"),
      "recaptchaStoken": .string("unused-recaptcha-token"),
      "recaptchaSiteKey": .string("unused-recaptcha-site-key"),
    ]
  }

  /// `passwordPolicy` (GET).
  func getPasswordPolicy() async throws -> JSONObject {
    let symbols = "^$*.[]{}()?\"!@#%&/\\,><':;|_~`=+-"
    return [
      "customStrengthOptions": .object([
        "minPasswordLength": .int(Int64(Self.minimumPasswordLength)),
        "maxPasswordLength": .int(Int64(Self.maximumPasswordBytes)),
      ]),
      "allowedNonAlphanumericCharacters": .array(symbols.map { .string(String($0)) }),
      "enforcementState": .string("OFF"), "forceUpgradeOnSignin": .bool(false), "schemaVersion": .int(1),
    ]
  }

  /// `recaptchaConfig` (GET): reCAPTCHA is not enforced.
  func getRecaptchaConfiguration() async throws -> JSONObject { [:] }

  /// `accounts:revokeToken`: revokes a token of an identity provider. This server stores no such tokens.
  func revokeToken() async throws -> JSONObject { [:] }
}
