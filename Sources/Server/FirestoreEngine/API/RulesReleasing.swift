// Releases security rules: stores them in each database, by a commit in its log, and puts them in force.
//
// Invariant: a database whose stored rules are damaged or do not compile denies every request of users.

import Access
package import FirestoreModel
import Locking
import OrderedStore

extension FirestoreEngine {
  /// Releases rules in all databases of a group. A database that is opened or created later adopts them when it is
  /// opened. A database of several groups has the rules that were released last.
  ///
  /// Returns once every open database has stored the rules and decides by them.
  /// - Throws: UNAVAILABLE if the store cannot write; some databases may have the new rules then.
  package func releaseRules(
    _ rules: ReleasedRules, inGroup group: String,
    _ contains: @escaping @Sendable (DatabaseName) -> Bool
  ) async throws(FirestoreError) {
    let opening = state.withLock { state in
      state.rules.set(rules, ofGroup: group, contains)
      return state.databases(where: contains)
    }
    try await convertingErrors {
      for task in opening {
        // A database that fails to open here adopts the rules when it is opened later.
        guard let database = await task.value else { continue }
        try await self.adoptRules(in: database.name, database.rows)
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
      self.state.withLock { $0.rules.set(rules, of: name) }
      try await self.create(database)
      try await self.adoptRules(in: name, database.rows)
    }
  }

  /// Deletes the release of a database. The database then has no rules, as before its first release. Its rulesets and
  /// its history stay.
  /// - Throws: NOT_FOUND without the database, UNAVAILABLE if the store cannot write.
  package func deleteRelease(of name: DatabaseName) async throws(FirestoreError) {
    try await convertingErrors {
      let database = try await self.database(name)
      self.state.withLock { $0.rules.set(nil, of: name) }
      _ = try await database.rows.execute(validating: nil) { try $0.clear(FirestoreKeyLayout.rules) }
      self.policies.publish(nil, for: name)
    }
  }

  /// Puts the rules of a database in force: those released in this process, or the stored ones. Called before the
  /// database serves requests, and for every release.
  func adoptRules(in name: DatabaseName, _ rows: any OrderedDatabase) async throws {
    if let released = state.withLock({ $0.rules.rules(of: name) }) {
      let isStored = try await rows.read(at: nil) { view in
        (try? RulesRelease.stored(view)).map { released.isReleased(by: $0) } ?? false
      }
      if !isStored {
        let id = StoredRuleset.makeID()
        _ = try await rows.execute(validating: nil) { view in
          // The first commit of a database stores its rules.
          guard try TokenSigner.isStored(view) else { return }
          try self.storeReleasedRules(of: name, id: id, in: view)
        }
      }
      policies.publish(for: name) { state.withLock { $0.rules.rules(of: name) }?.policy ?? released.policy }
      return
    }
    do {
      guard let stored = try await rows.read(at: nil, { try RulesRelease.stored($0) }) else { return }
      if stored.rulesetID.isEmpty { try await nameRuleset(of: stored, rows) }
      guard let compile = options.compileRules else {
        return policies.publish(LockedPolicy<FirestoreAccess>(), for: name)
      }
      policies.publish(try compile(stored.source), for: name)
    } catch {
      options.report("the rules of \(name) cannot be used, and every request of users is denied: \(error)")
      policies.publish(LockedPolicy<FirestoreAccess>(), for: name)
    }
  }

  /// Stores the rules that were released in this process, if any. Reads the latest ones, so that concurrent releases
  /// leave the last one stored.
  /// - Parameter id: the ID of a new ruleset.
  func storeReleasedRules(of name: DatabaseName, id: String, in view: any SequencedTransaction) throws {
    guard let latest = state.withLock({ $0.rules.rules(of: name) }) else { return }
    let time = options.clock.wallTime()
    let ruleset =
      latest.ruleset
      ?? StoredRuleset(
        id: id, createdAt: Timestamp(microseconds: time),
        files: [StoredRuleset.File(name: "firestore.rules", content: latest.source)])
    try RulesetRows.release(ruleset, at: time, view)
  }

  /// Stores the ruleset of a release of format 01, which has none.
  private func nameRuleset(of release: RulesRelease, _ rows: any OrderedDatabase) async throws {
    let ruleset = StoredRuleset(
      id: StoredRuleset.makeID(), createdAt: Timestamp(microseconds: release.microseconds),
      files: [StoredRuleset.File(name: "firestore.rules", content: release.source)])
    _ = try await rows.execute(validating: nil) { view in
      guard try RulesRelease.stored(view) == release else { return }
      try RulesetRows.release(ruleset, at: release.microseconds, view)
    }
  }
}
