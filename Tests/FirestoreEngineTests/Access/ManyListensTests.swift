// Tests with ten thousand open listens whose policy is replaced: no later change reaches a listen that lost its
// permission, and writes do not wait for the policy's decisions about the listens.

import Access
import AccessFixture
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Many open listens", .timeLimit(.minutes(10))) struct ManyListensTests {
  /// Counts the responses of many streams, without storing them.
  private final class Tally: WatchOutput {
    struct Counts: Sendable {
      var current = 0
      var removed = 0
      var failed = 0
      var secrets = 0
      var others = 0
    }

    let counts = Guarded(Counts())

    func send(_ responses: [WatchResponse]) async throws {
      counts.withLock { counts in
        for response in responses {
          switch response {
          case .targetChange(let change) where change.kind == .current: counts.current += 1
          case .targetChange(let change) where change.kind == .remove: counts.removed += 1
          case .documentChange(let document, _, _):
            if document.name.id == "later" { counts.secrets += 1 } else { counts.others += 1 }
          default: break
          }
        }
      }
    }

    func fail(_ error: FirestoreError) async { counts.withLock { $0.failed += 1 } }
  }

  private static let count = 10_000

  /// Opens a stream with one target for each caller.
  private func open(
    _ fixture: EngineFixture, _ output: Tally, _ caller: (Int) -> Principal
  ) async throws -> [WatchStream] {
    var streams: [WatchStream] = []
    for number in 0..<Self.count {
      let stream = try await fixture.watch(output, as: caller(number))
      stream.addTarget(WatchTarget(id: 2, fixture.selection(StructuredQuery(from: [.init("c")]))))
      streams.append(stream)
    }
    try await eventually("the targets are current") { output.counts.withLock { $0.current } == Self.count }
    return streams
  }

  @Test("no change after a replaced policy reaches the listens that it denies")
  func replacedPolicy() async throws {
    let fixture = try EngineFixture()
    let denied = Tally()
    let allowed = Tally()
    let streams = try await open(fixture, denied) { _ in .nobody }
    let kept = try await fixture.watch(allowed, as: .user("u"))
    kept.addTarget(WatchTarget(id: 2, fixture.selection(StructuredQuery(from: [.init("c")]))))
    try await eventually("the target is current") { allowed.counts.withLock { $0.current } == 1 }
    fixture.engine.policies.publish(
      TestPolicy { principal, _, _ in principal.user == nil ? .deny(reason: "nobody") : .allowed },
      for: fixture.database)
    // The write completes while the policy has not decided about most listens yet.
    try await fixture.set("c/later", [:])
    try await eventually("the allowed listen receives the change") {
      allowed.counts.withLock { $0.secrets } == 1
    }
    try await eventually("the denied targets are removed") {
      denied.counts.withLock { $0.removed } == Self.count
    }
    #expect(denied.counts.withLock { $0.secrets } == 0)
    for stream in streams + [kept] { stream.close() }
  }

  @Test("no change after the expiry of credentials reaches their listens")
  func expiry() async throws {
    let fixture = try EngineFixture()
    let output = Tally()
    let expiry = fixture.clock.wallTime() / 1_000_000 + 5
    _ = try await open(fixture, output) { number in
      Principal(.user(User(id: "u\(number)", claims: .none)), expiry: expiry)
    }
    fixture.clock.advance(by: 6_000_000)
    try await fixture.set("c/later", [:])
    try await eventually("the streams end") { output.counts.withLock { $0.failed } == Self.count }
    #expect(output.counts.withLock { $0.secrets } == 0)
  }

  @Test("after a document that permits listens is deleted, no change reaches these listens")
  func dependency() async throws {
    let policy = TestPolicy { _, _, view in
      guard let flag = DocumentName(database: DatabaseName(project: "demo"), path: "flags/open") else {
        return .deny(reason: "no flag")
      }
      return try view.exists(flag) ? .allow(dependingOn: [flag]) : .deny(reason: "closed")
    }
    let fixture = try EngineFixture(policy: policy)
    try await fixture.set("flags/open", [:])
    let output = Tally()
    let streams = try await open(fixture, output) { _ in .nobody }
    try await fixture.delete("flags/open")
    try await fixture.set("c/later", [:])
    try await eventually("the targets are removed") { output.counts.withLock { $0.removed } == Self.count }
    #expect(output.counts.withLock { $0.secrets } == 0)
    for stream in streams { stream.close() }
  }

  @Test("a changed document on which the targets of a stream depend is read once for all these targets")
  func sharedRead() async throws {
    let count = 10
    let policy = TestPolicy { _, operation, view in
      guard case .list = operation else { return .allowed }
      guard let flag = DocumentName(database: DatabaseName(project: "demo"), path: "flags/open"),
        try view.document(flag) != nil
      else { return .deny(reason: "closed") }
      return .allow(dependingOn: [flag])
    }
    let store = CountingStore(try MemoryStore())
    let fixture = try EngineFixture(store: store, policy: policy)
    try await fixture.set("flags/open", ["n": 1])
    let output = Tally()
    let stream = try await fixture.watch(output, as: .nobody)
    for id in 1...count {
      let query = StructuredQuery(from: [.init("c\(id)")])
      stream.addTarget(WatchTarget(id: Int32(id), fixture.selection(query)))
    }
    try await eventually("the targets are current") { output.counts.withLock { $0.current } == count }
    policy.operations.withLock { $0 = [] }
    _ = store.takeCount()
    try await fixture.set("flags/open", ["n": 2])
    try await eventually("the targets are decided again") {
      policy.operations.withLock { $0.count { if case .list = $0 { true } else { false } } } == count
    }
    // The commit reads the document too.
    #expect(store.takeCount() < count / 2)
    #expect(output.counts.withLock { $0.removed } == 0)
    stream.close()
  }

  /// Accepts responses until a target is removed; then it blocks, like the output of a client that does not read.
  private final class UnreadOutput: WatchOutput {
    let isCurrent = Guarded(false)
    let isWaiting = Guarded(false)

    func send(_ responses: [WatchResponse]) async throws {
      for case .targetChange(let change) in responses {
        if change.kind == .current { isCurrent.withLock { $0 = true } }
        guard change.kind == .remove else { continue }
        isWaiting.withLock { $0 = true }
        try await Task.sleep(for: .seconds(3600))
      }
    }

    func fail(_ error: FirestoreError) async {}
  }

  @Test("clients that do not read do not delay the decisions about other listens")
  func unreadResponses() async throws {
    let fixture = try EngineFixture()
    let selection = fixture.selection(StructuredQuery(from: [.init("c")]))
    let outputs = (0..<4 * WakeQueue.concurrency).map { _ in UnreadOutput() }
    var streams: [WatchStream] = []
    for output in outputs {
      let stream = try await fixture.watch(output, as: .nobody)
      stream.addTarget(WatchTarget(id: 2, selection))
      streams.append(stream)
    }
    try await eventually("the targets are current") { outputs.allSatisfy { $0.isCurrent.withLock { $0 } } }
    let others = Tally()
    for _ in 0..<4 * WakeQueue.concurrency {
      let stream = try await fixture.watch(others, as: .nobody)
      stream.addTarget(WatchTarget(id: 2, selection))
      streams.append(stream)
    }
    try await eventually("the targets are current") {
      others.counts.withLock { $0.current } == 4 * WakeQueue.concurrency
    }
    fixture.engine.policies.publish(TestPolicy { _, _, _ in .deny(reason: "nobody") }, for: fixture.database)
    try await eventually("all targets are removed") {
      others.counts.withLock { $0.removed } == 4 * WakeQueue.concurrency
        && outputs.allSatisfy { $0.isWaiting.withLock { $0 } }
    }
    for stream in streams { stream.close() }
  }
}
