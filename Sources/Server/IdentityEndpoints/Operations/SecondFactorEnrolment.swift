// Enrols second factors of an account and removes them.

import Identity
import JSON

extension IdentityCall {
  /// The first factors to which no second factor can be added.
  private static let ineligibleProviders = ["anonymous", "phone", "custom", "gameCenter"]

  private static let unsupportedFirstFactor = IdentityError.rejected(
    "UNSUPPORTED_FIRST_FACTOR", "MFA is not available for the given first factor.")
  private static let duplicateFactor = IdentityError.rejected(
    "SECOND_FACTOR_EXISTS", "Phone number already enrolled as second factor for this account.")

  private var usesTOTP: Bool { body.has("totpEnrollmentInfo") || body.has("totpVerificationInfo") }

  /// Maximum second factors of an account, as in the hosted product.
  private static let maximumFactors = 5

  /// Checks that the requested factor is offered.
  private func checkOffered() throws(IdentityError) {
    if usesTOTP {
      guard multiFactor.offersTOTP else {
        throw .rejected("OPERATION_NOT_ALLOWED", "TOTP based MFA not enabled.")
      }
    } else {
      guard multiFactor.offersPhone else {
        throw .rejected("OPERATION_NOT_ALLOWED", "SMS based MFA not enabled.")
      }
    }
  }

  private func enrollingAccount(_ reader: IdentityReader) throws -> (account: Account, token: IDToken) {
    let (account, token) = try account(reader)
    guard !Self.ineligibleProviders.contains(token.provider) else { throw Self.unsupportedFirstFactor }
    try requireRecentSignIn(token)
    return (account, token)
  }

  /// `mfaEnrollment:start`.
  func startEnrolment() async throws -> JSONObject {
    try checkOffered()
    guard body.text("idToken") != nil else { throw IdentityError.rejected("MISSING_ID_TOKEN") }
    if usesTOTP {
      let account = try await read { reader in
        let account = try self.enrollingAccount(reader).account
        try self.checkMayEnrol(account)
        return account
      }
      return totpSession(account)
    }
    let session = try await write { transaction in
      let account = try self.enrollingAccount(transaction.reader).account
      try self.checkMayEnrol(account)
      guard let info = self.body.object("phoneEnrollmentInfo") else {
        throw IdentityError.rejected("INVALID_ARGUMENT", "((Missing phoneEnrollmentInfo.))")
      }
      guard let number = info["phoneNumber"]?.string, PhoneNumber.isValid(number) else {
        throw IdentityError.rejected("INVALID_PHONE_NUMBER", "Invalid format.")
      }
      guard !account.secondFactors.contains(where: { $0.phoneNumber == number }) else {
        throw Self.duplicateFactor
      }
      return try self.beginVerification(number, for: .enrolment, in: transaction)
    }
    try await services.delivery.sendTextMessage(session, language: language)
    return ["phoneSessionInfo": .object(["sessionInfo": .string(session.session)])]
  }

  private func checkMayEnrol(_ account: Account) throws(IdentityError) {
    guard account.isEmailVerified == true else {
      throw .rejected("UNVERIFIED_EMAIL", "Need to verify email first before enrolling second factors.")
    }
    guard account.secondFactors.count < Self.maximumFactors else {
      throw .rejected("SECOND_FACTOR_LIMIT_EXCEEDED")
    }
  }

  /// Seconds within which the enrolment of a time-based factor must be completed.
  private static let totpEnrolmentSeconds: Int64 = 300
  /// Bytes of a secret, as RFC 4226 recommends.
  private static let secretBytes = 20

  private func totpSession(_ account: Account) -> JSONObject {
    let secret = RandomText.bytes(Self.secretBytes)
    let deadline = nowSeconds + Self.totpEnrolmentSeconds
    let session: JSONObject = [
      "localId": .string(account.localID), "secret": .string(Base64.encode(secret)), "exp": .int(deadline),
    ]
    return [
      "totpSessionInfo": .object([
        "sharedSecretKey": .string(Base32.encode(secret)), "verificationCodeLength": .int(6),
        "hashingAlgorithm": .string("SHA1"), "periodSec": .int(30),
        "sessionInfo": .string(seal.seal(session, as: .totpEnrolment)),
        "finalizeEnrollmentTime": .string(RFC3339.text(deadline * 1000)),
      ])
    ]
  }

  /// `mfaEnrollment:finalize`.
  func finalizeEnrolment() async throws -> JSONObject {
    try checkOffered()
    guard body.text("idToken") != nil else { throw IdentityError.rejected("MISSING_ID_TOKEN") }
    guard !usesTOTP, let name = body.object("phoneVerificationInfo")?["sessionInfo"]?.string,
      let session = try await read({ try $0.phoneSession(name, in: self.tenantID) })
    else { return try await completeEnrolment() }
    return try await countingGuess(guessKey(session)) { try await self.completeEnrolment() }
  }

  private func completeEnrolment() async throws -> JSONObject {
    let newID = RandomText.identifier(28)
    let failure = ReportedError()
    let grant = try await write { transaction -> TokenGrant? in
      var (account, token) = try self.enrollingAccount(transaction.reader)
      // The error for an account that cannot enrol must not depend on the code.
      if !self.isEmulator { try self.checkMayEnrol(account) }
      let kind: Account.SecondFactor.Kind
      if self.usesTOTP {
        kind = try self.verifiedTOTP(account)
      } else {
        let (session, code) = try self.phoneVerification()
        switch try self.verify(session: session, code: code, for: .enrolment, in: transaction) {
        case .failed(let error):
          failure.report(error)
          return nil
        case .verified(let number):
          guard !account.secondFactors.contains(where: { $0.phoneNumber == number }) else {
            throw Self.duplicateFactor
          }
          kind = .phone(number)
        }
      }
      try self.checkMayEnrol(account)
      account.secondFactors.append(
        Account.SecondFactor(
          id: newID, displayName: self.body.string("displayName"), enrolledAt: RFC3339.text(self.now),
          kind: kind))
      var session = self.continuedSession(token)
      session.secondFactor = .init(identifier: newID, provider: self.usesTOTP ? "totp" : "phone")
      var grant = try self.grant(session, &account, in: transaction)
      grant.includesExpiry = false
      return grant
    }
    if let error = failure.error { throw error }
    var response = JSONObject()
    try await add(grant, to: &response)
    return response
  }

  /// The session and code of the body's phone verification.
  func phoneVerification() throws(IdentityError) -> (session: String, code: String) {
    guard let info = body.object("phoneVerificationInfo") else {
      throw .rejected("INVALID_ARGUMENT", "((Missing phoneVerificationInfo.))")
    }
    guard let code = info["code"]?.string, !code.isEmpty else { throw .rejected("MISSING_CODE") }
    guard let session = info["sessionInfo"]?.string, !session.isEmpty else {
      throw .rejected("MISSING_SESSION_INFO")
    }
    return (session, code)
  }

  private func verifiedTOTP(_ account: Account) throws(IdentityError) -> Account.SecondFactor.Kind {
    let info = body.object("totpVerificationInfo") ?? [:]
    guard let code = info["verificationCode"]?.string, !code.isEmpty else { throw .rejected("MISSING_CODE") }
    guard let text = info["sessionInfo"]?.string, !text.isEmpty else {
      throw .rejected("MISSING_SESSION_INFO")
    }
    guard let session = seal.open(text, as: .totpEnrolment),
      session["localId"]?.string == account.localID, let secretText = session["secret"]?.string,
      let secret = Base64.decode(secretText.utf8, .standard, paddedBy: [UInt8(ascii: "=")])
    else { throw .rejected("INVALID_SESSION_INFO") }
    guard let deadline = session["exp"]?.int, nowSeconds <= deadline else {
      throw .rejected("SESSION_EXPIRED")
    }
    guard
      let step = TimeBasedCode.step(
        of: code, secret: secret, seconds: nowSeconds, adjacent: multiFactor.totpAdjacentIntervals ?? 0,
        after: 0)
    else { throw .rejected("INVALID_CODE") }
    return .totp(secret: secret, lastStep: step)
  }

  /// `mfaEnrollment:withdraw`.
  func withdrawEnrolment() async throws -> JSONObject {
    guard body.text("idToken") != nil else { throw IdentityError.rejected("MISSING_ID_TOKEN") }
    let grant = try await write { transaction in
      var (account, token) = try self.account(transaction.reader)
      try self.requireRecentSignIn(token)
      let id = self.body.string("mfaEnrollmentId") ?? ""
      guard account.secondFactors.contains(where: { $0.id == id }) else {
        throw IdentityError.rejected("MFA_ENROLLMENT_NOT_FOUND")
      }
      account.secondFactors.removeAll { $0.id == id }
      var session = self.continuedSession(token)
      if session.secondFactor?.identifier == id { session.secondFactor = nil }
      var grant = try self.grant(session, &account, in: transaction)
      grant.includesExpiry = false
      return grant
    }
    var response = JSONObject()
    try await add(grant, to: &response)
    return response
  }
}
