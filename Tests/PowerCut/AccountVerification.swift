// The verification of the accounts in a reopened store. Acknowledged users, keys, service accounts and revocations must
// exist. A step that began without an acknowledgement is complete or absent: a user and the index of its address agree.

import Access
import EmbeddedStore
import Identity
import JSON
import OrderedStore

/// The steps that the child processes have recorded before their power cuts.
private struct AccountLog {
  var began: Set<String> = []
  var acknowledged: Set<String> = []
  /// The lines in which a child process recorded a wrong result.
  var wrong: [String] = []

  init(_ path: String) throws {
    for line in try Scratch.read(path).split(separator: "\n") {
      if line.hasPrefix("began ") {
        began.insert(String(line.dropFirst("began ".count)))
      } else if line.hasPrefix("acknowledged ") {
        acknowledged.insert(String(line.dropFirst("acknowledged ".count)))
      } else {
        wrong.append(String(line))
      }
    }
  }

  /// The names of the acknowledged steps of a kind.
  func names(_ kind: String) -> [String] {
    acknowledged.filter { $0.hasPrefix(kind + " ") }.map { String($0.dropFirst(kind.count + 1)) }.sorted()
  }
}

extension Findings {
  /// Opens a directory and verifies its accounts against the recorded steps of the child processes.
  /// - Returns: the findings and the number of acknowledged steps.
  static func checkAccounts(_ directory: String, log path: String) async throws -> (Findings, Int) {
    let log = try AccountLog(path)
    var findings = Findings()
    findings.torn = log.wrong
    let rows = try await EmbeddedStore.open(directory: directory, Workload.options(syncs: true))
    let store = IdentityStore(rows)
    try await findings.checkKeys(store, log)
    try await findings.checkUsers(store, log)
    try await rows.close()
    return (findings, log.acknowledged.count)
  }

  private mutating func checkKeys(_ store: IdentityStore, _ log: AccountLog) async throws {
    let published = Set(try await SigningKeys.open(store).published.map(\.id))
    lost += log.names("signing").filter { !published.contains($0) }.map { "signing key \($0)" }
    let accounts = try await ServiceAccounts.open(store).all
    let keys = Set(accounts.flatMap { $0.keys.map(\.id) })
    for key in log.names("key") {
      if log.acknowledged.contains("revoked \(key)") {
        if keys.contains(key) { lost.append("revocation of the key \(key)") }
      } else if !log.began.contains("revoked \(key)"), !keys.contains(key) {
        lost.append("key \(key)")
      }
    }
    torn += accounts.filter(\.keys.isEmpty).map { "\($0.email) has no key" }
  }

  private mutating func checkUsers(_ store: IdentityStore, _ log: AccountLog) async throws {
    let revocations = try await RevocationList.open(store)
    let verifier = TokenVerifier(
      keys: try await SigningKeys.open(store), accounts: try await ServiceAccounts.open(store),
      revocations: revocations)
    let numbers = log.began.compactMap { step in
      step.hasPrefix("created ") ? Int(step.dropFirst("created ".count)) : nil
    }.sorted()
    let database = try await store.project(AccountWorkload.project)
    let users = try await database.read { reader in
      try numbers.map { number in
        (
          number, try reader.account(AccountWorkload.id(number), in: nil),
          try reader.account(email: AccountWorkload.email(number), in: nil)
        )
      }
    }
    for (number, user, indexed) in users {
      if user != indexed { torn.append("user \(number) and the index of its address") }
      let caller = Principal(
        .user(User(id: AccountWorkload.id(number), claims: ["iat": .int(1)])),
        project: AccountWorkload.project)
      let isRevoked = verifier.isRevoked(caller)
      if log.acknowledged.contains("deleted \(number)") {
        if user != nil || !isRevoked { lost.append("deletion of user \(number)") }
      } else if log.began.contains("deleted \(number)") {
        if (user == nil) != isRevoked { torn.append("deletion of user \(number)") }
      } else if log.acknowledged.contains("created \(number)") {
        if user?.password?.hash.contains("password=password \(number)") != true {
          lost.append("user \(number)")
        }
        let mustBeDisabled = log.acknowledged.contains("disabled \(number)")
        if mustBeDisabled, user?.isDisabled != true || !isRevoked {
          lost.append("disabling of user \(number)")
        }
      }
      if let user, user.isDisabled != isRevoked { torn.append("revocation of user \(number)") }
    }
  }
}
