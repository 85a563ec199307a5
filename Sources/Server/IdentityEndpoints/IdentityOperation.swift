// The table of operations: their paths, methods, body fields and handlers.

import Identity
import JSON
import NIOHTTP1

/// An operation of the Identity Toolkit or the secure token service.
struct IdentityOperation: Sendable {
  typealias Handler = @Sendable (IdentityCall) async throws -> JSONObject

  /// The fields of the body.
  var fields: [String: FieldKind]
  /// Whether the operation needs an administrator.
  var isPrivileged = false
  /// Whether the body may be form-encoded.
  var acceptsForm = false
  /// Whether the operation works although authentication is disabled for the tenant.
  var ignoresDisabledTenant = false
  /// Whether the body must name the project, as the legacy batch operations require.
  var requiresTargetProject = false
  /// The calls that count as guesses of the client's address.
  var guessPolicy = GuessPolicy.none
  var run: Handler

  init(_ fields: [String: FieldKind], guessPolicy: GuessPolicy = .none, _ run: @escaping Handler) {
    self.fields = fields
    self.guessPolicy = guessPolicy
    self.run = run
  }

  /// An operation for administrators.
  static func privileged(_ fields: [String: FieldKind], _ run: @escaping Handler) -> IdentityOperation {
    var operation = IdentityOperation(fields, run)
    operation.isPrivileged = true
    return operation
  }

  /// An operation that this server does not implement.
  static func unimplemented(_ name: String) -> IdentityOperation {
    IdentityOperation(RequestFields.none) { _ in
      throw IdentityError.notImplemented("\(name) is not implemented by this server.")
    }
  }

  // MARK: Tables

  private static let signUp = IdentityOperation(RequestFields.signUp, guessPolicy: .failures) {
    try await $0.signUp()
  }
  private static let lookup = IdentityOperation(RequestFields.lookup) { try await $0.lookup() }
  private static let update = IdentityOperation(RequestFields.update, guessPolicy: .failures) {
    try await $0.update()
  }
  private static let delete = IdentityOperation(RequestFields.delete) { try await $0.deleteAccount() }
  private static let sendCode = IdentityOperation(RequestFields.sendCode, guessPolicy: .always) {
    try await $0.sendCode()
  }
  private static let password = IdentityOperation(RequestFields.password, guessPolicy: .failures) {
    try await $0.signInWithPassword()
  }
  private static let customToken = IdentityOperation(RequestFields.customToken) {
    try await $0.signInWithCustomToken()
  }
  private static let emailLink = IdentityOperation(RequestFields.emailLink, guessPolicy: .failures) {
    try await $0.signInWithEmailLink()
  }
  private static let provider = IdentityOperation(RequestFields.identityProvider) {
    try await $0.signInWithProvider()
  }
  private static let phoneNumber = IdentityOperation(RequestFields.phoneNumber, guessPolicy: .failures) {
    try await $0.signInWithPhoneNumber()
  }
  private static let verificationCode = IdentityOperation(
    RequestFields.verificationCode, guessPolicy: .always
  ) {
    try await $0.sendVerificationCode()
  }
  private static let resetPassword = IdentityOperation(RequestFields.resetPassword, guessPolicy: .failures) {
    try await $0.resetPassword()
  }
  private static let authURI = IdentityOperation(RequestFields.authURI, guessPolicy: .always) {
    try await $0.createAuthURI()
  }
  private static let project = IdentityOperation(RequestFields.none) { try await $0.getProject() }
  private static let recaptchaParameters = IdentityOperation(RequestFields.none) {
    try await $0.getRecaptchaParameters()
  }
  private static let batchCreate = IdentityOperation.privileged(RequestFields.batchCreate) {
    try await $0.batchCreate()
  }
  private static let batchGet = IdentityOperation.privileged(RequestFields.batchGet) {
    try await $0.batchGet()
  }
  private static var sessionCookie: IdentityOperation {
    var operation = privileged(RequestFields.sessionCookie) { try await $0.createSessionCookie() }
    operation.ignoresDisabledTenant = true
    return operation
  }
  private static var token: IdentityOperation {
    var operation = IdentityOperation(RequestFields.token) { try await $0.refreshToken() }
    operation.acceptsForm = true
    return operation
  }

  private static func legacy(_ operation: IdentityOperation) -> IdentityOperation {
    var operation = operation
    operation.isPrivileged = false
    operation.requiresTargetProject = true
    return operation
  }

  private static func administrative(_ operation: IdentityOperation) -> IdentityOperation {
    var operation = operation
    operation.isPrivileged = true
    return operation
  }

  /// The operations of an API by pattern and method. A pattern is a path without project and tenant.
  typealias Table = [String: [String: IdentityOperation]]

  /// `identitytoolkit.googleapis.com/v1`.
  static let version1: Table = [
    "accounts:signUp": ["POST": signUp],
    "accounts:signInWithPassword": ["POST": password],
    "accounts:signInWithCustomToken": ["POST": customToken],
    "accounts:signInWithEmailLink": ["POST": emailLink],
    "accounts:signInWithIdp": ["POST": provider],
    "accounts:signInWithPhoneNumber": ["POST": phoneNumber],
    "accounts:sendVerificationCode": ["POST": verificationCode],
    "accounts:lookup": ["POST": lookup],
    "accounts:update": ["POST": update],
    "accounts:delete": ["POST": delete],
    "accounts:sendOobCode": ["POST": sendCode],
    "accounts:resetPassword": ["POST": resetPassword],
    "accounts:createAuthUri": ["POST": authURI],
    "accounts:signInWithGameCenter": ["POST": unimplemented("accounts:signInWithGameCenter")],
    "accounts:verifyIosClient": ["POST": unimplemented("accounts:verifyIosClient")],
    "accounts:issueSamlResponse": ["POST": unimplemented("accounts:issueSamlResponse")],
    "sessionCookiePublicKeys": [
      "GET": IdentityOperation(RequestFields.none) { try await $0.getSessionCookieKeys() }
    ],
    "projects": ["GET": project],
    "recaptchaParams": ["GET": recaptchaParameters],
    "projects/accounts": ["POST": administrative(signUp)],
    "projects/accounts:lookup": ["POST": administrative(lookup)],
    "projects/accounts:update": ["POST": administrative(update)],
    "projects/accounts:delete": ["POST": administrative(delete)],
    "projects/accounts:sendOobCode": ["POST": administrative(sendCode)],
    "projects/accounts:batchGet": ["GET": batchGet],
    "projects/accounts:batchCreate": ["POST": batchCreate],
    "projects/accounts:batchDelete": [
      "POST": .privileged(RequestFields.batchDelete) { try await $0.batchDelete() }
    ],
    "projects/accounts:query": ["POST": .privileged(RequestFields.query) { try await $0.queryAccounts() }],
    "projects:createSessionCookie": ["POST": sessionCookie],
  ]

  /// `identitytoolkit.googleapis.com/v2`.
  static let version2: Table = [
    "accounts/mfaEnrollment:start": [
      "POST": IdentityOperation(RequestFields.multiFactorEnrolment, guessPolicy: .always) {
        try await $0.startEnrolment()
      }
    ],
    "accounts/mfaEnrollment:finalize": [
      "POST": IdentityOperation(RequestFields.multiFactorEnrolment, guessPolicy: .failures) {
        try await $0.finalizeEnrolment()
      }
    ],
    "accounts/mfaEnrollment:withdraw": [
      "POST": IdentityOperation(RequestFields.multiFactorEnrolment, guessPolicy: .failures) {
        try await $0.withdrawEnrolment()
      }
    ],
    "accounts/mfaSignIn:start": [
      "POST": IdentityOperation(RequestFields.multiFactorSignIn, guessPolicy: .always) {
        try await $0.startSecondFactor()
      }
    ],
    "accounts/mfaSignIn:finalize": [
      "POST": IdentityOperation(RequestFields.multiFactorSignIn, guessPolicy: .failures) {
        try await $0.finalizeSecondFactor()
      }
    ],
    "accounts/passkeyEnrollment:start": [
      "POST": IdentityOperation(RequestFields.passkeyEnrolment) { try await $0.startPasskeyEnrolment() }
    ],
    "accounts/passkeyEnrollment:finalize": [
      "POST": IdentityOperation(RequestFields.passkeyEnrolment) { try await $0.finalizePasskeyEnrolment() }
    ],
    "accounts/passkeySignIn:start": [
      "POST": IdentityOperation(RequestFields.passkeySignIn) { try await $0.startPasskeySignIn() }
    ],
    "accounts/passkeySignIn:finalize": [
      "POST": IdentityOperation(RequestFields.passkeySignIn) { try await $0.finalizePasskeySignIn() }
    ],
    "accounts:revokeToken": ["POST": IdentityOperation(RequestFields.none) { try await $0.revokeToken() }],
    "passwordPolicy": ["GET": IdentityOperation(RequestFields.none) { try await $0.getPasswordPolicy() }],
    "recaptchaConfig": [
      "GET": IdentityOperation(RequestFields.none) { try await $0.getRecaptchaConfiguration() }
    ],
    "projects/config": [
      "GET": .privileged(RequestFields.none) { try await $0.getConfiguration() },
      "PATCH": .privileged(RequestFields.configuration) { try await $0.updateConfiguration() },
    ],
    "projects/tenants": [
      "GET": .privileged(RequestFields.none) { try await $0.listTenants() },
      "POST": .privileged(RequestFields.tenant) { try await $0.createTenant() },
    ],
    "projects/tenants/*": [
      "GET": .privileged(RequestFields.none) { try await $0.getTenant() },
      "PATCH": .privileged(RequestFields.tenant) { try await $0.updateTenant() },
      "DELETE": .privileged(RequestFields.none) { try await $0.deleteTenant() },
    ],
    "projects/defaultSupportedIdpConfigs": unimplementedResource("defaultSupportedIdpConfigs"),
    "projects/oauthIdpConfigs": unimplementedResource("oauthIdpConfigs"),
    "projects/inboundSamlConfigs": unimplementedResource("inboundSamlConfigs"),
    "projects/defaultSupportedIdpConfigs/*": unimplementedResource("defaultSupportedIdpConfigs"),
    "projects/oauthIdpConfigs/*": unimplementedResource("oauthIdpConfigs"),
    "projects/inboundSamlConfigs/*": unimplementedResource("inboundSamlConfigs"),
    "defaultSupportedIdps": ["GET": unimplemented("defaultSupportedIdps")],
  ]

  private static func unimplementedResource(_ name: String) -> [String: IdentityOperation] {
    var operation = unimplemented(name)
    operation.isPrivileged = true
    return ["GET": operation, "POST": operation, "PATCH": operation, "DELETE": operation]
  }

  /// `www.googleapis.com/identitytoolkit/v3/relyingparty`: the names that Apple clients use.
  static let version3: Table = [
    "signupNewUser": ["POST": signUp],
    "verifyPassword": ["POST": password],
    "verifyCustomToken": ["POST": customToken],
    "emailLinkSignin": ["POST": emailLink],
    "verifyAssertion": ["POST": provider],
    "verifyPhoneNumber": ["POST": phoneNumber],
    "sendVerificationCode": ["POST": verificationCode],
    "getAccountInfo": ["POST": lookup],
    "setAccountInfo": ["POST": update],
    "deleteAccount": ["POST": delete],
    "getOobConfirmationCode": ["POST": sendCode],
    "resetPassword": ["POST": resetPassword],
    "createAuthUri": ["POST": authURI],
    "getProjectConfig": ["GET": project],
    "getRecaptchaParam": ["GET": recaptchaParameters],
    "downloadAccount": ["POST": legacy(batchGet)],
    "uploadAccount": ["POST": legacy(batchCreate)],
    "signOutUser": ["POST": unimplemented("signOutUser")],
  ]

  /// `securetoken.googleapis.com/v1`.
  static let secureToken: Table = ["token": ["POST": token]]
}
