// Tests decisions about large requests, which a policy makes in parts. Their verdicts and limits are the same as for a
// decision without parts.

import Access
import FirestoreModel
import Locking
import Testing

@testable import SecurityRules

@Suite("Decisions in parts", .timeLimit(.minutes(2))) struct PartialDecisionTests {
  /// Documents of a request, and the part of the request that the policy decides.
  private struct View: DocumentView {
    var before: MapValue?
    var after: MapValue?
    let time = Timestamp(seconds: 1_764_000_000)
    var part = DecisionPart.start
    let readCount = Guarded(0)

    private func document(_ name: DocumentName, _ fields: MapValue?) -> Document? {
      fields.map { Document(name: name, fields: $0, createTime: time, updateTime: time) }
    }

    func document(_ name: DocumentName) -> Document? {
      readCount.withLock { $0 += 1 }
      return name.path.segments.first == "c" ? document(name, before) : nil
    }
    func documentAfter(_ name: DocumentName) -> Document? { document(name, after) }
    func exists(_ name: DocumentName) -> Bool { document(name) != nil }
  }

  private func policy(_ statement: String) throws -> PinnedPolicy<FirestoreAccess> {
    PinnedPolicy(
      policy: FirestoreRulesPolicy(
        try FirestoreRuleset(
          compiling: """
            rules_version = '2';
            service cloud.firestore {
              match /databases/{database}/documents/c/{id} { \(statement) }
            }
            """)), version: 1)
  }

  private func names(_ ids: [String]) throws -> [DocumentName] {
    try ids.map {
      try #require(
        DocumentName(
          database: DatabaseName(project: "p", database: "(default)"), path: ResourcePath(["c", $0])))
    }
  }

  /// The decision after all parts, and the number of parts.
  private func decide(
    _ policy: PinnedPolicy<FirestoreAccess>, _ operation: FirestoreOperation, _ view: View
  ) throws -> (decision: FirestoreDecision, partCount: Int) {
    var view = view
    var count = 1
    while true {
      do { return (try policy.decide(.nobody, operation) { view }, count) } catch let unfinished
        as UnfinishedDecision<FirestoreAccess>
      {
        view.part = .rest(unfinished.continuation)
        count += 1
      }
    }
  }

  private static let read = "exists(/databases/$(database)/documents/d/$(id.split('-')[0]))"

  @Test(
    "the rules of a request for many documents may read twenty documents in total, not twenty in each part")
  func lookups() throws {
    let policy = try policy("allow get: if !\(Self.read);")
    func isAllowed(_ groupCount: Int) throws -> (isAllowed: Bool, partCount: Int) {
      let ids = (0..<600).map { "g\($0 * groupCount / 600)-\($0)" }
      let (decision, count) = try decide(policy, .get(try names(ids)), View())
      #expect(decision.denial != nil || decision.dependencies.count == groupCount)
      return (decision.denial == nil, count)
    }
    let (isAllowedWithTwenty, partCount) = try isAllowed(20)
    #expect(isAllowedWithTwenty && partCount == 3)
    #expect(try !isAllowed(21).isAllowed)
  }

  @Test(
    "a commit of many large documents is allowed in parts, each within the work limit of one document"
  )
  func largeCommit() throws {
    let policy = try policy(
      """
      function changes(keys) { return request.resource.data.diff(resource.data).affectedKeys().hasOnly(keys); }
      allow update: if changes(['a']) || changes(['b']) || changes(['c']) || changes(['n', 'time']);
      """)
    func fields(n: Int64, field7: String) -> MapValue {
      let text = String(repeating: "x", count: 100)
      var entries: [(String, Value)] = (0..<100).map { ("field\($0)", .string($0 == 7 ? field7 : text)) }
      entries.append(("n", .integer(n)))
      return MapValue(entries)
    }
    let before = fields(n: 1, field7: "x")
    let writes = try names((0..<450).map { "d\($0)" }).map { DocumentWrite($0, .update) }
    let (decision, count) = try decide(
      policy, .commit(writes), View(before: before, after: fields(n: 2, field7: "x")))
    #expect(decision.denial == nil)
    #expect((2...60).contains(count))
    let other = View(before: before, after: fields(n: 2, field7: "y"))
    #expect(try decide(policy, .commit(writes), other).decision.denial != nil)
  }

  /// A rule that needs a considerable part of the work of a document.
  private static let costly = "!resource.data.t.matches('a*c')"
  private static let costlyFields: MapValue = ["t": .string(String(repeating: "a", count: 60_000))]

  @Test("a part of a read reads the documents that it decides, and the first document of the next part")
  func readDocuments() throws {
    let policy = try policy("allow get: if \(Self.costly);")
    let view = View(before: Self.costlyFields)
    let (decision, count) = try decide(policy, .get(try names((0..<9).map { "d\($0)" })), view)
    #expect(decision.denial == nil && count > 2)
    #expect(view.readCount.withLock { $0 } <= 9 + count)
  }

  @Test("the coverage counts a document once if one part stops before it and the next part decides it")
  func coverage() throws {
    let rules = try ruleset(allowing: Self.costly)
    let policy = FirestoreRulesPolicy(rules)
    var view = View(before: Self.costlyFields)
    var (evaluations, partCount) = (0, 0)
    var continuation: (any Sendable)?
    repeat {
      let decision = try policy.decideRecorded(
        .nobody, .get(try names((0..<9).map { "d\($0)" })), view: view)
      #expect(decision.denial == nil)
      evaluations += try #require(decision.record as? EvaluationRecord).evaluations.count
      continuation = decision.continuation
      if let continuation { view.part = .rest(continuation) }
      partCount += 1
    } while continuation != nil
    let condition = try #require(rules.program.statements.first?.condition)
    #expect(partCount > 2 && evaluations == 9)
    #expect(rules.counts.values(of: Int(condition)).total == 9)
  }

  @Test("a document that exceeds the limit of work is denied in its first part")
  func exhaustion() throws {
    let policy = try policy("allow get: if resource.data.t.matches('(a*)*(a|b)*c');")
    let fields: MapValue = ["t": .string(String(repeating: "a", count: 300_000))]
    let (decision, count) = try decide(policy, .get(try names(["x", "y"])), View(before: fields))
    #expect(decision.denial != nil && count == 1)
  }

  @Test("an operation that one call can decide has no parts")
  func undivided() throws {
    let policy = try policy("allow get: if !\(Self.read);")
    let ids = (0..<600).map { "g-\($0)" }
    var view = View()
    view.part = .all
    #expect(try decide(policy, .get(try names(ids)), view).partCount == 1)
  }
}
