// Reads of the newest state while the sequencer, or the thread that publishes, is held up: they do not wait for it.

import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Reads beside a long write", .timeLimit(.minutes(1))) struct RecentVersionTests {
  @Test(
    "a read sees what was acknowledged though nothing can be sequenced, and later ones are of their time again",
    arguments: [false, true])
  func held(isPublishing: Bool) async throws {
    let now = Guarded<UInt64>(1_700_000_000_000_000)
    let clock = StoreClock { now.withLock { $0 } }
    let fixture = try EngineFixture(store: try MemoryStore(StoreOptions(clock: clock)))
    try await fixture.set("c/d", ["n": 1])
    let acknowledged = try #require(try await fixture.set("c/d", ["n": 2]).commitTime)
    let rows = try await fixture.engine.database(fixture.database).rows
    let gate = Guarded((isHeld: false, isOpen: false))
    let hold: @Sendable () -> Void = {
      gate.withLock { $0.isHeld = true }
      gate.wait { $0.isOpen ? () : nil }
    }
    let subscription = isPublishing ? rows.follow { _ in hold() } : nil
    let writing = Task { [fixture] in
      if isPublishing {
        try await fixture.set("c/other", [:])
      } else {
        _ = try await rows.execute(validating: nil) { _ in hold() }
      }
    }
    try await eventually("the store is held up") { gate.withLock { $0.isHeld } }
    // Long enough for a new version, and for history to hold on to this one.
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
    let silent = Version(microseconds: now.withLock { $0 }).timestamp
    try await eventually("reads are of their time") {
      let read = try await fixture.engine.getDocument(try fixture.name("c/d"), as: .administrator)
      return read.readTime >= silent
    }
    #expect(try await fixture.get("c/d", .readTime(last)) == ["n": 2])
  }
}
