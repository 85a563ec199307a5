// The workload of a child process that changes accounts: several concurrent tasks create, disable and delete users, and
// create and revoke keys of service accounts. The child appends the beginning and the acknowledgement of each step to a file
// outside the data directory, which simulated power cuts do not affect.

import Access
import EmbeddedStore
import Identity
import JSON
import OrderedStore

/// The work of one child process. Its command-line arguments are
/// `DIRECTORY ACKNOWLEDGEMENTS FIRST COUNT WORKERS sync|nosync HOURS-BEHIND`.
struct AccountWorkload {
  private let arguments: ChildArguments
  private let log: ChildLogWriter

  static let project = "crash"
  /// Each step whose number is a multiple of this constant creates keys of a service account. Such steps are rare,
  /// because creating a key takes a hundred times as long as creating a user.
  private static let stepsPerKey = 40

  init(arguments: [String]) throws {
    self.arguments = try ChildArguments(arguments)
    log = try ChildLogWriter(self.arguments.acknowledgements)
  }

  /// The ID of the user that a step creates.
  static func id(_ number: Int) -> String { "user\(number)" }

  /// The e-mail address of the user that a step creates.
  static func email(_ number: Int) -> String { "user\(number)@example.com" }

  func run() async throws {
    let options = Workload.options(syncs: arguments.syncs, hoursBehind: arguments.hoursBehind)
    let store = IdentityStore(try await EmbeddedStore.open(directory: arguments.directory, options))
    let clock = IdentityClock(Workload.clock(hoursBehind: arguments.hoursBehind))
    let keys = try await SigningKeys.open(store, clock: clock)
    for key in keys.published { log.append("acknowledged signing \(key.id)") }
    let accounts = try await ServiceAccounts.open(store, clock: clock)
    let database = try await store.project(Self.project)
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<arguments.workers {
        group.addTask {
          do {
            for number in stride(
              from: arguments.first + worker, to: arguments.first + arguments.count, by: arguments.workers)
            {
              try await change(number, database)
              if number % Self.stepsPerKey == 0 { try await changeKeys(number, accounts) }
            }
          } catch {
            log.append("wrong step: \(error)")
          }
        }
      }
    }
  }

  /// Records the beginning of a step, runs the step, and records its acknowledgement.
  private func step(_ name: String, _ body: () async throws -> Void) async throws {
    log.append("began \(name)")
    try await body()
    log.append("acknowledged \(name)")
  }

  /// Creates a user. One in four users is then disabled, and one in four is deleted.
  private func change(_ number: Int, _ database: IdentityDatabase) async throws {
    var account = Account(localID: Self.id(number), tenantID: nil, createdAt: 1)
    account.email = Self.email(number)
    account.password = .emulator("password \(number)", salt: "salt")
    let created = account
    try await step("created \(number)") { try await database.write { try $0.put(created) } }
    switch number % 4 {
    case 1:
      account.disabled = true
      let disabled = account
      try await step("disabled \(number)") { try await database.write { try $0.put(disabled) } }
    case 2: try await step("deleted \(number)") { try await database.write { try $0.remove(created) } }
    default: break
    }
  }

  /// Creates two keys of a service account, and revokes the first key or the account.
  private func changeKeys(_ number: Int, _ accounts: ServiceAccounts) async throws {
    var keys: [String] = []
    var email = ""
    for _ in 0..<2 {
      let file = try await accounts.create(
        name: "server-\(number)", project: Self.project, role: .writer, tokenURI: "https://h.example/token")
      email = file["client_email"]?.string ?? ""
      keys.append(file["private_key_id"]?.string ?? "")
      log.append("acknowledged key \(keys[keys.count - 1])")
    }
    let revokesAccount = number % (2 * Self.stepsPerKey) == 0
    let revoked = revokesAccount ? keys : [keys[0]]
    for key in revoked { log.append("began revoked \(key)") }
    try await accounts.revoke(email: email, keyID: revokesAccount ? nil : keys[0])
    for key in revoked { log.append("acknowledged revoked \(key)") }
  }
}
