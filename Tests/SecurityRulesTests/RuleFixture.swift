// Small rulesets for tests, and documents in memory.

import FirestoreModel
import SecurityRules

/// Documents in memory.
struct StoredDocuments: RuleDocumentSource {
  struct Unreadable: Error {}

  var documents: [ResourcePath: MapValue] = [:]
  var isUnreadable = false

  func fields(of path: ResourcePath, afterWrites: Bool) throws -> MapValue? {
    if isUnreadable { throw Unreadable() }
    return documents[path]
  }
}

/// A ruleset whose documents `c/{id}` allow reading under a condition.
func ruleset(allowing condition: String, functions: String = "") throws -> FirestoreRuleset {
  try FirestoreRuleset(
    compiling: """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents {
          \(functions)
          match /c/{id} { allow read: if \(condition); }
        }
      }
      """)
}

/// A context over documents in memory.
func context(
  _ documents: StoredDocuments = StoredDocuments(), caller: RuleCaller = .nobody
) -> FirestoreRuleset.Context {
  FirestoreRuleset.Context(
    database: "(default)", caller: caller, time: Timestamp(seconds: 1_764_000_000), documents: documents)
}
