// The durable accounts of all projects: one database of the ordered store for each project.
//
// Invariant: account events are published after their commit is durable.

import Locking
package import OrderedStore

/// The accounts and settings of all projects.
package final class IdentityStore: Sendable {
  /// Notifies observers of revoked, disabled and deleted accounts.
  package let events = AccountEvents()
  private let store: any OrderedStore
  private let openDatabases = Guarded<[String: IdentityDatabase]>([:])

  /// The prefix of the names of identity databases in the store's catalogue.
  private static let namePrefix = "identity/"

  /// Creates an identity store that keeps its rows in an ordered store.
  package init(_ store: any OrderedStore) { self.store = store }

  /// Opens the database of a project, and creates it on first use.
  /// - Throws: `StoreError`.
  package func project(_ id: String) async throws -> IdentityDatabase {
    if let database = openDatabases.withLock({ $0[id] }) { return database }
    let rows = try await store.database(named: Self.namePrefix + id, history: .activeReadersOnly)
    let database = IdentityDatabase(id, rows, events)
    return openDatabases.withLock { databases in
      if let existing = databases[id] { return existing }
      databases[id] = database
      return database
    }
  }

  /// The name of the database of the server itself, which belongs to no project.
  private static let serverName = "identity-server"

  /// Opens the database of the server's keys and service accounts.
  func server() async throws -> IdentityDatabase {
    let rows = try await store.database(named: Self.serverName, history: .activeReadersOnly)
    return IdentityDatabase("", rows, events)
  }

  /// Whether a project has an identity database.
  package func projectExists(_ id: String) async throws -> Bool {
    try await store.databaseExists(named: Self.namePrefix + id)
  }

  /// The IDs of the projects that have an identity database.
  package func projectIDs() async throws -> [String] {
    try await store.databaseNames().compactMap { name in
      name.hasPrefix(Self.namePrefix) ? String(name.dropFirst(Self.namePrefix.count)) : nil
    }
  }
}

/// The identity database of one project.
package final class IdentityDatabase: Sendable {
  /// The ID of the project.
  package let projectID: String
  private let rows: any OrderedDatabase
  private let events: AccountEvents
  private let cachedSeal = Guarded<TokenSeal?>(nil)

  fileprivate init(_ projectID: String, _ rows: any OrderedDatabase, _ events: AccountEvents) {
    self.projectID = projectID
    self.rows = rows
    self.events = events
  }

  /// Reads a consistent state. `body` may run twice and must have no side effects.
  package func read<Result: Sendable>(
    _ body: @escaping @Sendable (IdentityReader) throws -> Result
  ) async throws -> Result {
    try await rows.read(at: nil) { try body(IdentityReader($0)) }
  }

  /// Runs a transaction. Transactions of a project run one at a time. A body that throws changes nothing.
  package func write<Result: Sendable>(
    _ body: @escaping @Sendable (IdentityTransaction) throws -> Result
  ) async throws -> Result {
    let projectID = projectID
    let committed = try await rows.execute(validating: nil) { writer -> (Result, [AccountEvent]) in
      let transaction = IdentityTransaction(writer)
      let result = try body(transaction)
      let events = transaction.events.map { event in
        var event = event
        event.projectID = projectID
        return event
      }
      return (result, events)
    }
    events.publish(committed.result.1)
    return committed.result.0
  }

  /// The secret that authenticates the project's sealed tokens: server state that a client stores and returns, such as
  /// refresh tokens. It is made on first use.
  package func seal() async throws -> TokenSeal {
    if let seal = cachedSeal.withLock({ $0 }) { return seal }
    let key = try await read { try $0.sealKey() }
    let bytes: [UInt8]
    if let key {
      bytes = key
    } else {
      bytes = try await write { transaction in
        if let key = try transaction.reader.sealKey() { return key }
        let key = RandomText.bytes(TokenSeal.keyBytes)
        try transaction.set(IdentityKeyLayout.key(.secret), bytes: key)
        return key
      }
    }
    let seal = TokenSeal(key: bytes)
    cachedSeal.withLock { $0 = seal }
    return seal
  }
}
