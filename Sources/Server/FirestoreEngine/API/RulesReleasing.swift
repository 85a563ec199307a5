// Releases security rules: stores them in each database, by a commit in its log, and puts them in force.
//
// Each change of rules gets a number when it is requested. A commit for a change stores the change that has the highest
// number when the commit runs, so the log has the changes in the order of their numbers. When a change is durable, the
// engine puts it in force, unless a change with a higher number is in force. Thus the last change in the log is in force,
// even if the tasks of several changes resume in another order.
//
// Invariants
//   1. A database whose stored rules are damaged or do not compile denies every request of users.
//   2. A change is acknowledged after it, or a later change, is durable and in force.

import Access
package import FirestoreModel
import Locking
import OrderedStore

extension FirestoreEngine {
  /// Releases rules in all databases of a group. A database that is opened or created later adopts them when it is
  /// opened. If a database is in several groups, the rules that were released last apply.
  ///
  /// Returns once every open database has stored the rules and decides by them.
  /// - Throws: UNAVAILABLE if the store cannot write; some databases may have the new rules then.
  package func releaseRules(
    _ rules: ReleasedRules, inGroup group: String,
    _ contains: @escaping @Sendable (DatabaseName) -> Bool
  ) async throws(FirestoreError) {
    self.rules.withLock { $0.set(rules, ofGroup: group, contains) }
    // A database that begins to open after this adopts the rules by itself.
    let opening = state.withLock { $0.databases(where: contains) }
    try await convertingErrors {
      for task in opening {
        // A database that fails to open here adopts the rules when it is opened later.
        guard let database = await task.value else { continue }
        try await self.adoptRules(in: database)
      }
    }
  }

  /// The text of the rules that a database has stored; nil if it never had rules.
  /// - Throws: NOT_FOUND without the database, DATA_LOSS for damaged rules.
  package func storedRules(of name: DatabaseName) async throws(FirestoreError) -> String? {
    try await convertingErrors {
      try await self.databaseWithRules(name).rows.read(at: nil) { try RulesRelease.stored($0)?.source }
    }
  }

  /// Releases a ruleset in one database. It is in force when this returns.
  /// - Throws: NOT_FOUND without the database, UNAVAILABLE if the store cannot write.
  package func releaseRules(
    _ rules: ReleasedRules, in name: DatabaseName
  ) async throws(FirestoreError) {
    try await convertingErrors {
      // A missing database is found before anything changes.
      let database = try await self.database(name)
      self.rules.withLock { $0.set(rules, of: name) }
      try await self.create(database)
      try await self.adoptRules(in: database)
    }
  }

  /// Deletes the release of a database. The database then has no rules, as before its first release. Its rulesets and
  /// its history stay.
  /// - Throws: NOT_FOUND without the database, UNAVAILABLE if the store cannot write.
  package func deleteRelease(of name: DatabaseName) async throws(FirestoreError) {
    try await convertingErrors {
      let database = try await self.database(name)
      self.rules.withLock { $0.set(nil, of: name) }
      try await self.adoptRules(in: database)
    }
  }

  /// Puts the rules of a database in force: those of the last change in this process, or the stored ones. Called before the
  /// database serves requests, and for every change.
  func adoptRules(in database: FirestoreDatabase) async throws {
    guard let change = rules.withLock({ $0.lastChange(of: database.name) }) else {
      return try await adoptStoredRules(in: database)
    }
    let durable = try await store(change, in: database)
    database.rulesChangeNumber.withLock { number in
      guard durable.number >= number else { return }
      number = durable.number
      policies.publish(durable.rules?.policy, for: database.name)
    }
  }

  /// Stores a change of rules, or a later change that replaces it.
  /// - Returns: the change that is durable. A database without a commit keeps the change in memory only.
  private func store(
    _ change: RulesDirectory.Change, in database: FirestoreDatabase
  ) async throws -> RulesDirectory.Change {
    let id = StoredRuleset.makeID()
    do {
      return try await database.rows.execute(validating: nil) { view in
        let latest = self.rules.withLock { $0.lastChange(of: database.name) } ?? change
        // A database without the token key has no commit yet. Its first commit will store the rules (see `FirstRows`).
        if try TokenSigner.isStored(view), try !latest.isStored(view) {
          try latest.write(id: id, at: self.options.clock.wallTime(), to: view)
        }
        return latest
      }.result
    } catch let error as StoreError {
      // A database whose rules are stored can be opened although the store cannot write.
      guard try await database.rows.read(at: nil, { try change.isStored($0) }) else { throw error }
      return change
    }
  }

  private func adoptStoredRules(in database: FirestoreDatabase) async throws {
    let (name, rows) = (database.name, database.rows)
    do {
      guard let stored = try await rows.read(at: nil, { try RulesRelease.stored($0) }) else { return }
      if stored.rulesetID.isEmpty { try await storeRuleset(for: stored, rows) }
      guard let compile = options.compileRules else {
        return policies.publish(LockedPolicy<FirestoreAccess>(), for: name)
      }
      policies.publish(try compile(stored.source), for: name)
    } catch {
      options.report("the rules of \(name) cannot be used, and every request of users is denied: \(error)")
      policies.publish(LockedPolicy<FirestoreAccess>(), for: name)
    }
  }

  /// Stores a ruleset for a release in format 01, which has no ruleset ID.
  private func storeRuleset(for release: RulesRelease, _ rows: any OrderedDatabase) async throws {
    let ruleset = StoredRuleset(
      id: StoredRuleset.makeID(), createdAt: Timestamp(microseconds: release.microseconds),
      files: [StoredRuleset.File(name: "firestore.rules", content: release.source)])
    _ = try await rows.execute(validating: nil) { view in
      guard try RulesRelease.stored(view) == release else { return }
      try RulesetRows.release(ruleset, at: release.microseconds, view)
    }
  }
}

extension RulesDirectory.Change {
  /// Writes the change to a database.
  /// - Parameters:
  ///   - id: the ID of a new ruleset.
  ///   - time: the wall clock's time, in microseconds since 1970.
  func write(id: String, at time: Int64, to view: any SequencedTransaction) throws {
    guard let rules else { return try view.clear(FirestoreKeyLayout.rules) }
    let ruleset =
      rules.ruleset
      ?? StoredRuleset(
        id: id, createdAt: Timestamp(microseconds: time),
        files: [StoredRuleset.File(name: "firestore.rules", content: rules.source)])
    try RulesetRows.release(ruleset, at: time, view)
  }

  /// Whether the state of a view has the rules of this change. False if its rules are damaged.
  fileprivate func isStored(_ view: any ReadView) throws -> Bool {
    do {
      guard let stored = try RulesRelease.stored(view) else { return rules == nil }
      return rules?.isReleased(by: stored) ?? false
    } catch is FirestoreError { return false }
  }
}
