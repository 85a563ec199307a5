// Lists the ways in which a user with an e-mail address can sign in.

import Identity
import JSON

extension IdentityCall {
  /// `accounts:createAuthUri`.
  func createAuthURI() async throws -> JSONObject {
    if body.text("providerId") != nil {
      throw IdentityError.notImplemented("createAuthUri with a provider ID is not implemented.")
    }
    guard let identifier = body.text("identifier") else { throw IdentityError.rejected("MISSING_IDENTIFIER") }
    guard let continueURI = body.text("continueUri") else {
      throw IdentityError.rejected("MISSING_CONTINUE_URI")
    }
    guard EmailAddress.isValid(identifier) else { throw IdentityError.rejected("INVALID_IDENTIFIER") }
    guard AbsoluteURL.isValid(continueURI) else { throw IdentityError.rejected("INVALID_CONTINUE_URI") }
    var response: JSONObject = [
      "kind": .string("identitytoolkit#CreateAuthUriResponse"),
      "sessionId": .string(body.text("sessionId") ?? RandomText.identifier(27)),
    ]
    if hidesAccounts { return response }
    let email = EmailAddress.canonical(identifier)
    let accounts = try await read { try $0.accounts(ownOrProviderEmail: email, in: self.tenantID) }
    let owner = accounts.first { $0.email == email }
    var (providers, methods): ([String], [String]) = ([], [])
    if let owner, owner.hasPasswordProvider {
      providers.append("password")
      if owner.password != nil { methods.append("password") }
      if owner.usesEmailLink { methods.append("emailLink") }
    }
    if hasOneAccountPerEmail {
      for account in accounts {
        for provider in account.providers ?? [] where provider.email == email {
          guard !providers.contains(provider.id) else { continue }
          providers.append(provider.id)
          methods.append(provider.id)
        }
      }
    }
    response["registered"] = .bool(hasOneAccountPerEmail ? !accounts.isEmpty : owner != nil)
    response["allProviders"] = .array(providers.map { .string($0) })
    response["signinMethods"] = .array(methods.map { .string($0) })
    return response
  }
}
