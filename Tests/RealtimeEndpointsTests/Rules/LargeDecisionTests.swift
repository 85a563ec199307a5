// Tests writes that rules take long to decide. These decisions are made in the background, and have the same result
// as a decision at the execution of the write. A batch is the group of operations that one commit executes.

import Access
import Foundation
import JSON
import Locking
import OrderedStore
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import RealtimeEngine
@testable import SecurityRules

extension StagingLimits {
  /// Every write that needs a decision is decided in the background.
  static var backgroundDecisions: StagingLimits {
    var limits = StagingLimits()
    (limits.decisionSteps, limits.minimumDecisionSteps, limits.decidedPaths) = (0, 0, 0)
    return limits
  }
}

@Suite("Long decisions of Realtime Database rules", .timeLimit(.minutes(5)))
struct LargeDecisionTests {
  private static let owner = ["Authorization: Bearer owner"]

  private func setRules(_ rules: String, _ server: RealtimeTestServer, data: String? = nil) async throws {
    if let data {
      #expect(
        try await server.rest("PUT", "/.json?ns=demo", body: data, headers: Self.owner).status == 200)
    }
    let answer = try await server.rest(
      "PUT", "/.settings/rules.json?ns=demo", body: #"{"rules":\#(rules)}"#, headers: Self.owner)
    #expect(answer.status == 200, "\(answer.body)")
  }

  private func write(
    _ method: String, _ path: String, _ body: String, _ server: RealtimeTestServer
  ) async throws -> Int {
    try await server.rest(method, "/\(path).json?ns=demo&print=silent", body: body).status
  }

  private func value(_ path: String, _ server: RealtimeTestServer) async throws -> String {
    try await server.rest("GET", "/\(path).json?ns=demo", headers: Self.owner).body
  }

  @Test("An update of 20,000 paths is decided by the rules of each path")
  func paths() async throws {
    try await RealtimeTestServer.run { server in
      try await setRules(
        #"""
        {"items":{"$k":{
          ".write":"root.child('open').val() == true && !data.exists() && root.child('users').hasChild('u1')",
          ".validate":"newData.hasChildren(['n','t']) && newData.parent().child('k0').exists()",
          "n":{".validate":"newData.isNumber() && newData.val() >= 0"},
          "t":{".validate":"newData.val().matches(/^text [0-9]+$/)"}}}}
        """#, server, data: #"{"open":true,"users":{"u1":1}}"#)
      func body(_ invalid: Int?) -> String {
        let members = (0..<20_000).map {
          #""k\#($0)":{"n":\#($0 == invalid ? -1 : $0),"t":"text \#($0)"}"#
        }
        return "{\(members.joined(separator: ","))}"
      }
      #expect(try await write("PATCH", "items", body(19_999), server) == 401)
      #expect(try await value("items", server) == "null")
      #expect(try await write("PATCH", "items", body(nil), server) == 204)
      #expect(try await value("items/k19999", server) == #"{"n":19999,"t":"text 19999"}"#)
      #expect(try await write("PATCH", "items", body(nil), server) == 401)
    }
  }

  @Test("A rule with a regular expression decides writes of strings of 2 MB")
  func text() async throws {
    try await RealtimeTestServer.run { server in
      try await setRules(
        #"{"a":{".write":true,".validate":"newData.val().matches(/^[a-y]+(z|zz)?$/)"}}"#, server)
      let text = String(repeating: "abcdefgh", count: 256 << 10)
      #expect(try await write("PUT", "a", "\"\(text)1\"", server) == 401)
      #expect(try await write("PUT", "a", "\"\(text)z\"", server) == 204)
    }
  }

  @Test("A write of a priority is checked by the validate rules of the location's 30,000 children")
  func priority() async throws {
    try await RealtimeTestServer.run { server in
      let children = (0..<30_000).map { #""k\#($0)":1"# }.joined(separator: ",")
      try await setRules(
        #"{"l":{".write":true,"$k":{".validate":"newData.val() == newData.parent().getPriority()"}}}"#,
        server,
        data: #"{"l":{\#(children)}}"#)
      #expect(try await write("PUT", "l/.priority", "2", server) == 401)
      #expect(try await write("PUT", "l/.priority", "1", server) == 204)
    }
  }

  @Test(
    "One of several concurrent writes succeeds if rules allow only the creation of a value", arguments: 0..<4)
  func creation(seed: Int) async throws {
    try await RealtimeTestServer.run(staging: .backgroundDecisions) { server in
      try await setRules(#"{"a":{"$k":{".write":"!data.parent().hasChildren()"}}}"#, server)
      let allowed = try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<12 {
          group.addTask { try await write("PUT", "a/k\(number % 5)", "\(number + seed)", server) }
        }
        return try await group.reduce(0) { $0 + ($1 == 204 ? 1 : 0) }
      }
      #expect(allowed == 1)
    }
  }

  @Test(
    "A counter that rules allow to grow only by one counts its successful writes", arguments: [1, 3])
  func counter(clients: Int) async throws {
    try await RealtimeTestServer.run(staging: .backgroundDecisions) { server in
      try await setRules(
        #"{"n":{".write":"newData.val() == root.child('n').val() + 1"},"other":{".write":true}}"#, server,
        data: #"{"n":0}"#)
      let allowed = try await withThrowingTaskGroup(of: Int.self) { group in
        for client in 0..<clients {
          group.addTask {
            var allowed = 0
            for number in 1...40 {
              if try await write("PUT", "n", "\(number)", server) == 204 { allowed += 1 }
              // This write changes nothing that the decisions depend on.
              #expect(try await write("PUT", "other/c\(client)", "\(number)", server) == 204)
            }
            return allowed
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(try await value("n", server) == "\(allowed)")
      if clients == 1 { #expect(allowed == 40) }
    }
  }

  @Test("Rules see resolved server values: the time of the decision, and the sum of an increment")
  func serverValues() async throws {
    try await RealtimeTestServer.run(staging: .backgroundDecisions) { server in
      try await setRules(
        #"{"t":{".write":"newData.val() == now"},"n":{".write":"newData.val() == data.val() + 2"}}"#, server,
        data: #"{"n":5}"#)
      for _ in 0..<3 {
        #expect(try await write("PUT", "t", #"{".sv":"timestamp"}"#, server) == 204)
        #expect(try await write("PUT", "n", #"{".sv":{"increment":2}}"#, server) == 204)
      }
      #expect(try await value("n", server) == "11")
    }
  }

  @Test(
    "A write is decided by the rules in force at its execution, even if earlier rules decided it before")
  func newRules() async throws {
    try await RealtimeTestServer.run(staging: .backgroundDecisions) { server in
      let rules = [
        #"{"a":{".write":"root.child('x').val() == null"}}"#,
        #"{"a":{".write":"root.child('x').val() == 1"}}"#,
      ]
      try await setRules(rules[0], server)
      for round in 1...20 {
        async let status = write("PUT", "a", "\(round)", server)
        async let change: Void = setRules(rules[round % 2], server)
        _ = try await (status, change)
        // Once the last rules are in force, only they decide.
        #expect(try await write("PUT", "a", "0", server) == (round % 2 == 0 ? 204 : 401))
      }
    }
  }

  // MARK: Bounds

  private func policy(_ rules: String) throws -> RealtimeRulesPolicy {
    RealtimeRulesPolicy(try RealtimeRuleset(Array(#"{"rules":\#(rules)}"#.utf8)))
  }

  private func rows() async throws -> any OrderedDatabase {
    try await MemoryStore(StoreOptions()).database(named: "decisions", history: .activeReadersOnly)
  }

  @Test(
    "If a batch has to decide a write itself and the decision exceeds a work limit, the write is unavailable",
    arguments: [true, false])
  func lastDecision(isLastAttempt: Bool) async throws {
    let policy = try policy(#"{".write":true,"t":{".validate":"newData.val().matches(/^a+b?$/)"}}"#)
    let executor = OperationExecutor(policies: PolicySlot(policy), limits: .standard, cacheBytes: 1 << 20)
    let rows = try await rows()
    func error(_ path: Path, _ text: String) async throws -> RealtimeError? {
      let write = RealtimeOperation.Action.write(.set(path, .leaf(.string(text))), hash: nil)
      var operation = RealtimeOperation(write, from: .call(.nobody) { _ in })
      if isLastAttempt { operation.results.backgroundDecisionCount = WriteDecision.maximumAttempts }
      let result = try await rows.execute(validating: nil) { [operation] writer in
        try executor.run([operation], in: writer, SessionJournal(), mayDefer: isLastAttempt)
      }.result
      #expect(result.executed.count == 1)
      for case .answer(_, .failure(let error)) in result.steps { return error }
      return nil
    }
    #expect(try await error("t", String(repeating: "a", count: 2 << 20)) == WriteDecision.undecided)
    #expect(try await error("t", "aab") == nil)
    #expect(try await error("t", "abb")?.status == .permissionDenied)
  }

  @Test(
    "A batch discards a background decision if checking that the decision still holds takes too long",
    arguments: [0, 2_000_000])
  func check(steps: Int) async throws {
    let policy = try policy(#"{"a":{".write":"root.child('n').val() == null"}}"#)
    var staging = StagingLimits.backgroundDecisions
    staging.maximumDecisionSteps = steps
    let executor = OperationExecutor(
      policies: PolicySlot(policy), limits: .standard, cacheBytes: 1 << 20, staging: staging)
    let rows = try await rows()
    let write = RealtimeWrite.set("a", .leaf(.int(1)))
    let decision = WriteDecision(
      request: try WriteRequest(write, limits: .standard, bytes: 1 << 20), operation: .write("a"),
      caller: .nobody, decisionCount: (0, 0))
    let changes = SequencedChanges()
    let decided = try await rows.read(at: nil) { try executor.decide(decision, in: $0, changes) {} }
    changes.invalidate("n")
    var operation = RealtimeOperation(.write(write, hash: nil), from: .call(.nobody) { _ in })
    operation.results.decision = .success(decided)
    let result = try await rows.execute(validating: nil) { [operation] writer in
      try executor.run([operation], in: writer, SessionJournal(), mayDefer: true)
    }.result
    #expect(result.executed.count == (steps == 0 ? 0 : 1))
  }

  @Test("A decision stays current after any number of changes that it does not depend on")
  func unrelatedChanges() throws {
    let request = try WriteRequest(.set("a/b", .leaf(.int(1))), limits: .standard, bytes: 1 << 20)
    let answers = RecordedAnswers(of: request, dependsOnReplacedData: true) {}
    let question = TreeQuestion(path: "users/u1", state: .before, fact: .content)
    try answers.record(question, .empty, isReplaced: false)
    let changes = SequencedChanges()
    changes.invalidate("users/u2")
    let decided = DecidedWrite(
      request: request, error: nil, caller: .nobody, policy: .init(), dependencies: answers.dependencies,
      changes: changes, decisionCount: 0)
    let others: [Path] = ["other", "users/u2", "users/u10/name", "a/c"]
    for number in 0..<250_000 { changes.invalidate(others[number % 4]) }
    #expect(decided.changedQuestions == [])
    for path: Path in ["users/u1/name", "users/u1", "users"] {
      changes.invalidate(path)
      #expect(decided.changedQuestions == [question])
    }
    changes.invalidate("a/b/c")
    #expect(decided.changedQuestions == nil)
  }

  @Test("A canary ruleset that decides slowly is compared in the background and changes no verdict")
  func canary() async throws {
    let reports = Guarded<[String]>([])
    var staging = StagingLimits()
    staging.decisionSteps = 3_000
    let store = try MemoryStore(StoreOptions())
    let engine = RealtimeEngine(
      store: store, policies: PolicyDirectory(default: OpenPolicy()),
      rules: { RealtimeRulesPolicy.policy(of: $0) }, staging: staging,
      report: { text in reports.withLock { $0.append(text) } })
    let database = try await engine.database("demo")
    func ruleset(_ rules: String) async throws -> String {
      try await database.addRuleset(
        try RulesFile(Array(#"{"rules":\#(rules)}"#.utf8)), as: .administrator)
    }
    let stable = try await ruleset(#"{".write":true}"#)
    let canary = try await ruleset(#"{".write":true,"t":{".validate":"newData.val().matches(/^a+b$/)"}}"#)
    _ = try await database.setRulesetLabels(
      RulesetLabels(stable: stable, canary: canary), as: .administrator)
    let text = String(repeating: "a", count: 100_000)
    _ = try await database.set("t", to: .leaf(.string(text + "b")), as: .nobody)
    #expect(reports.withLock { $0 } == [])
    _ = try await database.set("t", to: .leaf(.string(text)), as: .nobody)
    let found = reports.withLock { $0 }
    #expect(found.count == 1 && found[0].contains("would deny the write of /t"), "\(found)")
    await engine.shutdown()
    try await store.close()
  }

  @Test("The number of concurrent decisions of all namespaces is limited")
  func concurrency() async {
    let limit = ConcurrencyLimit(2)
    let state = Guarded((running: 0, maximum: 0, finished: 0))
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<50 {
        group.addTask {
          await limit.run {
            state.withLock {
              $0.running += 1
              $0.maximum = max($0.maximum, $0.running)
            }
            for _ in 0..<10 { await Task.yield() }
            state.withLock {
              $0.running -= 1
              $0.finished += 1
            }
          }
        }
      }
    }
    let (maximum, finished) = state.withLock { ($0.maximum, $0.finished) }
    #expect(maximum <= 2 && finished == 50)
  }

  @Test("The coverage report counts a write that is decided twice only once")
  func coverage() async throws {
    let rules = #"{"rules":{"a":{".write":"auth == null",".validate":"newData.val() > 0"}}}"#
    let policy = RealtimeRulesPolicy(try RealtimeRuleset(Array(rules.utf8)))
    let observer = RealtimeDecisionObserver(
      "demo", logs: DenialLogs(), recordsCoverage: true, now: { 1_700_000_000_000_000 })
    for staging in [StagingLimits.standard, .backgroundDecisions] {
      try await RealtimeTestServer.run(policy: policy, staging: staging, observer: observer) { server in
        // The first write to a database is decided before and after the database's rows are created.
        _ = try await server.rest("PUT", "/b.json?ns=demo", body: "1", headers: Self.owner)
        let status = try await write("PUT", "a", "1", server)
        #expect(status == 204)
      }
    }
    let report = try #require(policy.ruleset.coverage)
    func totals(_ node: CoverageReport.Node) -> [Int] {
      [node.values.total] + node.children.flatMap(totals)
    }
    let counts = report.roots.flatMap(totals)
    #expect(!counts.isEmpty && Set(counts) == [2])
  }
}
