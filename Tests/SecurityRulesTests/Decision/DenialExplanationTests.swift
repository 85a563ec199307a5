// Tests the explanations of denials by Firestore rules. An explanation lists the allow statements, with the values and
// positions of their deciding expressions, or with the fault (error) that ended an evaluation.

import FirestoreModel
import Testing

@testable import SecurityRules

@Suite struct DenialExplanationTests {
  @Test("an explanation names the statement and the values of the deciding expressions")
  func values() throws {
    let rules = try ruleset(allowing: "resource.data.owner == 'u1' && resource.data.n < 3")
    let explanation = rules.explainGet("c/x", ["owner": "u1", "n": 7], context())
    let statement = try #require(explanation.statements.first)
    #expect(statement.position.line == 5)
    #expect(statement.fault == nil)
    #expect(statement.terms.map(\.value).contains("7"))
    #expect(statement.terms.first?.value == "false")
    #expect(explanation.text == "\nfalse for 'get' @ L5")
  }

  @Test("an explanation names the missing field and its position")
  func missingField() throws {
    let rules = try ruleset(allowing: "resource.data.owner == 'u1'")
    let statement = try #require(rules.explainGet("c/x", [:], context()).statements.first)
    #expect(statement.fault == .undefinedProperty("owner"))
    #expect(statement.faultPosition == SourcePosition(line: 5, column: 36))
  }

  @Test("an explanation names an exhausted limit")
  func limit() throws {
    let list = Array(repeating: "1", count: 999).joined(separator: ",")
    let rules = try ruleset(allowing: "[\(list)].size() == 1")
    let explanation = rules.explainGet("c/x", [:], context())
    #expect(explanation.statements.first?.fault == .expressionLimit)
  }

  @Test(
    "an explanation names the lookup limit, even if lookups for earlier documents or earlier disjuncts have exhausted it"
  )
  func lookupLimit() throws {
    func reads(_ key: String) -> String {
      (0..<7).map { "!exists(/databases/$(database)/documents/d/$(\(key) + '\($0)'))" }.joined(
        separator: " && ")
    }
    let documents = ["x", "y", "z"].map { (path: ResourcePath(["c", $0]), fields: MapValue?.none) }
    let gets = try #require(
      try ruleset(allowing: reads("id")).explain(.get(documents), context()))
    #expect(gets.path == "c/z")
    #expect(gets.statements.map(\.fault) == [.lookupLimit(20)])
    let query = RuleQuery(
      parent: .root, collectionID: "c",
      alternatives: ["a", "b"].map {
        [.field(FieldFilter(FieldPath(field: "n"), .equal, .string($0)))]
      })
    let list = try #require(
      try ruleset(allowing: reads("resource.data.n")).explain(.query(query), context()))
    #expect(list.statements.map(\.fault) == [.lookupLimit(10)])
    #expect(list.report.contains("The maximum of 10 documents to read has been reached."))
  }

  @Test(
    "an explanation names the work limit, also for statements that were not evaluated because it was exhausted"
  )
  func workLimit() throws {
    let rules = try FirestoreRuleset(
      compiling: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{d}/documents {
            match /c/{id} { allow get: if resource.data.t.matches('(a*)*(a|b)*c'); }
            match /{p=**} { allow get: if p == null; }
          }
        }
        """)
    let fields: MapValue = ["t": .string(String(repeating: "a", count: 1_000_000))]
    let explanation = rules.explainGet("c/x", fields, context())
    #expect(explanation.statements.map(\.fault) == [.workLimit, .workLimit])
    #expect(explanation.statements.map(\.position.line) == [4, 5])
  }

  @Test("the explanation for a path that no match block covers lists no statements")
  func uncovered() throws {
    let explanation = try ruleset(allowing: "true").explainGet("d/x", nil, context())
    #expect(explanation.statements.isEmpty)
    #expect(explanation.text == "No matching allow statements")
  }

  @Test(
    "the text of a denied write has the statements for create and update, or for one of them if the write has a precondition"
  )
  func writes() throws {
    let rules = try FirestoreRuleset(
      compiling: """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents/c/{id} {
            allow create: if request.resource.data.n == 1;
            allow update: if false;
          }
        }
        """)
    func text(_ method: RuleMethod, isConditional: Bool) throws -> String? {
      let before: MapValue? = method == .create ? nil : [:]
      let change = RuleChange(
        path: "c/x", method: method, before: before, after: [:], isConditional: isConditional)
      return try rules.denialText(.changes([change]), context())
    }
    let missing = "Property n is undefined on object. for 'create' @ L4"
    #expect(try text(.create, isConditional: false) == "\n\(missing), false for 'update' @ L5")
    #expect(try text(.update, isConditional: false) == "\n\(missing), false for 'update' @ L5")
    #expect(try text(.create, isConditional: true) == "\n\(missing)")
    #expect(try text(.update, isConditional: true) == "\nfalse for 'update' @ L5")
  }

  @Test("the text of a denied query explains the first denied alternative (disjunct) of its filter")
  func queries() throws {
    let rules = try ruleset(allowing: "resource.data.n > 5")
    func text(_ value: Int64, _ op: FieldFilter.Operator) throws -> String? {
      let term = FilterTerm.field(FieldFilter(FieldPath(field: "n"), op, .integer(value)))
      return try rules.denialText(
        .query(RuleQuery(parent: .root, collectionID: "c", alternatives: [[term]])), context())
    }
    #expect(try text(6, .equal) == nil)
    #expect(try text(5, .equal) == "\nfalse for 'list' @ L5")
    #expect(try text(4, .greaterThan) == "\nevaluation error at L5:36 for 'list' @ L5")
  }

  @Test("the text of a denial by many statements is bounded")
  func maximumLength() throws {
    let statements = String(repeating: "allow get: if false; ", count: 500)
    let rules = try FirestoreRuleset(
      compiling:
        "rules_version = '2'; service cloud.firestore { match /databases/{d}/documents/c/{id} { \(statements) } }"
    )
    let text = try #require(try rules.denialText(.get([("c/x", [:])]), context()))
    #expect(text.count == 2000)
  }
}
