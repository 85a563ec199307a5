// Tests the limits of an evaluation: expressions, text, regular expressions and read documents.

import FirestoreModel
import SecurityRules
import Testing

@Suite struct RuleLimitTests {
  private func allows(
    _ condition: String, functions: String = "", fields: MapValue? = nil,
    documents: StoredDocuments = StoredDocuments()
  ) throws -> Bool {
    try ruleset(allowing: condition, functions: functions)
      .decideGet([("c/x", fields)], context(documents)).isAllowed
  }

  @Test("the thousandth expression is evaluated, the next one is a fault")
  func expressions() throws {
    func condition(_ count: Int) -> String {
      "[\(Array(repeating: "1", count: count).joined(separator: ","))] is list"
    }
    #expect(try allows(condition(997)))
    #expect(try !allows(condition(998)))
  }

  @Test("a rule cannot double a text without limit")
  func textDoubling() throws {
    let lets = (1...11).map { "let t\($0) = t\($0 - 1) + t\($0 - 1);" }.joined(separator: " ")
    let chain = (1...10).map { level in
      "function f\(level)(t0) { \(lets) return \(level == 10 ? "t11.size() > 0" : "f\(level + 1)(t11)"); }"
    }
    #expect(try !allows("f1('0123456789abcdef')", functions: chain.joined(separator: "\n")))
    #expect(try allows("f10('0123456789abcdef')", functions: chain.joined(separator: "\n")))
  }

  @Test(
    "lists that contain other lists twice are not compared if their items, counted repeatedly, exceed the limit"
  )
  func listDoubling() throws {
    let lets = (1...11).map { "let t\($0) = [t\($0 - 1), t\($0 - 1)];" }.joined(separator: " ")
    let chain = (1...8).map { level in
      "function f\(level)(t0) { \(lets) return \(level == 8 ? "t11 == t11" : "f\(level + 1)(t11)"); }"
    }
    #expect(try !allows("f1([1])", functions: chain.joined(separator: "\n")))
    #expect(try allows("f8([1])", functions: chain.joined(separator: "\n")))
  }

  @Test("a regular expression with nested repetitions exhausts its budget, and the rule denies")
  func regularExpression() throws {
    let text = MapValue([("t", .string(String(repeating: "a", count: 100_000)))])
    #expect(try !allows("resource.data.t.matches('(a*)*(a*)*(a|b)*(aa)*(aaa)*c') || false", fields: text))
    #expect(try allows("resource.data.t.matches('a*')", fields: text))
  }

  @Test(
    "an operation may look up ten documents; the requested document does not count, and repeated reads count once"
  )
  func lookups() throws {
    func reads(_ count: Int) -> String {
      (0..<count).map { "!exists(/databases/$(database)/documents/d/x\($0))" }.joined(separator: " && ")
    }
    #expect(try allows(reads(10)))
    #expect(try !allows(reads(11)))
    #expect(try allows("\(reads(10)) && exists(/databases/$(database)/documents/c/x)", fields: [:]))
    #expect(try allows("\(reads(10)) && \(reads(10))"))
  }

  @Test("each operation of a request may look up ten documents, and the request twenty")
  func lookupsOfRequest() throws {
    func allows(_ count: Int, _ ids: [String]) throws -> Bool {
      let reads = (0..<count).map { "!exists(/databases/$(database)/documents/d/$(id + '\($0)'))" }
      return try ruleset(allowing: reads.joined(separator: " && "))
        .decideGet(ids.map { (ResourcePath(splitting: "c/\($0)"), nil) }, context()).isAllowed
    }
    #expect(try allows(10, ["x", "y"]))
    #expect(try !allows(11, ["x", "y"]))
    #expect(try allows(5, ["v", "w", "x", "y"]))
    #expect(try !allows(7, ["x", "y", "z"]))
  }

  @Test("rules can read a document before and after the writes, in either order")
  func beforeAndAfter() throws {
    struct Created: RuleDocumentSource {
      func fields(of path: ResourcePath, afterWrites: Bool) throws -> MapValue? { afterWrites ? [:] : nil }
    }
    let path = "(/databases/$(database)/documents/d/x)"
    let created = FirestoreRuleset.Context(
      database: "(default)", caller: .nobody, time: Timestamp(seconds: 0), documents: Created())
    for condition in ["!exists\(path) && existsAfter\(path)", "existsAfter\(path) && !exists\(path)"] {
      #expect(try ruleset(allowing: condition).decideGet([("c/x", nil)], created).isAllowed, "\(condition)")
    }
  }

  @Test("an error of the store fails the request, even if the condition is true without the document")
  func unreadableDocuments() throws {
    let rules = try ruleset(allowing: "exists(/databases/$(database)/documents/d/x) || true")
    let decision = rules.decideGet([("c/x", nil)], context(StoredDocuments(isUnreadable: true)))
    #expect(!decision.isAllowed)
    #expect(decision.failure is StoredDocuments.Unreadable)
  }

  @Test("a decision lists the documents that its rules read, and whether they read the time")
  func dependencies() throws {
    let rules = try ruleset(
      allowing: "!exists(/databases/$(database)/documents/d/x) && request.time > timestamp.date(2020, 1, 1)")
    let decision = rules.decideGet([("c/x", nil)], context())
    #expect(decision.isAllowed)
    #expect(decision.dependencies == ["d/x"])
    #expect(decision.readsTime)
    #expect(try !ruleset(allowing: "true").decideGet([("c/x", nil)], context()).readsTime)
  }

  @Test("rules that allow access until a date (test mode) deny from that date")
  func testMode() throws {
    #expect(try allows("request.time < timestamp.date(2025, 12, 24)"))
    #expect(try !allows("request.time < timestamp.date(2025, 11, 24)"))
  }
}
