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

  @Test("one filter implies a weaker comparison; knowledge is never false")
  func implication() throws {
    #expect(try allows("resource.data.n > 4", [term(.greaterThan, 5)]))
    #expect(try !allows("resource.data.n > 6", [term(.greaterThan, 5)]))
    #expect(try !allows("!(resource.data.n > 6)", [term(.greaterThan, 5)]))
    #expect(try !allows("resource.data.n == 5", [term(.greaterThanOrEqual, 5), term(.lessThanOrEqual, 5)]))
  }

  @Test("a field that a query wants to be NaN satisfies no comparison but inequality")
  func notANumber() throws {
    let isNaN = FilterTerm.unary(UnaryFilter(FieldPath(field: "n"), .isNaN))
    for terms in [[isNaN], [isNaN, term(.notEqual, 1)]] {
      #expect(try !allows("resource.data.n > 3", terms))
      #expect(try !allows("resource.data.n == 3", terms))
      #expect(try allows("resource.data.n != 3.0", terms))
    }
  }

  @Test("the id of an unnamed document is unknown, and no rule may use it")
  func unboundWildcard() throws {
    #expect(try !allows("id == 'x'", []))
    #expect(try !allows("id != 'x'", []))
    #expect(try allows("id == 'x' || true", []))
  }

  @Test("all alternatives of a filter must be allowed")
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
}
