// Tests of clearing a database while transactions are open, and of clears that need several commits.

import Access
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Clearing", .timeLimit(.minutes(5))) struct ClearingTests {
  @Test(
    "a transaction that reads before and after its database is cleared does not commit",
    arguments: [TransactionOptions.readWrite(), .readWrite(concurrency: .optimistic)])
  func transactionDoesNotCommit(options: TransactionOptions) async throws {
    let fixture = try EngineFixture()
    try await fixture.set("c/a", ["n": 1])
    try await fixture.set("c/b", ["n": 1])
    let token = try await fixture.begin(options)
    let bystander = try await fixture.begin(.readOnly())
    #expect(try await fixture.get("c/a", .transaction(token)) == ["n": 1])
    #expect(try await fixture.get("c/a", .transaction(bystander)) == ["n": 1])
    // The test clock never advances, so a wait for a lock would never end.
    try await fixture.engine.clear(fixture.database, as: .administrator)
    #expect(try await fixture.get("c/b") == nil)
    // The open transactions keep their snapshots.
    #expect(try await fixture.get("c/b", .transaction(token)) == ["n": 1])
    #expect(try await fixture.get("c/b", .transaction(bystander)) == ["n": 1])
    let sum = Write(.update(try fixture.name("c/sum"), fields: ["n": 2]))
    #expect(await failure { try await fixture.commit([sum], transaction: token) }?.code == .aborted)
    #expect(try await fixture.get("c/sum") == nil)
    // A new transaction can begin, and locks its reads.
    let next = try await fixture.begin()
    #expect(try await fixture.get("c/a", .transaction(next)) == nil)
    try await fixture.commit([sum], transaction: next)
    #expect(try await fixture.get("c/sum") == ["n": 2])
    let database = try await fixture.engine.database(fixture.database)
    #expect(database.locks.state.withLock { $0.owned.isEmpty && $0.footprints.isEmpty })
  }

  @Test("clearing deletes documents with many index entries in several commits")
  func manyEntries() async throws {
    let fixture = try EngineFixture()
    let long = String(repeating: "x", count: 1_150)
    let numbers = Value.array((0..<2_300).map { .integer($0) })
    // A document has about 10 KB, and its index entry keys about 8 MB.
    for id in 0..<12 { try await fixture.set(ResourcePath([long, long, long, "d\(id)"]), ["n": numbers]) }
    try await fixture.set("c/a", ["n": 1])
    let token = try await fixture.begin()
    #expect(try await fixture.get("c/a", .transaction(token)) == ["n": 1])
    let entries = try await fixture.check().automaticEntries
    #expect(entries == 12 * 2_301 + 1)
    try await fixture.engine.clear(fixture.database, as: .administrator)
    let report = try await fixture.check()
    #expect(report == ConsistencyReport())
    let late = Write(.update(try fixture.name("c/a"), fields: ["n": 2]))
    #expect(await failure { try await fixture.commit([late], transaction: token) }?.code == .aborted)
    try await fixture.commit([late])
  }

  @Test("clearing releases the locks of a transaction, and a read that waits for them continues")
  func releasesLocks() async throws {
    let fixture = try EngineFixture()
    try await fixture.set("c/a", ["n": 1])
    let holder = try await fixture.begin(.readWrite(retrying: try await fixture.begin()))
    #expect(try await fixture.get("c/a", .transaction(holder)) == ["n": 1])
    let token = try await fixture.begin()
    let waiting = Task { try await fixture.get("c/a", .transaction(token)) }
    let locks = try await fixture.engine.database(fixture.database).locks
    try await eventually("the read waits") { locks.state.withLock { !$0.waiters.isEmpty } }
    try await fixture.engine.clear(fixture.database, as: .administrator)
    #expect(try await waiting.value == nil)
    try await fixture.commit([Write(.update(try fixture.name("c/a"), fields: [:]))], transaction: token)
    let late = Write(.update(try fixture.name("c/late"), fields: [:]))
    #expect(await failure { try await fixture.commit([late], transaction: holder) }?.code == .aborted)
  }
}
