// Tests the proof of queries: which conditions the filters of a query imply.

import FirestoreModel
import SecurityRules
import Testing

@Suite struct QueryProofTests {
  private func allows(_ condition: String, _ terms: [FilterTerm]) throws -> Bool {
    let rules = try FirestoreRuleset(
      compiling: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{d}/documents/c/{id} { allow list: if \(condition); }
        }
        """)
    return try rules.decideQuery(
      RuleQuery(parent: .root, collectionID: "c", alternatives: [terms]), context()
    ).isAllowed
  }

  private func term(_ op: FieldFilter.Operator, _ value: Value) -> FilterTerm {
    .field(FieldFilter(FieldPath(field: "n"), op, value))
  }

  @Test("a filter implies weaker comparisons; a comparison that it does not imply has no value")
  func implication() throws {
    #expect(try allows("resource.data.n > 4", [term(.greaterThan, 5)]))
    #expect(try !allows("resource.data.n > 6", [term(.greaterThan, 5)]))
    #expect(try !allows("!(resource.data.n > 6)", [term(.greaterThan, 5)]))
    #expect(try !allows("resource.data.n == 5", [term(.greaterThanOrEqual, 5), term(.lessThanOrEqual, 5)]))
  }

  @Test("a filter with a list, such as `in`, does not imply that the field equals the list")
  func lists() throws {
    for op in [FieldFilter.Operator.isIn, .arrayContainsAny] {
      #expect(try !allows("resource.data.n == [1, 2]", [term(op, .array([1, 2]))]))
    }
  }

  @Test("only a field whose single filter is an equality has a value")
  func exactValue() throws {
    #expect(try allows("resource.data.n + 1 == 6", [term(.equal, 5)]))
    #expect(try !allows("resource.data.n + 1 == 6", [term(.equal, 5), term(.notEqual, 6)]))
    #expect(try !allows("resource.data.n + 1 == 6", [term(.greaterThanOrEqual, 5)]))
  }

  @Test("only patterns that cover documents below every parent allow a query of a collection group")
  func groups() throws {
    func isAllowed(_ pattern: String) throws -> Bool {
      let rules = try FirestoreRuleset(
        compiling: """
          rules_version = '2';
          service cloud.firestore {
            match /databases/{d}/documents { match \(pattern) { allow list; } }
          }
          """)
      return try rules.decideQuery(RuleQuery(parent: .root, collectionID: "c", isGroup: true), context())
        .isAllowed
    }
    for pattern in ["/{p=**}", "/{p=**}/{id}", "/{p=**}/c/{id}", "/{p=**}/{group}/{id}"] {
      #expect(try isAllowed(pattern), "\(pattern)")
    }
    // The path of a query of a collection group is unknown.
    let rules = try FirestoreRuleset(
      compiling: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{d}/documents { match /{p=**} { allow list: if request.path == /databases/$(d)/documents; } }
        }
        """)
    let group = RuleQuery(parent: .root, collectionID: "c", isGroup: true)
    #expect(try !rules.decideQuery(group, context()).isAllowed)
    for pattern in [
      "/c/{id}", "/{p=**}/x/{id}", "/{p=**}/{parent}/{group}/{id}", "/x/{p=**}", "/{x}/{p=**}/c/{id}",
    ] {
      #expect(try !isAllowed(pattern), "\(pattern)")
    }
  }

  @Test("a field that a query requires to be NaN satisfies no comparison except inequality")
  func notANumber() throws {
    let isNaN = FilterTerm.unary(UnaryFilter(FieldPath(field: "n"), .isNaN))
    for terms in [[isNaN], [isNaN, term(.notEqual, 1)]] {
      #expect(try !allows("resource.data.n > 3", terms))
      #expect(try !allows("resource.data.n == 3", terms))
      #expect(try allows("resource.data.n != 3.0", terms))
    }
  }

  @Test("if a query names no document, the id of its documents is unknown, and rules that use the id deny")
  func unboundWildcard() throws {
    #expect(try !allows("id == 'x'", []))
    #expect(try !allows("id != 'x'", []))
    #expect(try allows("id == 'x' || true", []))
  }

  @Test("the rules must allow all alternatives (disjuncts) of a filter")
  func alternatives() throws {
    let rules = try FirestoreRuleset(
      compiling: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{d}/documents/c/{id} { allow list: if resource.data.n == 1; }
        }
        """)
    let query = RuleQuery(
      parent: .root, collectionID: "c", alternatives: [[term(.equal, 1)], [term(.equal, 2)]])
    let decision = try rules.decideQuery(query, context())
    #expect(!decision.isAllowed && decision.deniedOperation == 1)
  }

  @Test(
    "a restricted field grants nothing that Google's emulator denies, also inside lists, maps, sets and differences",
    arguments: constraintVerdicts)
  func constraints(condition: String, verdicts: String) throws {
    func term(_ field: String, _ op: FieldFilter.Operator, _ value: Value) -> FilterTerm {
      .field(FieldFilter(FieldPath(field: field), op, value))
    }
    let terms = [
      term("a", .greaterThan, 5), term("a", .notEqual, 1), term("a", .arrayContains, 1),
    ]
    let decided = try terms.map { try allows(condition, [$0, term("b", .equal, 1)]) ? "A" : "d" }.joined()
    // This server denies these conditions, although the emulator allows them: a call that the field's filters do not
    // decide, and the comparison of a restricted field with itself.
    let denied = [
      "!(resource.data.a.hasAny([1]))", "resource.data == resource.data",
      "[resource.data.a] == [resource.data.a]",
    ]
    #expect(decided == (denied.contains(condition) ? "ddd" : verdicts), "\(condition)")
  }

  @Test("a query for one document depends on the contents of that document")
  func namedDocument() throws {
    let name = try #require(DocumentName(database: DatabaseName(project: "demo"), path: "c/d"))
    let term = FilterTerm.field(FieldFilter(.documentID, .equal, .reference(name)))
    let decision = try ruleset(allowing: "resource.data.n == 1").decideQuery(
      RuleQuery(parent: .root, collectionID: "c", alternatives: [[term]]),
      context(StoredDocuments(documents: ["c/d": ["n": .integer(1)]])))
    #expect(decision.isAllowed)
    #expect(decision.dependencies == ["c/d"])
  }
}
