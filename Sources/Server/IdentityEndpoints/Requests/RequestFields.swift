// The members of the request bodies of every operation, with their types. The names and types are those of the public
// Identity Toolkit API.

/// The fields of request bodies.
enum RequestFields {
  private static let target: [String: FieldKind] = [
    "tenantId": .string, "targetProjectId": .string, "idToken": .string,
  ]

  private static func fields(_ fields: [String: FieldKind]) -> [String: FieldKind] {
    fields.merging(target) { declared, _ in declared }
  }

  private static let multiFactorState: FieldKind = .enumeration([
    "STATE_UNSPECIFIED", "DISABLED", "ENABLED", "MANDATORY",
  ])
  private static let multiFactor: FieldKind = .object([
    "state": multiFactorState,
    "enabledProviders": .list(.enumeration(["PROVIDER_UNSPECIFIED", "PHONE_SMS"])),
    "providerConfigs": .list(
      .object([
        "state": .enumeration(["MFA_STATE_UNSPECIFIED", "DISABLED", "ENABLED", "MANDATORY"]),
        "totpProviderConfig": .object(["adjacentIntervals": .int]),
      ])),
  ])
  private static let enrollment: FieldKind = .object([
    "mfaEnrollmentId": .string, "displayName": .string, "enrolledAt": .string, "phoneInfo": .string,
    "unobfuscatedPhoneInfo": .string, "totpInfo": .object([:]),
  ])
  private static let provider: FieldKind = .object([
    "providerId": .string, "rawId": .string, "federatedId": .string, "displayName": .string,
    "photoUrl": .string, "email": .string, "phoneNumber": .string, "screenName": .string,
  ])

  static let signUp = fields([
    "email": .string, "password": .string, "displayName": .string, "photoUrl": .string, "localId": .string,
    "emailVerified": .bool, "phoneNumber": .string, "disabled": .bool, "mfaInfo": .list(enrollment),
    "returnSecureToken": .bool, "captchaResponse": .string, "clientType": .string,
  ])
  static let password = fields([
    "email": .string, "password": .string, "pendingIdToken": .string, "captchaResponse": .string,
    "captchaChallenge": .string, "returnSecureToken": .bool,
  ])
  static let customToken = fields(["token": .string, "returnSecureToken": .bool])
  static let emailLink = fields(["email": .string, "oobCode": .string, "returnSecureToken": .bool])
  static let identityProvider = fields([
    "requestUri": .string, "postBody": .string, "pendingIdToken": .string, "pendingToken": .string,
    "returnIdpCredential": .bool, "returnRefreshToken": .bool, "returnSecureToken": .bool,
    "autoCreate": .bool, "sessionId": .string,
  ])
  static let phoneNumber = fields([
    "phoneNumber": .string, "sessionInfo": .string, "code": .string, "temporaryProof": .string,
    "verificationProof": .string, "operation": .any,
  ])
  static let verificationCode = fields([
    "phoneNumber": .string, "recaptchaToken": .string, "iosReceipt": .string, "iosSecret": .string,
    "safetyNetToken": .string,
  ])
  static let lookup = fields([
    "localId": .list(.string), "email": .list(.string), "phoneNumber": .list(.string),
    "federatedUserId": .list(provider), "initialEmail": .list(.string),
  ])
  static let update = fields([
    "oobCode": .string, "email": .string, "password": .string, "displayName": .string, "photoUrl": .string,
    "localId": .string, "emailVerified": .bool, "phoneNumber": .string, "customAttributes": .string,
    "createdAt": .decimal, "lastLoginAt": .decimal, "validSince": .decimal, "disableUser": .bool,
    "deleteAttribute": .list(
      .enumeration([
        "USER_ATTRIBUTE_NAME_UNSPECIFIED", "EMAIL", "DISPLAY_NAME", "PROVIDER", "PHOTO_URL", "PASSWORD",
        "RAW_USER_INFO",
      ])),
    "deleteProvider": .list(.string), "linkProviderUserInfo": provider, "deletePasskey": .list(.string),
    "mfa": .object(["enrollments": .list(enrollment)]), "returnSecureToken": .bool,
  ])
  static let delete = fields(["localId": .string])
  static let sendCode = fields([
    "requestType": .enumeration([
      "OOB_REQ_TYPE_UNSPECIFIED", "PASSWORD_RESET", "OLD_EMAIL_AGREE", "NEW_EMAIL_ACCEPT", "VERIFY_EMAIL",
      "RECOVER_EMAIL", "EMAIL_SIGNIN", "VERIFY_AND_CHANGE_EMAIL", "REVERT_SECOND_FACTOR_ADDITION",
    ]),
    "email": .string, "newEmail": .string, "continueUrl": .string, "returnOobLink": .bool,
    "canHandleCodeInApp": .bool,
  ])
  static let resetPassword = fields([
    "oobCode": .string, "newPassword": .string, "email": .string, "oldPassword": .string,
  ])
  static let authURI = fields([
    "identifier": .string, "continueUri": .string, "providerId": .string, "sessionId": .string,
  ])
  static let token = fields([
    "grantType": .string, "refreshToken": .string, "code": .string, "scope": .string,
  ])
  static let sessionCookie = fields(["validDuration": .decimal])
  static let batchCreate = fields([
    "users": .list(
      .object([
        "localId": .string, "email": .string, "emailVerified": .bool, "displayName": .string,
        "photoUrl": .string, "phoneNumber": .string, "disabled": .bool, "customAttributes": .string,
        "createdAt": .decimal, "lastLoginAt": .decimal, "passwordHash": .string, "salt": .string,
        "rawPassword": .string, "providerUserInfo": .list(provider), "mfaInfo": .list(enrollment),
        "customAuth": .bool, "emailLinkSignin": .bool, "initialEmail": .string, "validSince": .decimal,
        "lastRefreshAt": .string, "screenName": .string,
      ])),
    "allowOverwrite": .bool, "sanityCheck": .bool, "hashAlgorithm": .string, "signerKey": .string,
    "saltSeparator": .string, "rounds": .int, "memoryCost": .int, "cpuMemCost": .int,
    "parallelization": .int, "blockSize": .int, "dkLen": .int,
    "passwordHashOrder": .enumeration(["UNSPECIFIED_ORDER", "SALT_AND_PASSWORD", "PASSWORD_AND_SALT"]),
    "argon2Parameters": .object([
      "hashType": .string, "hashLengthBytes": .int, "parallelism": .int, "iterations": .int,
      "memoryCostKib": .int, "version": .string, "associatedData": .string,
    ]),
  ])
  static let batchGet = fields(["maxResults": .int, "nextPageToken": .string])
  static let batchDelete = fields(["localIds": .list(.string), "force": .bool])
  static let query = fields([
    "returnUserInfo": .bool, "limit": .decimal, "offset": .decimal, "expression": .list(.any),
    "sortBy": .enumeration([
      "SORT_BY_FIELD_UNSPECIFIED", "USER_ID", "NAME", "CREATED_AT", "LAST_LOGIN_AT", "USER_EMAIL",
    ]),
    "order": .enumeration(["ORDER_UNSPECIFIED", "ASC", "DESC"]),
  ])
  static let multiFactorEnrolment = fields([
    "phoneEnrollmentInfo": .object(["phoneNumber": .string]), "totpEnrollmentInfo": .object([:]),
    "phoneVerificationInfo": .object(["sessionInfo": .string, "code": .string, "phoneNumber": .string]),
    "totpVerificationInfo": .object(["sessionInfo": .string, "verificationCode": .string]),
    "displayName": .string, "mfaEnrollmentId": .string,
  ])
  static let multiFactorSignIn = fields([
    "mfaPendingCredential": .string, "mfaEnrollmentId": .string, "phoneSignInInfo": .object([:]),
    "phoneVerificationInfo": .object(["sessionInfo": .string, "code": .string, "phoneNumber": .string]),
    "totpVerificationInfo": .object(["verificationCode": .string]),
  ])
  static let passkeyEnrolment = fields([
    "name": .string, "authenticatorRegistrationResponse": .object(["id": .string]),
  ])
  static let passkeySignIn = fields([
    "sessionId": .string, "authenticatorAuthenticationResponse": .object(["id": .string]),
  ])
  static let tenant: [String: FieldKind] = [
    "displayName": .string, "allowPasswordSignup": .bool, "enableEmailLinkSignin": .bool,
    "enableAnonymousUser": .bool, "disableAuth": .bool, "mfaConfig": multiFactor,
  ]
  static let configuration: [String: FieldKind] = [
    "signIn": .object([
      "allowDuplicateEmails": .bool, "anonymous": .object(["enabled": .bool]),
      "email": .object(["enabled": .bool, "passwordRequired": .bool]),
    ]),
    "emailPrivacyConfig": .object(["enableImprovedEmailPrivacy": .bool]),
    "blockingFunctions": .object(["triggers": .any, "forwardInboundCredentials": .any]),
    "mfa": multiFactor,
  ]
  static let none = fields([:])
}
