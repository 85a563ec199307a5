// Lists, counts and deletes accounts on behalf of administrators.

import Identity
import JSON
import Ports

extension IdentityCall {
  private static let defaultPageSize: Int64 = 20
  private static let maximumPageSize: Int64 = 1000

  private func requirePrivilege() throws(IdentityError) {
    guard isPrivileged else { throw .rejected("INSUFFICIENT_PERMISSION") }
  }

  /// `accounts:batchGet`. The parameters come from the query, or from the body of the legacy `downloadAccount`.
  func batchGet() async throws -> JSONObject {
    try requirePrivilege()
    let requested = target["maxResults"].flatMap { Int64($0) } ?? body.int("maxResults")
    var limit = requested ?? Self.defaultPageSize
    let isComplete = limit < 0
    // An emulator exports all accounts in one response.
    if isComplete { limit = isEmulator ? Int64(Int32.max) : Self.maximumPageSize }
    limit = isComplete ? limit : min(limit, Self.maximumPageSize)
    let token = target["nextPageToken"] ?? body.text("nextPageToken")
    let after = token.flatMap { $0.isEmpty ? nil : $0 }
    let pageSize = Int(limit)
    let page = try await read { reader in
      let accounts = try reader.accounts(after: after, limit: pageSize, in: self.tenantID)
      return (
        accounts.map { JSONValue.object($0.userInfo(for: .administrator, password: .stored)) },
        accounts.last?.localID
      )
    }
    var response: JSONObject = [
      "kind": .string("identitytoolkit#DownloadAccountResponse"), "users": .array(page.0),
    ]
    if page.0.count == pageSize, let last = page.1 { response["nextPageToken"] = .string(last) }
    return response
  }

  /// `accounts:batchDelete`.
  func batchDelete() async throws -> JSONObject {
    try requirePrivilege()
    let ids = body.strings("localIds")
    guard !ids.isEmpty, ids.count <= 1000 else {
      throw IdentityError.rejected("LOCAL_ID_LIST_EXCEEDS_LIMIT")
    }
    let isForced = body.bool("force") == true
    let errors = try await write { transaction -> [JSONValue] in
      var errors: [JSONValue] = []
      for (index, id) in ids.enumerated() {
        guard let account = try transaction.reader.account(id, in: self.tenantID) else { continue }
        guard isForced || account.isDisabled else {
          errors.append(
            .object([
              "index": .int(Int64(index)), "localId": .string(id),
              "message": .string("NOT_DISABLED : Disable the account before batch deletion."),
            ]))
          continue
        }
        try transaction.remove(account)
      }
      return errors
    }
    return errors.isEmpty ? [:] : ["errors": .array(errors)]
  }

  /// `accounts:query`.
  func queryAccounts() async throws -> JSONObject {
    try requirePrivilege()
    if !body.list("expression").isEmpty { throw Self.unsupported("expression") }
    if body.has("limit") { throw Self.unsupported("limit") }
    if let offset = body.int("offset"), offset != 0 { throw Self.unsupported("offset") }
    let sortBy = body.text("sortBy") ?? "USER_ID"
    guard sortBy == "USER_ID" || sortBy == "SORT_BY_FIELD_UNSPECIFIED" else {
      throw Self.unsupported("sortBy")
    }
    if body.bool("returnUserInfo") == false {
      let count = try await read { try $0.accountCount(in: self.tenantID) }
      return ["recordsCount": .string(String(count))]
    }
    let isDescending = body.string("order") == "DESC"
    let form = passwordForm
    let users = try await read { reader in
      let accounts = try reader.accounts(after: nil, limit: .max, in: self.tenantID)
      return (isDescending ? accounts.reversed() : accounts)
        .map { JSONValue.object($0.userInfo(for: .administrator, password: form)) }
    }
    return ["recordsCount": .string(String(users.count)), "userInfo": .array(users)]
  }

  private static func unsupported(_ member: String) -> IdentityError {
    .notImplemented("accounts:query does not implement \(member).")
  }
}
