// Completes a sign-in with a second factor. The client returns the state after the first factor in the pending
// credential, a token that a secret of the project authenticates.

import Identity
import JSON

extension IdentityCall {
  /// Seconds for which a pending credential is valid in production.
  private static let pendingSeconds: Int64 = 3600

  /// The contents of a pending credential.
  private struct Pending: Sendable {
    var session: RefreshToken
    var method: String?
  }

  private func readPendingCredential(_ text: String) throws(IdentityError) -> Pending {
    guard let object = seal.open(text, as: .pendingFactor), let session = RefreshToken(object),
      session.tenantID == tenantID, isEmulator || nowSeconds - session.issuedAt <= Self.pendingSeconds
    else { throw .rejected("INVALID_MFA_PENDING_CREDENTIAL") }
    return Pending(session: session, method: object["method"]?.string)
  }

  private func account(_ pending: Pending, _ reader: IdentityReader) throws -> Account {
    guard let account = try reader.account(pending.session.localID, in: tenantID) else {
      throw IdentityError.rejected("USER_NOT_FOUND")
    }
    if let validSince = account.validSince, pending.session.issuedAt < validSince {
      throw IdentityError.rejected("INVALID_MFA_PENDING_CREDENTIAL")
    }
    guard !account.isDisabled else { throw IdentityError.rejected("USER_DISABLED") }
    return account
  }

  /// `mfaSignIn:start`.
  func startSecondFactor() async throws -> JSONObject {
    guard multiFactor.offersPhone else {
      throw IdentityError.rejected("OPERATION_NOT_ALLOWED", "SMS based MFA not enabled.")
    }
    guard let text = body.text("mfaPendingCredential") else {
      throw IdentityError.rejected("MISSING_MFA_PENDING_CREDENTIAL", "Please set MFA Pending Credential.")
    }
    guard let id = body.text("mfaEnrollmentId") else {
      throw IdentityError.rejected(
        "MISSING_MFA_ENROLLMENT_ID", "No second factor identifier is provided.")
    }
    let pending = try readPendingCredential(text)
    let session = try await write { transaction in
      let account = try self.account(pending, transaction.reader)
      guard let factor = account.secondFactors.first(where: { $0.id == id }) else {
        throw IdentityError.rejected("MFA_ENROLLMENT_NOT_FOUND")
      }
      guard let number = factor.phoneNumber else {
        throw IdentityError.rejected("INVALID_ARGUMENT", "MFA provider not supported!")
      }
      return try self.beginVerification(number, for: .secondFactor, in: transaction)
    }
    try await services.delivery.sendTextMessage(session, language: language)
    return ["phoneResponseInfo": .object(["sessionInfo": .string(session.session)])]
  }

  /// `mfaSignIn:finalize`.
  func finalizeSecondFactor() async throws -> JSONObject {
    guard let text = body.text("mfaPendingCredential") else {
      throw IdentityError.rejected("MISSING_CREDENTIAL", "Please set MFA Pending Credential.")
    }
    let usesTOTP = body.has("totpVerificationInfo")
    guard usesTOTP || body.has("phoneVerificationInfo") else {
      throw IdentityError.rejected("INVALID_ARGUMENT", "MFA provider not supported!")
    }
    guard usesTOTP ? multiFactor.offersTOTP : multiFactor.offersPhone else {
      throw IdentityError.rejected(
        "OPERATION_NOT_ALLOWED", "\(usesTOTP ? "TOTP" : "SMS") based MFA not enabled.")
    }
    let phone = usesTOTP ? nil : try phoneVerification()
    let totp = usesTOTP ? try totpVerification() : nil
    let pending = try readPendingCredential(text)
    // An attacker who knows the password can begin any number of sign-ins, so guesses of codes are counted per account.
    let key = AttemptLimiter.Key(
      .secondFactor, project: projectID, tenant: tenantID ?? "", account: pending.session.localID)
    return try await countingGuess(key) {
      let failure = ReportedError()
      let response = try await self.completeSecondFactor(pending, phone, totp, failure)
      if let error = failure.error { throw error }
      return response
    }
  }

  private func completeSecondFactor(
    _ pending: Pending, _ phone: (session: String, code: String)?, _ totp: (id: String, code: String)?,
    _ failure: ReportedError
  ) async throws -> JSONObject {
    try await signIn { transaction, _ in
      var account = try self.account(pending, transaction.reader)
      let factor: Account.SecondFactor
      if let phone {
        switch try self.verify(
          session: phone.session, code: phone.code, for: .secondFactor, in: transaction)
        {
        case .failed(let error):
          failure.report(error)
          return .respond([:])
        case .verified(let number):
          guard let enrolled = account.secondFactors.first(where: { $0.phoneNumber == number }) else {
            throw IdentityError.rejected("MFA_ENROLLMENT_NOT_FOUND")
          }
          factor = enrolled
        }
      } else {
        factor = try self.useTOTP(totp?.id ?? "", totp?.code ?? "", &account)
        try transaction.put(account)
      }
      var session = self.newSession(account, provider: pending.session.provider)
      session.extraClaims = pending.session.extraClaims
      session.signInAttributes = pending.session.signInAttributes
      session.secondFactor = .init(
        identifier: factor.id, provider: factor.phoneNumber == nil ? "totp" : "phone")
      var firstFactor = FirstFactor(account: account, session: session, response: [:], method: pending.method)
      firstFactor.requiresSecondFactor = false
      firstFactor.includesExpiry = false
      return .signIn(firstFactor)
    }
  }

  private func totpVerification() throws(IdentityError) -> (id: String, code: String) {
    guard let id = body.text("mfaEnrollmentId") else {
      throw .rejected("MISSING_MFA_ENROLLMENT_ID", "No second factor identifier is provided.")
    }
    guard let code = body.object("totpVerificationInfo")?["verificationCode"]?.string, !code.isEmpty else {
      throw .rejected("MISSING_CODE")
    }
    return (id, code)
  }

  /// Checks a time-based code, and records its time step so that it cannot be used again.
  private func useTOTP(_ id: String, _ code: String, _ account: inout Account) throws -> Account.SecondFactor
  {
    guard let index = account.secondFactors.firstIndex(where: { $0.id == id }),
      case .totp(let secret, let lastStep) = account.secondFactors[index].kind
    else { throw IdentityError.rejected("MFA_ENROLLMENT_NOT_FOUND") }
    guard
      let step = TimeBasedCode.step(
        of: code, secret: secret, seconds: nowSeconds, adjacent: multiFactor.totpAdjacentIntervals ?? 0,
        after: lastStep)
    else { throw IdentityError.rejected("INVALID_CODE") }
    account.secondFactors[index].kind = .totp(secret: secret, lastStep: step)
    return account.secondFactors[index]
  }
}
