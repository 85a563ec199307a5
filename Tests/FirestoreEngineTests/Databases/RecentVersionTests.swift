// Tests reads of the latest state while the sequencer (which runs one commit at a time) or the publishing thread (which
// makes durable commits visible) is blocked: the reads do not wait.

import Access
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Reads during a blocked write", .timeLimit(.minutes(1))) struct RecentVersionTests {
  @Test(
    "reads return acknowledged data while the sequencer is blocked, and read times become current afterwards",
    arguments: [false, true])
  func readsWhileBlocked(blocksPublishing: Bool) async throws {
    let now = Guarded<UInt64>(1_700_000_000_000_000)
    let clock = StoreClock { now.withLock { $0 } }
    let fixture = try EngineFixture(store: try MemoryStore(StoreOptions(clock: clock)))
    try await fixture.set("c/d", ["n": 1])
    let acknowledged = try #require(try await fixture.set("c/d", ["n": 2]).commitTime)
    let rows = try await fixture.engine.database(fixture.database).rows
    let gate = Guarded((isHeld: false, isOpen: false))
    let block: @Sendable () -> Void = {
      gate.withLock { $0.isHeld = true }
      gate.wait { $0.isOpen ? () : nil }
    }
    let subscription = blocksPublishing ? rows.follow { _ in block() } : nil
    let writing = Task { [fixture] in
      if blocksPublishing {
        try await fixture.set("c/other", [:])
      } else {
        _ = try await rows.execute(validating: nil) { _ in block() }
      }
    }
    try await eventually("the store is blocked") { gate.withLock { $0.isHeld } }
    // After a minute, a read would normally get a newer read time, but the blocked store cannot publish one. The
    // history must still keep the version that the reads use.
    now.withLock { $0 += 60_000_000 }
    var last = acknowledged
    for _ in 0..<3 {
      let read = try await fixture.engine.getDocument(try fixture.name("c/d"), as: .administrator)
      #expect(try read.document.fields() == ["n": 2])
      #expect(read.readTime >= last)
      last = read.readTime
      #expect(try await fixture.query(StructuredQuery(from: [.init("c")])).first?.fields() == ["n": 2])
    }
    let token = try await fixture.begin(.readOnly())
    #expect(try await fixture.get("c/d", .transaction(token)) == ["n": 2])
    gate.withLock { $0.isOpen = true }
    gate.broadcast()
    _ = try await writing.value
    subscription?.cancel()
    let resumed = Version(microseconds: now.withLock { $0 }).timestamp
    try await eventually("read times are current") {
      let read = try await fixture.engine.getDocument(try fixture.name("c/d"), as: .administrator)
      return read.readTime >= resumed
    }
    #expect(try await fixture.get("c/d", .readTime(last)) == ["n": 2])
  }
}
