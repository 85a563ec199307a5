// Signs in with an account of another identity provider (IdP), or links such an account to the caller's.
//
// In projects with one account per address, a user whose address the provider verified signs in to the account with
// that address. If the address of this account was not verified before, its other ways to sign in are removed, because
// someone else may have created the account. A user whose address the provider did not verify must confirm it by
// another sign-in.

import Foundation
import Identity
import JSON

extension IdentityCall {
  /// `accounts:signInWithIdp`.
  func signInWithProvider() async throws -> JSONObject {
    guard let requestURI = body.text("requestUri") else {
      throw IdentityError.rejected("MISSING_REQUEST_URI")
    }
    guard let url = AbsoluteURL.parse(requestURI) else { throw IdentityError.rejected("INVALID_REQUEST_URI") }
    if body.bool("returnRefreshToken") == true {
      throw IdentityError.notImplemented("signInWithIdp does not support returnRefreshToken.")
    }
    if body.text("pendingIdToken") != nil {
      throw IdentityError.notImplemented("signInWithIdp does not support pendingIdToken.")
    }
    var parameters: [String: String] = [:]
    for text in [url.percentEncodedQuery, body.string("postBody"), url.percentEncodedFragment] {
      for pair in FormText.decode(text ?? "") ?? [] { parameters[pair.name] = pair.value }
    }
    let user = try await services.providers.user(of: parameters, call: self)
    let newID = RandomText.identifier(28)
    let returnsCredential = body.bool("returnIdpCredential") == true
    return try await signIn { transaction, result in
      do {
        return try self.providerStep(user, newID, transaction, result)
      } catch let error as IdentityError {
        let isReported =
          error.message == "FEDERATED_USER_ID_ALREADY_LINKED" || error.message == "EMAIL_EXISTS"
        guard returnsCredential, isReported else { throw error }
        var response = user.json
        response["errorMessage"] = .string(error.message)
        return .respond(response)
      }
    }
  }

  /// Finds or creates the account of a provider's user.
  private func providerStep(
    _ user: ProviderResponse, _ newID: String, _ transaction: IdentityTransaction, _ result: BlockingResult?
  ) throws -> SignInStep {
    let reader = transaction.reader
    let linked = try reader.account(provider: user.providerID, rawID: user.rawID, in: tenantID)
    var response = user.json
    var account: Account
    var isNew = false
    let caller = body.has("idToken") ? try self.account(reader).account : nil
    if let caller {
      account = try linking(user, to: caller, linked, reader)
    } else if let linked {
      account = linked
    } else if hasOneAccountPerEmail, let email = user.email,
      let owner = try reader.account(email: email, in: tenantID)
    {
      guard user.isEmailVerified else { return .respond(confirmation(response, owner)) }
      guard !owner.isDisabled else { throw IdentityError.rejected("USER_DISABLED") }
      if owner.providers?.contains(where: { $0.id == user.providerID }) == true {
        response["emailRecycled"] = .bool(true)
      }
      account = merging(user, into: owner)
    } else {
      isNew = true
      account = newAccount(user, newID)
    }
    guard !account.isDisabled else { throw IdentityError.rejected("USER_DISABLED") }
    account.link(user.provider)
    if user.screenName != nil { account.screenName = user.screenName }
    var session = newSession(account, provider: user.providerID)
    session.signInAttributes = user.signInAttributes
    if isNew {
      try applyBeforeCreate(
        result, to: &account, method: user.providerID, session: session, rawUserInfo: user.rawUserInfo)
      response["isNewUser"] = .bool(true)
    }
    try transaction.put(account)
    response["localId"] = .string(account.localID)
    if let tenantID { response["tenantId"] = .string(tenantID) }
    var factor = FirstFactor(
      account: account, session: session, response: response, method: user.providerID)
    factor.rawUserInfo = user.rawUserInfo
    factor.requiresSecondFactor = caller == nil
    return .signIn(factor)
  }

  private func linking(
    _ user: ProviderResponse, to caller: Account, _ linked: Account?, _ reader: IdentityReader
  ) throws -> Account {
    guard linked == nil else { throw IdentityError.rejected("FEDERATED_USER_ID_ALREADY_LINKED") }
    var account = caller
    guard hasOneAccountPerEmail, let email = user.email else { return account }
    if let owner = try reader.account(email: email, in: tenantID), !owner.hasID(caller.localID) {
      throw IdentityError.rejected("EMAIL_EXISTS")
    }
    if account.email == nil {
      account.email = email
      account.isEmailVerified = user.isEmailVerified
    } else if account.email == email, user.isEmailVerified {
      account.isEmailVerified = true
    }
    return account
  }

  private func merging(_ user: ProviderResponse, into owner: Account) -> Account {
    var account = owner
    removeUnprovenCredentials(of: &account)
    account.isEmailVerified = true
    if let name = user.displayName { account.displayName = name }
    if let url = user.photoURL { account.photoURL = url }
    return account
  }

  private func newAccount(_ user: ProviderResponse, _ id: String) -> Account {
    var account = self.newAccount(id)
    account.lastLoginAt = now
    account.displayName = user.displayName
    account.photoURL = user.photoURL
    if hasOneAccountPerEmail, let email = user.email {
      account.email = email
      account.isEmailVerified = user.isEmailVerified
    }
    return account
  }

  private func confirmation(_ response: JSONObject, _ owner: Account) -> JSONObject {
    var response = response
    response["needConfirmation"] = .bool(true)
    response["localId"] = .string(owner.localID)
    response["emailVerified"] = .bool(false)
    response["verifiedProvider"] = .array((owner.providers ?? []).map { .string($0.id) })
    return response
  }
}
