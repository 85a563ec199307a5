// Prepares accounts for a new owner: creates an account, or removes the credentials of someone else from an existing
// account.

import Identity

extension IdentityCall {
  /// A new account. In production the tokens of a deleted account with the same ID are not valid for the new account.
  func newAccount(_ id: String) -> Account {
    var account = Account(localID: id, tenantID: tenantID, createdAt: now)
    if !isEmulator { account.validSince = nowSeconds }
    return account
  }

  /// Removes all credentials of an account whose address was never proven, and invalidates its sessions. Also removes
  /// its initial address, so that no change of the address can be undone. Someone else may have created the account
  /// with an address that is not theirs. The caller has proven the address.
  func removeUnprovenCredentials(of account: inout Account) {
    guard account.isEmailVerified != true else { return }
    account.password = nil
    account.usesEmailLink = false
    account.phoneNumber = nil
    account.providers = []
    account.secondFactors = []
    account.passkeys = []
    account.initialEmail = nil
    account.validSince = nowSeconds
  }
}
