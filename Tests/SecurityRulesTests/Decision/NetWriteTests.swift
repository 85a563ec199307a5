// Tests that rules decide the writes of one document by their net effect: the change from the document before the
// commit to the document after all of its writes.

import FirestoreModel
import SecurityRules
import Testing

@Suite struct NetWriteTests {
  /// The methods of which each alone, if the rules allow it, permits these writes of one document.
  private func sufficientMethods(
    _ kinds: [(RuleWrite.Kind, Bool?)], before: MapValue?, after: MapValue?
  ) throws -> [String] {
    try ["get", "create", "update", "delete"].filter { method in
      let rules = try FirestoreRuleset(
        compiling: """
          rules_version = '2';
          service cloud.firestore {
            match /databases/{d}/documents/c/{id} { allow \(method); }
          }
          """)
      let writes = kinds.map { RuleWrite(path: "c/x", kind: $0.0, requiresExistence: $0.1) }
      return rules.decideWrites(writes, context()) { _ in (before, after) }.isAllowed
    }
  }

  @Test("rules decide once about all writes of one document in a commit, by their net effect")
  func netEffect() throws {
    #expect(try sufficientMethods([(.set, nil)], before: nil, after: [:]) == ["create"])
    #expect(try sufficientMethods([(.set, nil)], before: [:], after: [:]) == ["update"])
    #expect(try sufficientMethods([(.set, nil), (.set, nil)], before: nil, after: [:]) == ["create"])
    #expect(try sufficientMethods([(.delete, nil), (.set, nil)], before: [:], after: [:]) == ["update"])
    #expect(try sufficientMethods([(.delete, nil), (.set, nil)], before: nil, after: [:]) == ["update"])
    #expect(try sufficientMethods([(.set, nil), (.delete, nil)], before: nil, after: nil) == ["delete"])
    #expect(try sufficientMethods([(.verify, true)], before: [:], after: [:]) == ["get"])
  }

  @Test("a precondition decides between create and update, regardless of the stored document")
  func preconditions() throws {
    #expect(try sufficientMethods([(.set, true)], before: nil, after: [:]) == ["update"])
    #expect(try sufficientMethods([(.set, false)], before: [:], after: [:]) == ["create"])
  }

  @Test("one denied document denies the commit")
  func allOrNothing() throws {
    let rules = try FirestoreRuleset(
      compiling: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{d}/documents/c/{id} { allow create: if id == 'x'; }
        }
        """)
    let writes = ["c/x", "c/y"].map { RuleWrite(path: ResourcePath(splitting: $0), kind: .set) }
    let decision = rules.decideWrites(writes, context()) { _ in (nil, [:]) }
    #expect(!decision.isAllowed)
    #expect(decision.deniedOperation == 1)
  }
}
