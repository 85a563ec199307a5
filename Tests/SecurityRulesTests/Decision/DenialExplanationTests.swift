import FirestoreModel
import SecurityRules
import Testing

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

  @Test("an explanation names the missing field and its place")
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

  @Test("a path that no block covers has no statements")
  func uncovered() throws {
    let explanation = try ruleset(allowing: "true").explainGet("d/x", nil, context())
    #expect(explanation.statements.isEmpty)
    #expect(explanation.text == "No matching allow statements")
  }
}
