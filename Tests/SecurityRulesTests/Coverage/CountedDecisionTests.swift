// Tests the coverage of rules: while a decision evaluates expressions, it counts their values, without a second
// evaluation. Each evaluation of an expression counts once, and the counts take bounded memory.

import Access
import FirestoreModel
import JSON
import RealtimeModel
import Testing

@testable import SecurityRules

@Suite("Coverage of decisions", .timeLimit(.minutes(1)))
struct CountedDecisionTests {
  /// Documents of a request.
  private struct View: DocumentView {
    var before: [ResourcePath: MapValue] = [:]
    var after: [ResourcePath: MapValue] = [:]
    let time = Timestamp(seconds: 1_764_000_000)

    private func document(_ name: DocumentName, _ fields: MapValue?) -> Document? {
      fields.map { Document(name: name, fields: $0, createTime: time, updateTime: time) }
    }

    func document(_ name: DocumentName) -> Document? { document(name, before[name.path]) }
    func documentAfter(_ name: DocumentName) -> Document? { document(name, after[name.path]) }
    func exists(_ name: DocumentName) -> Bool { before[name.path] != nil }
  }

  private func name(_ id: String) throws -> DocumentName {
    try #require(
      DocumentName(
        database: DatabaseName(project: "p", database: "(default)"), path: ResourcePath(["c", id])))
  }

  /// The values of an expression with their counts.
  private func valueCounts(_ counts: CoveredValues) -> [String: Int] {
    Dictionary(
      counts.distinct.map { (String(decoding: $0.value.json(), as: UTF8.self), $0.count) },
      uniquingKeysWith: +)
  }

  @Test("A recorded decision has the same verdict, counts every expression once and lists every evaluation")
  func firestore() throws {
    let rules = try ruleset(allowing: "resource.data.tags.hasAll(['a', 'b']) && resource.data.n in [1, 2]")
    let policy = FirestoreRulesPolicy(rules)
    let view = View(before: [
      ResourcePath(["c", "x"]): ["tags": ["a", "b", "c"], "n": 2], ResourcePath(["c", "y"]): ["tags": ["a"]],
    ])
    for round in 1...3 {
      let names = [try name("x"), try name("y")]
      let plain = try policy.decide(.nobody, .get(names), view: view)
      let recorded = try policy.decideRecorded(.nobody, .get(names), view: view)
      #expect(
        plain.denial?.reason == recorded.denial?.reason && recorded.denial != nil && plain.record == nil)
      let record = try #require(recorded.record as? EvaluationRecord)
      #expect(record.evaluations.map(\.isAllowed) == [true, false])
      let condition = try #require(rules.program.statements.first?.condition)
      let counts = rules.counts.values(of: Int(condition))
      #expect(valueCounts(counts) == [#"{"boolValue":true}"#: round, #"{"boolValue":false}"#: round])
    }
    let lists = rules.program.nodes.indices.filter {
      if case .constantList = rules.program.nodes[$0] { true } else { false }
    }
    // The first document needs both operands of `&&`, the second one only the first.
    #expect(lists.map { rules.counts.values(of: $0).total } == [6, 3])
    #expect(lists.allSatisfy { rules.counts.values(of: $0).distinct.count == 1 })
  }

  @Test("The coverage keeps ten distinct values of an expression, and counts all other values together")
  func maximumValues() throws {
    let rules = try ruleset(allowing: "resource.data.l.size() >= 0 && resource.data.t != 'x'")
    let policy = FirestoreRulesPolicy(rules)
    for number in 0..<25 {
      let text = Value.string(String(repeating: "t", count: number * 100))
      let view = View(before: [
        ResourcePath(["c", "x"]): ["l": .array([.integer(Int64(number))]), "t": text]
      ])
      for _ in 0..<2 { _ = try policy.decideRecorded(.nobody, .get([name("x")]), view: view) }
    }
    let members = rules.program.nodes.indices.filter {
      if case .member = rules.program.nodes[$0] { true } else { false }
    }
    var fullCount = 0
    for counts in members.map({ rules.counts.values(of: $0) }) {
      #expect(counts.total == 50 && counts.distinct.count <= 10)
      if counts.distinct.count == 10 { fullCount += 1 }
    }
    // Three expressions have more than ten values: `resource.data`, which occurs twice, and `l`. Reports truncate the
    // values of `t`, so long texts count as one value.
    #expect(fullCount == 3)
  }

  @Test(
    "Each evaluation of a Realtime Database rule is counted once, also if the rule above it is a constant")
  func realtime() throws {
    let rules = #"{"rules":{".read":"auth == null","a":{".read":false,"b":{".read":"data.val() == 'x'"}}}}"#
    let policy = RealtimeRulesPolicy(try RealtimeRuleset(Array(rules.utf8)))
    let user = Principal.user("u1")
    let view = NodeTreeView(before: Node.empty.setting("a/b", to: .leaf(.string("x"))))
    for round in 1...3 {
      let plain = try policy.decide(user, .read("a/b", .default), view: view)
      let recorded = try policy.decideRecorded(user, .read("a/b", .default), view: view)
      #expect(plain.denial == nil && recorded.denial == nil)
      #expect(plain.dependencies == recorded.dependencies && plain.dependencies == ["a/b"])
      let report = try #require(policy.ruleset.coverage)
      func totals(_ node: CoverageReport.Node) -> [Int] {
        [node.values.total] + node.children.flatMap(totals)
      }
      for total in report.roots.flatMap(totals) { #expect(total == round) }
    }
  }
}
