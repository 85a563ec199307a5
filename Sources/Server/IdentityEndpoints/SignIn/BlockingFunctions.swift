// Calls blocking functions: functions of the project that receive each sign-in over HTTP, and that can change or reject
// the user. The request has the form `{"data":{"jwt":"…"}}`; the response may contain changes of the account as
// `userRecord`.

package import Identity
package import JSON

/// A call of a blocking function that a transaction needs before it can continue. The transaction throws the request,
/// and runs again with the function's result.
package struct BlockingFunctionRequest: Error, Sendable {
  fileprivate let event: ProjectSettings.BlockingEvent
  fileprivate let uri: String
  fileprivate let claims: JSONObject

  /// Creates a request; nil if the project has no function for the event.
  package init?(
    _ event: ProjectSettings.BlockingEvent, _ account: Account, method: String, session: RefreshToken,
    rawUserInfo: String?, in call: IdentityCall
  ) {
    guard let uri = call.project.blockingFunctions[event] else { return nil }
    self.event = event
    self.uri = uri
    var claims: JSONObject = [
      "iss": .string(IDTokenClaims.issuer(of: call.projectID)), "aud": .string(uri),
      "iat": .int(call.nowSeconds), "exp": .int(call.nowSeconds + IDTokenClaims.lifetimeSeconds),
      "event_id": .string(RandomText.identifier(10)), "event_type": .string(event.rawValue),
      "user_agent": .string(""), "ip_address": .string(""),
      "locale": .string(call.language), "sub": .string(account.localID), "sign_in_method": .string(method),
      "user_record": .object(Self.record(account, call.tenantID)),
    ]
    claims.set("tenant_id", call.tenantID)
    claims.set("raw_user_info", rawUserInfo)
    if let factor = session.secondFactor {
      claims["sign_in_second_factor"] = .string(factor.provider)
    }
    if let attributes = session.signInAttributes { claims["sign_in_attributes"] = attributes }
    self.claims = claims
  }

  private static func record(_ account: Account, _ tenant: String?) -> JSONObject {
    var record: JSONObject = ["uid": .string(account.localID)]
    record.set("email", account.email)
    record["email_verified"] = .bool(account.isEmailVerified ?? false)
    record.set("display_name", account.displayName)
    record.set("photo_url", account.photoURL)
    record.set("phone_number", account.phoneNumber)
    record["disabled"] = .bool(account.isDisabled)
    record.set("tenant_id", tenant)
    if let text = account.customAttributes, let claims = (try? JSONValue(json: text))?.object {
      record["custom_claims"] = .object(claims)
    }
    var metadata: JSONObject = ["creation_time": .int(account.createdAt)]
    metadata.set("last_sign_in_time", account.lastLoginAt)
    record["metadata"] = .object(metadata)
    record["provider_data"] = .array((account.providerInfo ?? []).map(providerData))
    if !account.secondFactors.isEmpty {
      let factors = account.secondFactors.map { factor -> JSONValue in
        var object: JSONObject = ["uid": .string(factor.id), "enrollment_time": .string(factor.enrolledAt)]
        object.set("display_name", factor.displayName)
        object.set("phone_number", factor.phoneNumber)
        object["factor_id"] = .string(factor.phoneNumber == nil ? "totp" : "phone")
        return .object(object)
      }
      record["multi_factor"] = .object(["enrolled_factors": .array(factors)])
    }
    return record
  }

  private static func providerData(_ info: JSONValue) -> JSONValue {
    var object = JSONObject()
    let names = [
      ("providerId", "provider_id"), ("rawId", "uid"), ("displayName", "display_name"),
      ("email", "email"), ("photoUrl", "photo_url"), ("phoneNumber", "phone_number"),
    ]
    for (name, snakeCase) in names { object.set(snakeCase, info[name]?.string) }
    return .object(object)
  }
}

/// The changes that a blocking function requests.
package struct BlockingResult: Sendable {
  private var displayName: String?
  private var photoURL: String?
  private var disabled: Bool?
  private var isEmailVerified: Bool?
  private var customAttributes: String?
  /// Claims of the session's ID tokens.
  package private(set) var sessionClaims = JSONObject()

  /// Reads the response of a function. Members that its update mask does not name are ignored.
  fileprivate init(_ response: JSONObject, _ event: ProjectSettings.BlockingEvent) throws(IdentityError) {
    guard let record = response["userRecord"]?.object else { return }
    guard let mask = record["updateMask"]?.string else {
      throw .rejected(
        "BLOCKING_FUNCTION_ERROR_RESPONSE", "((Response UserRecord is missing updateMask.))")
    }
    for field in mask.split(separator: ",") {
      switch field {
      case "displayName": displayName = record["displayName"]?.string
      case "photoUrl": photoURL = record["photoUrl"]?.string
      case "disabled": disabled = record["disabled"]?.bool
      case "emailVerified": isEmailVerified = record["emailVerified"]?.bool
      case "customClaims":
        let claims = try Self.claims(record["customClaims"])
        customAttributes = String(decoding: JSONValue.object(claims).json(), as: UTF8.self)
        try CustomAttributes.validate(customAttributes ?? "{}")
      case "sessionClaims" where event == .beforeSignIn:
        sessionClaims = try Self.claims(record["sessionClaims"])
      default: break
      }
    }
  }

  private static func claims(_ value: JSONValue?) throws(IdentityError) -> JSONObject {
    guard let value, !value.isNull else { return [:] }
    guard let claims = value.object else { throw .rejected("INVALID_CLAIMS") }
    try IDTokenClaims.validateCustom(claims)
    return claims
  }

  /// Changes an account.
  package func apply(to account: inout Account) {
    if let displayName { account.displayName = displayName }
    if let photoURL { account.photoURL = photoURL }
    if let disabled { account.disabled = disabled }
    if let isEmailVerified { account.isEmailVerified = isEmailVerified }
    if let customAttributes { account.customAttributes = customAttributes }
  }
}

extension IdentityCall {
  /// Seconds within which a function must respond. The hosted product allows 7; the emulator allows 60.
  private static let blockingTimeoutSeconds: Int64 = 60
  /// Maximum bytes of a function's response that an error repeats.
  private static let maximumRepeatedBytes = 2000

  /// Calls a blocking function.
  /// - Throws: `BLOCKING_FUNCTION_ERROR_RESPONSE` if the function fails or rejects the user.
  package func call(_ request: BlockingFunctionRequest) async throws -> BlockingResult {
    let token = try await services.tokens.encode(request.claims)
    let body = JSONValue.object(["data": .object(["jwt": .string(token)])]).json()
    let response: OutboundHTTP.Response
    do {
      response = try await services.outbound.post(
        body, to: request.uri, seconds: Self.blockingTimeoutSeconds)
    } catch {
      throw Self.failure("((Failed to make request to \(request.uri): \(error)))")
    }
    let text = String(decoding: response.body.prefix(Self.maximumRepeatedBytes), as: UTF8.self)
    guard (200..<300).contains(response.status) else {
      throw IdentityError.rejected(
        "BLOCKING_FUNCTION_ERROR_RESPONSE",
        "((HTTP request to \(request.uri) returned HTTP error \(response.status): \(text)))")
    }
    guard let object = (try? JSONValue(json: response.body, limits: JSONLimits(depth: 32)))?.object else {
      throw Self.failure("((Response body is not valid JSON.))")
    }
    return try BlockingResult(object, request.event)
  }

  private static func failure(_ detail: String) -> IdentityError {
    IdentityError(
      500, "INTERNAL", "BLOCKING_FUNCTION_ERROR_RESPONSE : \(detail)", reason: "backendError")
  }
}
