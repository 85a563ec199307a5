// Runs the sign-in flow: the steps that all sign-ins have in common. An operation finds or creates the account (the
// first factor). The flow then requires a second factor, calls the blocking functions of the project, and grants
// tokens.
//
// Blocking functions are HTTP calls, which cannot run inside a transaction. The flow therefore runs the operation again
// with the result of `beforeCreate`, and runs `beforeSignIn` between two transactions.
//
// Invariant: no account is stored if its `beforeCreate` function failed.

package import Identity
package import JSON

/// The state of a sign-in after its first factor.
package struct FirstFactor: Sendable {
  package var account: Account
  package var session: RefreshToken
  /// The members of the response other than tokens.
  package var response: JSONObject
  /// The method that blocking functions receive; nil if none is called for this sign-in.
  package var method: String?
  /// The provider's information on the user, for blocking functions.
  package var rawUserInfo: String?
  /// Whether an enrolled second factor is required.
  package var requiresSecondFactor = true
  /// Whether the response contains `expiresIn`.
  package var includesExpiry = true

  /// Creates the state of a sign-in.
  package init(account: Account, session: RefreshToken, response: JSONObject, method: String? = nil) {
    self.account = account
    self.session = session
    self.response = response
    self.method = method
  }
}

/// The result of an operation's transaction.
package enum SignInStep: Sendable {
  /// The operation ends with this response, without a sign-in.
  case respond(JSONObject)
  case signIn(FirstFactor)
}

extension IdentityCall {
  private enum Outcome: Sendable {
    case respond(JSONObject, TokenGrant?)
    case disabled
    case beforeSignIn(FirstFactor)
  }

  /// Runs a sign-in.
  /// - Parameter findOrCreateAccount: checks the first factor. It may run twice; the second time it receives the result
  ///   of `beforeCreate`.
  package func signIn(
    _ findOrCreateAccount: @escaping @Sendable (IdentityTransaction, BlockingResult?) throws -> SignInStep
  ) async throws -> JSONObject {
    var beforeCreateResult: BlockingResult?
    while true {
      do {
        let result = beforeCreateResult
        let outcome = try await write { transaction in
          switch try findOrCreateAccount(transaction, result) {
          case .respond(let response): Outcome.respond(response, nil)
          case .signIn(let factor): try self.proceed(factor, in: transaction)
          }
        }
        return try await finish(outcome)
      } catch let request as BlockingFunctionRequest {
        precondition(beforeCreateResult == nil, "invariant: beforeCreate is called once for each sign-in")
        beforeCreateResult = try await call(request)
      }
    }
  }

  /// Decides the next step after the first factor: a second factor, the function `beforeSignIn`, or tokens.
  private func proceed(_ factor: FirstFactor, in transaction: IdentityTransaction) throws -> Outcome {
    if factor.account.isDisabled { return .disabled }
    if factor.requiresSecondFactor, multiFactor.isEnabled, !factor.account.secondFactors.isEmpty {
      return .respond(pendingResponse(factor), nil)
    }
    if factor.method != nil, project.blockingFunctions[.beforeSignIn] != nil { return .beforeSignIn(factor) }
    return try complete(factor, in: transaction)
  }

  private func complete(_ factor: FirstFactor, in transaction: IdentityTransaction) throws -> Outcome {
    var account = factor.account
    account.lastLoginAt = now
    var grant = try grant(factor.session, &account, in: transaction)
    grant.includesExpiry = factor.includesExpiry
    return .respond(factor.response, grant)
  }

  private func finish(_ outcome: Outcome) async throws -> JSONObject {
    switch outcome {
    case .respond(var response, let grant):
      try await add(grant, to: &response)
      return response
    case .disabled: throw IdentityError.rejected("USER_DISABLED")
    case .beforeSignIn(let factor):
      guard
        let request = BlockingFunctionRequest(
          .beforeSignIn, factor.account, method: factor.method ?? "", session: factor.session,
          rawUserInfo: factor.rawUserInfo, in: self)
      else { preconditionFailure("invariant: beforeSignIn is configured") }
      let result = try await call(request)
      let next = try await write { transaction in
        guard var account = try transaction.reader.account(factor.account.localID, in: self.tenantID) else {
          throw IdentityError.rejected("USER_NOT_FOUND")
        }
        result.apply(to: &account)
        try transaction.put(account)
        if account.isDisabled { return Outcome.disabled }
        var factor = factor
        factor.account = account
        factor.session.extraClaims.merge(result.sessionClaims)
        return try self.complete(factor, in: transaction)
      }
      return try await finish(next)
    }
  }

  /// The response that requests a second factor in place of tokens.
  private func pendingResponse(_ factor: FirstFactor) -> JSONObject {
    var response = factor.response
    var pending = factor.session.object
    pending.set("method", factor.method)
    response["mfaPendingCredential"] = .string(seal.seal(pending, as: .pendingFactor))
    response["mfaInfo"] = .array(
      factor.account.secondFactors.map { .object($0.info(for: .user)) })
    return response
  }

  /// Applies the result of `beforeCreate` to a new account.
  /// - Throws: ``BlockingFunctionRequest`` if the function is configured and has not been called.
  package func applyBeforeCreate(
    _ result: BlockingResult?, to account: inout Account, method: String, session: RefreshToken,
    rawUserInfo: String? = nil
  ) throws {
    if let result { return result.apply(to: &account) }
    if let request = BlockingFunctionRequest(
      .beforeCreate, account, method: method, session: session, rawUserInfo: rawUserInfo, in: self)
    {
      throw request
    }
  }
}
