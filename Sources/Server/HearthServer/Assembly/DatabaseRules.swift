// The rules files of the Realtime Database that firebase.json names. They are stored like rules from a request, at the
// start and on every reload.

import Access
import Logging
import RealtimeEngine
import RealtimeModel
import SecurityRules

/// The compiled rules of the project's files.
struct DatabaseRules {
  private var rulesets: [(namespace: String, ruleset: RealtimeRuleset)] = []

  /// Reads and compiles all files.
  /// - Throws: ``HearthError`` for the first file that cannot be read or has errors.
  init(_ configuration: HearthConfiguration) throws(HearthError) {
    for file in configuration.databaseRulesFiles {
      let namespace = file.instance ?? "\(configuration.project)-default-rtdb"
      rulesets.append((namespace, try Self.ruleset(in: file.path)))
    }
  }

  private static func ruleset(in path: String) throws(HearthError) -> RealtimeRuleset {
    let bytes: [UInt8]?
    do { bytes = try ConfigurationFile.read(path) } catch {
      throw HearthError("The rules file \(path) cannot be read: \(error)")
    }
    guard let bytes else {
      throw HearthError("The rules file \(path), which firebase.json names, does not exist.")
    }
    do throws(RealtimeModel.RulesError) { return try RealtimeRuleset(bytes) } catch {
      throw HearthError(error.problems.map { "\(path):\($0)" }.joined(separator: "\n"))
    }
  }

  /// Whether the configuration names no rules files.
  var isEmpty: Bool { rulesets.isEmpty }

  /// Stores the rules that differ from the stored ones. They are in force when this returns.
  /// - Throws: ``HearthError`` if a database cannot be opened or written.
  func publish(on engine: RealtimeEngine) async throws(HearthError) {
    for (namespace, ruleset) in rulesets {
      do {
        let database = try await engine.database(namespace)
        if try await database.rules()?.text.utf8.elementsEqual(ruleset.file.text.utf8) == true { continue }
        try await database.setRules(ruleset.file, as: .administrator)
      } catch { throw HearthError("The rules of the database \(namespace) cannot be stored: \(error)") }
    }
  }
}
