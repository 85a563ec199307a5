// Stores the rulesets of a project, and reads its releases.
//
// A new ruleset is stored in the project's default database. A release copies it to the database that it protects, so
// that each database contains the rules in force. The rulesets of a project are those of all its databases.

package import FirestoreModel
import Foundation
import OrderedStore

extension StoredRuleset {
  /// Maximum bytes of a ruleset, names and texts: the limit of the hosted product.
  package static let maximumBytes = 256 << 10

  /// Makes a random ID in the form of the hosted product.
  static func makeID() -> String { UUID().uuidString.lowercased() }
}

extension FirestoreEngine {
  /// Stores a ruleset. The rules in force do not change.
  /// - Throws: INVALID_ARGUMENT for too many bytes, RESOURCE_EXHAUSTED for too many rulesets, NOT_FOUND for a project
  ///   without its default database.
  package func createRuleset(
    _ files: [StoredRuleset.File], in project: String
  ) async throws(FirestoreError) -> StoredRuleset {
    let bytes = files.reduce(0) { $0 + $1.name.utf8.count + $1.content.utf8.count }
    guard bytes <= StoredRuleset.maximumBytes else {
      throw .invalidArgument(
        "The rules have \(bytes) bytes; at most \(StoredRuleset.maximumBytes) are allowed.")
    }
    let ruleset = StoredRuleset(
      id: StoredRuleset.makeID(), createdAt: Timestamp(microseconds: options.clock.wallTime()), files: files)
    return try await convertingErrors {
      let database = try await self.database(DatabaseName(project: project))
      _ = try await database.rows.execute(validating: nil) { view in
        try RulesetRows.add(ruleset, dropsOldest: false, view)
      }
      return ruleset
    }
  }

  /// The names and times of a project's rulesets, newest first.
  package func rulesets(of project: String) async throws(FirestoreError) -> [StoredRuleset.Header] {
    var headers = Set<StoredRuleset.Header>()
    for name in try await databaseNames(of: project) {
      headers.formUnion(try await reading(name) { try RulesetRows.headers($0) })
    }
    return headers.sorted { ($0.createdAt.microseconds, $0.id) > ($1.createdAt.microseconds, $1.id) }
  }

  /// A ruleset of a project; nil if no ruleset has this ID.
  package func ruleset(
    _ id: String, of project: String
  ) async throws(FirestoreError) -> StoredRuleset? {
    for name in try await databaseNames(of: project) {
      if let ruleset = try await reading(name, { try RulesetRows.ruleset(id, $0) }) { return ruleset }
    }
    return nil
  }

  /// Deletes a ruleset from all databases of a project.
  /// - Throws: NOT_FOUND for an unknown ID, FAILED_PRECONDITION for a ruleset in force.
  package func deleteRuleset(_ id: String, of project: String) async throws(FirestoreError) {
    let names = try await databaseNames(of: project)
    for name in names where try await currentRelease(of: name)?.rulesetID == id {
      throw .failedPrecondition("The ruleset \(id) is in force in the database \(name.database).")
    }
    let isFound = try await convertingErrors {
      var isFound = false
      for name in names {
        let committed = try await self.database(name).rows.execute(validating: nil) { view in
          try RulesetRows.delete(id, view)
        }
        if committed.result { isFound = true }
      }
      return isFound
    }
    guard isFound else { throw .notFound("The ruleset \(id) does not exist.") }
  }

  /// The release in force in a database; nil without one.
  /// - Throws: NOT_FOUND without the database, DATA_LOSS for damaged rules.
  package func currentRelease(
    of name: DatabaseName
  ) async throws(FirestoreError) -> CurrentRelease? {
    try await reading(name) { try RulesetRows.current($0) }
  }

  /// The last releases of a database, newest first.
  /// - Throws: NOT_FOUND without the database.
  package func releaseHistory(
    of name: DatabaseName, limit: Int
  ) async throws(FirestoreError) -> [ReleaseRecord] {
    try await reading(name) { try RulesetRows.history(limit: limit, $0) }
  }

  /// The names of a project's databases, the default one first.
  package func databaseNames(of project: String) async throws(FirestoreError) -> [DatabaseName] {
    try await databaseNames().filter { $0.project.utf8.elementsEqual(project.utf8) }
      .sorted { DatabaseName.compare($0, $1) == .ascending }
  }

  private func reading<Result: Sendable>(
    _ name: DatabaseName, _ body: @escaping @Sendable (any ReadView) throws -> Result
  ) async throws(FirestoreError) -> Result {
    try await convertingErrors { try await self.databaseWithRules(name).rows.read(at: nil, body) }
  }
}
