// Imports accounts with password hashes of any supported scheme. A row that cannot be imported is reported and does not
// affect other rows.

import Identity
import JSON

extension IdentityCall {
  /// Maximum accounts of one request, as in the hosted product.
  private static let maximumRows = 1000

  private struct Row: Sendable {
    var json: JSONValue
    var password: StoredPassword?

    func string(_ name: String) -> String? {
      guard let text = json[name]?.string, !text.isEmpty else { return nil }
      return text
    }

    func time(_ name: String) -> Int64? { json[name]?.string.flatMap { Int64($0) } }
  }

  /// The error of one row, with its message for the response.
  private struct RowError: Error { var message: String }

  /// `accounts:batchCreate`.
  func batchCreate() async throws -> JSONObject {
    guard isPrivileged else { throw IdentityError.rejected("INSUFFICIENT_PERMISSION") }
    let users = body.list("users")
    guard !users.isEmpty else { throw IdentityError.rejected("MISSING_USER_ACCOUNT") }
    guard isEmulator || users.count <= Self.maximumRows else {
      throw IdentityError.rejected("USER_COUNT_EXCEEDS_LIMIT")
    }
    try checkDuplicates(users)
    let scheme = try importScheme()
    var rows: [Row] = []
    for user in users { rows.append(try await row(user, scheme)) }
    let prepared = rows
    let errors = try await write { transaction -> [JSONValue] in
      var errors: [JSONValue] = []
      for (index, row) in prepared.enumerated() {
        do {
          try transaction.put(try self.account(row, transaction.reader))
        } catch let error as RowError {
          errors.append(.object(["index": .int(Int64(index)), "message": .string(error.message)]))
        } catch let error as IdentityError {
          errors.append(.object(["index": .int(Int64(index)), "message": .string(error.message)]))
        }
      }
      return errors
    }
    return ["kind": .string("identitytoolkit#UploadAccountResponse"), "error": .array(errors)]
  }

  private func checkDuplicates(_ users: [JSONValue]) throws(IdentityError) {
    var (emails, ids, providers): (Set<String>, Set<String>, Set<String>) = ([], [], [])
    let isChecked = body.bool("sanityCheck") == true
    for user in users {
      if isChecked, hasOneAccountPerEmail, let email = user["email"]?.string,
        !emails.insert(email).inserted
      {
        throw .rejected("DUPLICATE_EMAIL", email)
      }
      if isChecked {
        for provider in user["providerUserInfo"]?.array ?? [] {
          let (id, rawID) = (provider["providerId"]?.string ?? "", provider["rawId"]?.string ?? "")
          guard providers.insert("\(id):\(rawID)").inserted else {
            throw .rejected("DUPLICATE_RAW_ID", "Provider id(\(id)), Raw id(\(rawID))")
          }
        }
      }
      if body.bool("allowOverwrite") != true, let id = user["localId"]?.string, !ids.insert(id).inserted {
        throw .rejected("DUPLICATE_LOCAL_ID", id)
      }
    }
  }

  private func row(_ user: JSONValue, _ scheme: PasswordScheme?) async throws -> Row {
    var row = Row(json: user)
    if let hash = row.string("passwordHash") {
      let salt = user["salt"]?.string
      if let scheme {
        row.password = StoredPassword(hash: hash, salt: salt, scheme: scheme)
      } else if isEmulator {
        row.password = StoredPassword(hash: hash, salt: salt, scheme: .emulator)
      } else {
        throw IdentityError.rejected("INVALID_HASH_ALGORITHM", "hashAlgorithm is required.")
      }
    } else if let password = row.string("rawPassword") {
      let salt = row.string("salt")
      row.password =
        isEmulator && salt != nil
        ? .emulator(password, salt: salt) : try await services.hasher.hash(password)
    }
    return row
  }

  private func account(_ row: Row, _ reader: IdentityReader) throws -> Account {
    guard let id = row.string("localId") else { throw RowError(message: "localId is missing") }
    guard id.utf8.count <= Self.maximumIDBytes else { throw RowError(message: "localId is too long") }
    let existing = try reader.account(id, in: tenantID)
    if existing != nil, body.bool("allowOverwrite") != true {
      throw RowError(message: "localId belongs to an existing account - can not overwrite.")
    }
    var account = Account(localID: id, tenantID: tenantID, createdAt: row.time("createdAt") ?? now)
    account.validSince = nowSeconds
    account.displayName = row.json["displayName"]?.string
    account.photoURL = row.json["photoUrl"]?.string
    account.screenName = row.json["screenName"]?.string
    account.lastLoginAt = row.time("lastLoginAt")
    account.disabled = row.json["disabled"]?.bool ?? false
    account.usesCustomToken = row.json["customAuth"]?.bool ?? false
    account.usesEmailLink = row.json["emailLinkSignin"]?.bool ?? false
    if let password = row.password {
      account.password = password
      account.passwordUpdatedAt = now
    }
    if let text = row.string("customAttributes") {
      try CustomAttributes.validate(text)
      account.customAttributes = text
    }
    if let number = row.string("phoneNumber") {
      guard PhoneNumber.isValid(number) else { throw RowError(message: "phone number format is invalid") }
      if let owner = try reader.account(phoneNumber: number, in: tenantID), !owner.hasID(id) {
        throw RowError(message: "phone number exists in other account in database")
      }
      account.phoneNumber = number
    }
    if let text = row.string("email") {
      guard EmailAddress.isValid(text) else { throw RowError(message: "email is invalid") }
      let email = EmailAddress.canonical(text)
      if let owner = try reader.account(email: email, in: tenantID), !owner.hasID(id) {
        throw RowError(
          message: body.bool("sanityCheck") == true && hasOneAccountPerEmail
            ? "email exists in other account in database"
            : "((Auth Emulator does not support importing duplicate email: \(email)))")
      }
      account.email = email
      account.initialEmail = row.string("initialEmail").map(EmailAddress.canonical)
    }
    account.isEmailVerified = row.json["emailVerified"]?.bool ?? false
    try addProviders(row, to: &account, reader)
    try addFactors(row, to: &account)
    return account
  }

  private func addProviders(_ row: Row, to account: inout Account, _ reader: IdentityReader) throws {
    for info in row.json["providerUserInfo"]?.array ?? [] {
      guard let object = info.object, let id = object["providerId"]?.string else {
        throw RowError(message: "providerId is missing")
      }
      // The account's address, password and number already determine these two providers.
      if id == "password" || id == "phone" { continue }
      guard let rawID = object["rawId"]?.string ?? object["federatedId"]?.string, !rawID.isEmpty else {
        throw RowError(message: "federatedId or (providerId & rawId) is required")
      }
      if let owner = try reader.account(provider: id, rawID: rawID, in: tenantID),
        !owner.hasID(account.localID)
      {
        throw RowError(message: "raw id exists in other account in database")
      }
      account.link(Account.Provider(object, id: id, rawID: rawID))
    }
  }

  private func addFactors(_ row: Row, to account: inout Account) throws {
    let list = row.json["mfaInfo"]?.array ?? []
    guard !list.isEmpty else { return }
    guard account.email != nil else {
      throw RowError(message: "Second factor account requires email to be presented.")
    }
    guard account.isEmailVerified == true else {
      throw RowError(message: "Second factor account requires email to be verified.")
    }
    for info in list {
      guard let number = info["phoneInfo"]?.string, !number.isEmpty else {
        throw RowError(message: "Second factor not supported.")
      }
      guard PhoneNumber.isValid(number) else { throw RowError(message: "Phone number format is invalid") }
      let id = info["mfaEnrollmentId"]?.string ?? RandomText.identifier(28)
      guard !account.secondFactors.contains(where: { $0.id == id }) else {
        throw RowError(message: "Enrollment id already exists.")
      }
      account.secondFactors.append(
        Account.SecondFactor(
          id: id, displayName: info["displayName"]?.string,
          enrolledAt: info["enrolledAt"]?.string ?? RFC3339.text(now), kind: .phone(number)))
    }
  }
}
