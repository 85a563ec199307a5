// The rules assembly reads the project's rules files and puts them in force on the Firestore engine. It runs at the
// start and on every reload.

import Access
import FirestoreEngine
import FirestoreModel
import Logging
import SecurityRules

/// The compiled rules of the project's files.
struct FirestoreRules {
  private var rulesets: [(database: String?, ruleset: FirestoreRuleset)] = []
  private let isEmulator: Bool
  private let explainsDenials: Bool

  /// Reads and compiles all files.
  /// - Throws: ``HearthError`` for the first file that cannot be read or has errors.
  init(_ configuration: HearthConfiguration, log: Logger) throws(HearthError) {
    isEmulator = configuration.emulator
    explainsDenials = log.logLevel <= .debug
    for file in configuration.rulesFiles {
      rulesets.append((file.database, try Self.ruleset(in: file.path, log: log)))
    }
  }

  private static func ruleset(in path: String, log: Logger) throws(HearthError) -> FirestoreRuleset {
    let bytes: [UInt8]?
    do { bytes = try ConfigurationFile.read(path) } catch {
      throw HearthError("The rules file \(path) cannot be read: \(error)")
    }
    guard let bytes else {
      throw HearthError("The rules file \(path), which firebase.json names, does not exist.")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw HearthError("The rules file \(path) is not UTF-8.")
    }
    do {
      let ruleset = try FirestoreRuleset(compiling: text)
      for warning in ruleset.warnings { log.warning("\(Self.text(of: warning, in: path))") }
      return ruleset
    } catch {
      let errors = error.issues.filter { $0.severity == .error }
      throw HearthError(errors.map { Self.text(of: $0, in: path) }.joined(separator: "\n"))
    }
  }

  private static func text(of issue: RulesIssue, in path: String) -> String {
    guard let position = issue.position else { return "\(path): \(issue.text)" }
    return "\(path):\(position.line):\(position.column): \(issue.text)"
  }

  /// Whether the configuration names no rules files.
  var isEmpty: Bool { rulesets.isEmpty }

  /// Releases the rules: stores them and puts them in force in the databases to which they belong.
  /// - Throws: ``HearthError`` if the store cannot write.
  func release(on engine: FirestoreEngine) async throws(HearthError) {
    let namedDatabases = Set(rulesets.compactMap(\.database))
    for (database, ruleset) in rulesets {
      let policy = FirestoreRulesPolicy(
        ruleset, explainsDenials: explainsDenials, namesStatements: isEmulator)
      let rules = ReleasedRules(source: ruleset.source, policy: policy)
      // In an emulator the rules of the default database protect all databases without a file.
      let coversOthers = database == nil && isEmulator
      let id = database ?? DatabaseName.defaultDatabase
      do {
        try await engine.releaseRules(rules, inGroup: "database \(id)") { name in
          coversOthers ? !namedDatabases.contains(name.database) : name.database.utf8.elementsEqual(id.utf8)
        }
      } catch {
        throw HearthError("The rules of the database \(id) cannot be stored: \(error.message)")
      }
    }
  }
}
