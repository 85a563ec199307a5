// Signs in with a phone number: sends a code in a text message, and checks it.

import Identity
import JSON

extension IdentityCall {
  /// `accounts:sendVerificationCode`.
  func sendVerificationCode() async throws -> JSONObject {
    guard tenantID == nil else { throw IdentityError.rejected("UNSUPPORTED_TENANT_OPERATION") }
    guard let number = body.text("phoneNumber"), PhoneNumber.isValid(number) else {
      throw IdentityError.rejected("INVALID_PHONE_NUMBER", "Invalid format.")
    }
    let session = try await write { transaction in
      if let account = try transaction.reader.account(phoneNumber: number, in: nil) {
        try self.checkFirstFactor(account)
      }
      return try self.beginVerification(number, for: .signIn, in: transaction)
    }
    try await services.delivery.sendTextMessage(session, language: language)
    return ["sessionInfo": .string(session.session)]
  }

  private func checkFirstFactor(_ account: Account) throws(IdentityError) {
    guard account.secondFactors.isEmpty else {
      throw .rejected(
        "UNSUPPORTED_FIRST_FACTOR", "A phone number cannot be set as a first factor on an SMS based MFA user."
      )
    }
  }

  /// Stores a new verification of a phone number.
  /// - Throws: `TOO_MANY_ATTEMPTS_TRY_LATER` after many messages to the number.
  func beginVerification(
    _ number: String, for purpose: PhoneSession.Purpose, in transaction: IdentityTransaction
  ) throws -> PhoneSession {
    try countMessage(to: number)
    let session = PhoneSession(phoneNumber: number, purpose: purpose, createdAt: now)
    try transaction.put(session, in: tenantID, removingExpiredAt: removalTime)
    return session
  }

  /// The result of a check of a code: the phone number, or an error that must be returned after the commit.
  enum Verification: Sendable {
    case verified(String)
    case failed(IdentityError)
  }

  /// Checks a code. A correct code ends its session. In production the session counts each wrong code, and the
  /// transaction must commit that count.
  func verify(
    session name: String, code: String, for purpose: PhoneSession.Purpose,
    in transaction: IdentityTransaction
  ) throws -> Verification {
    guard var session = try transaction.reader.phoneSession(name, in: tenantID),
      isEmulator || session.purpose == purpose
    else {
      throw IdentityError.rejected("INVALID_SESSION_INFO")
    }
    if !isEmulator, session.isExpired(at: now) {
      try transaction.removePhoneSession(name, in: tenantID)
      return .failed(.rejected("SESSION_EXPIRED"))
    }
    guard code.utf8.elementsEqual(session.code.utf8) else {
      guard !isEmulator else { throw IdentityError.rejected("INVALID_CODE") }
      session.attempts += 1
      if session.attempts >= PhoneSession.maximumAttempts {
        try transaction.removePhoneSession(name, in: tenantID)
      } else {
        try transaction.put(session, in: tenantID, removingExpiredAt: nil)
      }
      return .failed(.rejected("INVALID_CODE"))
    }
    try transaction.removePhoneSession(name, in: tenantID)
    return .verified(session.phoneNumber)
  }

  /// `accounts:signInWithPhoneNumber`.
  func signInWithPhoneNumber() async throws -> JSONObject {
    guard tenantID == nil else { throw IdentityError.rejected("UNSUPPORTED_TENANT_OPERATION") }
    if body.text("temporaryProof") == nil {
      guard body.text("sessionInfo") != nil else { throw IdentityError.rejected("MISSING_SESSION_INFO") }
      guard body.text("code") != nil else { throw IdentityError.rejected("MISSING_CODE") }
    } else if body.text("phoneNumber") == nil {
      throw IdentityError.rejected("MISSING_PHONE_NUMBER")
    }
    // A secret of the project authenticates a temporary proof. It cannot be guessed, so it is not counted as a guess.
    guard body.text("temporaryProof") == nil,
      let session = try await read({ try $0.phoneSession(self.body.text("sessionInfo") ?? "", in: nil) })
    else { return try await completePhoneSignIn() }
    return try await countingGuess(guessKey(session)) { try await self.completePhoneSignIn() }
  }

  /// The key for counting guesses of the codes of a phone number.
  func guessKey(_ session: PhoneSession) -> AttemptLimiter.Key {
    AttemptLimiter.Key(
      .phoneNumber, project: projectID, tenant: tenantID ?? "", account: session.phoneNumber)
  }

  private func completePhoneSignIn() async throws -> JSONObject {
    let newID = RandomText.identifier(28)
    let failure = ReportedError()
    let response = try await signIn { transaction, result in
      let number: String
      switch try self.provenNumber(in: transaction) {
      case .verified(let verified): number = verified
      case .failed(let error):
        failure.report(error)
        return .respond([:])
      }
      let caller = self.body.has("idToken") ? try self.account(transaction.reader).account : nil
      let owner = try transaction.reader.account(phoneNumber: number, in: nil)
      if let caller, let owner, !owner.hasID(caller.localID) {
        guard self.body.text("temporaryProof") == nil else {
          throw IdentityError.rejected("PHONE_NUMBER_EXISTS")
        }
        return .respond(self.temporaryProof(number))
      }
      var account = caller ?? owner ?? self.newAccount(newID)
      let isNew = caller == nil && owner == nil
      guard !account.isDisabled else { throw IdentityError.rejected("USER_DISABLED") }
      try self.checkFirstFactor(account)
      account.phoneNumber = number
      let session = self.newSession(account, provider: "phone")
      if isNew {
        account.lastLoginAt = self.now
        try self.applyBeforeCreate(result, to: &account, method: "phone", session: session)
      }
      try transaction.put(account)
      var factor = FirstFactor(
        account: account, session: session,
        response: [
          "isNewUser": .bool(isNew), "phoneNumber": .string(number), "localId": .string(account.localID),
        ], method: "phone")
      factor.requiresSecondFactor = false
      return .signIn(factor)
    }
    if let error = failure.error { throw error }
    return response
  }

  /// The phone number that the body proves by a code or a temporary proof.
  private func provenNumber(in transaction: IdentityTransaction) throws -> Verification {
    guard let proof = body.text("temporaryProof") else {
      return try verify(
        session: body.text("sessionInfo") ?? "", code: body.text("code") ?? "", for: .signIn,
        in: transaction)
    }
    guard let object = seal.open(proof, as: .phoneProof), let number = object["phoneNumber"]?.string,
      let expiry = object["exp"]?.int, number == body.text("phoneNumber"), isEmulator || expiry > nowSeconds
    else { throw IdentityError.rejected("INVALID_TEMPORARY_PROOF") }
    return .verified(number)
  }

  private static let proofSeconds: Int64 = 3600

  /// The response for a verified number that belongs to another account. With this proof the client can sign in to that
  /// account.
  private func temporaryProof(_ number: String) -> JSONObject {
    let proof: JSONObject = [
      "phoneNumber": .string(number), "exp": .int(nowSeconds + Self.proofSeconds),
    ]
    return [
      "phoneNumber": .string(number), "temporaryProof": .string(seal.seal(proof, as: .phoneProof)),
      "temporaryProofExpiresIn": .string(String(Self.proofSeconds)),
    ]
  }
}
