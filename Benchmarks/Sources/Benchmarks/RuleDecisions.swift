// Decisions of Firestore rules alone, and the time of commits while other writes use up the budget of a decision.

import FirestoreModel
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import SecurityRules

/// Decisions per second on one thread, each about the creation of an item with the fields of the benchmark's documents.
func ruleDecisions(_ rules: BenchmarkRules, _ setting: Setting) throws -> Double {
  let ruleset = try FirestoreRuleset(compiling: rules.text)
  let caller = RuleCaller(uid: "user-1", claims: ["member": .boolean(true)])
  let context = FirestoreRuleset.Context(
    database: "(default)", caller: caller, time: Timestamp(microseconds: 1_700_000_000_000_000),
    documents: NoDocuments())
  let change = RuleChange(
    path: ResourcePath(["items", "i1"]), method: .create, before: nil,
    after: [
      "title": "Item number 1 of the benchmark's collection", "owner": "user-1", "state": "open", "rank": 1,
      "price": 1.25, "done": false, "group": 1,
      "note": "A sentence that stands for what people write into a task's note field.",
    ])
  guard ruleset.decideChanges([change], context).isAllowed else {
    throw BenchmarkFailure("the rules '\(rules)' deny the item")
  }
  var count = 0
  let start = ContinuousClock.now
  while (ContinuousClock.now - start).seconds < setting.seconds {
    for _ in 0..<100 where ruleset.decideChanges([change], context).isAllowed { count += 1 }
  }
  return Double(count) / (ContinuousClock.now - start).seconds
}

/// A source without documents.
private struct NoDocuments: RuleDocumentSource {
  func fields(of path: ResourcePath, afterWrites: Bool) -> MapValue? { nil }
}

/// The median and the 99th percentile of the time of durable commits in microseconds, while another client writes without
/// a pause. Each of its writes uses up the budget of a decision, or is allowed at once.
func commitTimesDuringWrites(_ setting: Setting, exhaustsBudget: Bool) async throws -> [Double] {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try BenchmarkRules.exhausting.serve(directory, setting, isEmulator: false)
  defer { server.stop() }
  let writer = try await GRPCConnection.connect(port: server.port, on: setting.group)
  let body = framed(
    try BenchmarkDocument.commit(id: "other", seed: 1, collection: exhaustsBudget ? "attacks" : "items"))
  let isStopped = NIOLockedValueBox(false)
  let answers = SharedCounter()
  @Sendable func next() {
    guard !isStopped.withLockedValue({ $0 }) else { return }
    writer.call(path: "/google.firestore.v1.Firestore/Commit", body: body).whenSuccess { answer in
      // PERMISSION_DENIED for a decision that uses up its budget.
      guard answer.status == (exhaustsBudget ? 7 : 0) else { return }
      answers.add()
      next()
    }
  }
  next()
  let times = try await SteadyCommits.times(server, setting, seconds: setting.seconds)
  isStopped.withLockedValue { $0 = true }
  await writer.close()
  guard answers.value > 10 else { throw BenchmarkFailure("only \(answers.value) other writes were answered") }
  return [percentile(times, 0.5), percentile(times, 0.99)]
}
