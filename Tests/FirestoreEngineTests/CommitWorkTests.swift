// What one commit may cost the others: documents are checked once, whatever the number of writes, and what is gone over again
// for each write has a limit.

import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

/// Allows everything, once it was asked.
private struct AskedPolicy: AccessPolicy {
  let seen = Collected<[MapValue?]>()

  func decide(
    _ caller: Caller, _ operation: AccessOperation, before: StoredDocument?, after: StoredDocument?,
    view: any AccessView
  ) throws -> AccessDecision {
    seen.append([try before?.fields(), try after?.fields()])
    return .allowed
  }
}

@Suite("The work of a commit", .timeLimit(.minutes(5))) struct CommitWorkTests {
  private static let refusal =
    "The writes of the commit go over more than 1048576 bytes of documents, with 16 for each field or element that a "
    + "write goes over again. Split it into several commits."

  private func masked(_ name: DocumentName, _ field: String, _ value: Value?) -> Write {
    Write(
      .update(name, fields: value.map { [field: $0] } ?? [:]), mask: [FieldPath(field: field)])
  }

  @Test(
    "ten thousand writes of a field beside a long array do not go over the array", .timeLimit(.minutes(1)))
  func longArray() async throws {
    let fixture = try EngineFixture()
    let name = try fixture.name("c/d")
    let array = Value.array([Value](repeating: .null, count: 200_000))
    try await fixture.set("c/d", ["x": array])
    try await fixture.commit((0..<10_000).map { masked(name, "n", .integer($0)) })
    #expect(try await fixture.get("c/d") == ["n": 9_999, "x": array])
  }

  @Test("elements that transforms go over are counted, each time")
  func transforms() async throws {
    let fixture = try EngineFixture(commitWork: 1 << 20)
    let name = try fixture.name("c/d")
    try await fixture.set("c/d", ["x": .array((0..<2_000).map { .integer($0) })])
    func append(_ count: Int) -> [Write] {
      (0..<count).map { index in
        Write(
          .transform(
            name, [FieldTransform(FieldPath(field: "x"), .appendMissing([.integer(Int64(5_000 + index))]))]))
      }
    }
    #expect(await failure { try await fixture.commit(append(60)) } == .invalidArgument(Self.refusal))
    try await fixture.commit(append(20))
    guard case .array(let elements)? = try await fixture.get("c/d")?["x"] else {
      Issue.record("no array")
      return
    }
    #expect(elements.count == 2_020)
  }

  @Test("fields that masked writes copy are counted, each time")
  func fields() async throws {
    let fixture = try EngineFixture(commitWork: 1 << 20)
    let name = try fixture.name("c/d")
    try await fixture.set("c/d", MapValue((0..<1_000).map { ("f\($0)", Value.integer($0)) }))
    let writes = (0..<100).map { masked(name, "f1", .integer($0)) }
    #expect(await failure { try await fixture.commit(writes) } == .invalidArgument(Self.refusal))
    try await fixture.commit(Array(writes.prefix(30)))
    #expect(try await fixture.get("c/d")?["f1"] == 29)
  }

  @Test("documents that a commit only looks at are counted")
  func documents() async throws {
    let fixture = try EngineFixture(commitWork: 1 << 20)
    let bytes = Value.bytes([UInt8](repeating: 1, count: 50_000))
    let names = try (0..<30).map { try fixture.name(ResourcePath(["c", "d\($0)"])) }
    for name in names { try await fixture.commit([Write(.update(name, fields: ["x": bytes]))]) }
    let verifies = names.map { Write(.verify($0), precondition: .exists(true)) }
    #expect(await failure { try await fixture.commit(verifies) } == .invalidArgument(Self.refusal))
    try await fixture.commit(Array(verifies.prefix(15)))
  }

  @Test("a policy sees each write's document before and after, and what is made for it is counted")
  func steps() async throws {
    let policy = AskedPolicy()
    let store = try MemoryStore()
    let asking = try EngineFixture(store: store, policy: policy, commitWork: 1 << 20)
    let free = try EngineFixture(store: store, commitWork: 1 << 20)
    let name = try free.name("c/d")
    let text = Value.string(String(repeating: "x", count: 50_000))
    try await free.set("c/d", ["x": text])
    let writes = (0..<30).map { masked(name, "n", .integer($0)) }
    #expect(await failure { try await asking.commit(writes) } == .invalidArgument(Self.refusal))
    #expect(policy.seen.all.isEmpty)
    try await free.commit(writes)
    try await asking.commit([masked(name, "n", 1), masked(name, "n", 1), masked(name, "n", nil)])
    let (last, one, none): (MapValue, MapValue, MapValue) = (
      ["n": 29, "x": text], ["n": 1, "x": text], ["x": text]
    )
    #expect(policy.seen.all == [[last, one], [one, one], [one, none]])
  }

  @Test(
    "limits hold for what a commit makes of a document in the end, and the first write that fails is told of")
  func limits() async throws {
    let fixture = try EngineFixture()
    let name = try fixture.name("c/d")
    let text = Value.string(String(repeating: "x", count: 600_000))
    let grow = [masked(name, "a", text), masked(name, "b", text)]
    let other = Write(.update(try fixture.name("c/none"), fields: [:]), precondition: .exists(true))
    for writes in [grow, grow + [masked(name, "n", 1)], grow + [other]] {
      let refused = await failure { try await fixture.commit(writes) }
      #expect(refused?.code == .invalidArgument)
      #expect(refused?.message.hasPrefix("Document '\(name)' cannot be written because its size") == true)
    }
    #expect(await failure { try await fixture.commit([other] + grow) }?.code == .notFound)
    try await fixture.commit(grow + [masked(name, "a", nil)])
    #expect(try await fixture.get("c/d") == ["b": text])
    // Depth is what a path and a value have together.
    let path = try #require(FieldPath(segments: [String](repeating: "m", count: 21)))
    let deep = Write(.transform(name, [FieldTransform(path, .appendMissing([1]))]))
    #expect(await failure { try await fixture.commit([deep]) }?.message.contains("20 levels") == true)
  }
}
