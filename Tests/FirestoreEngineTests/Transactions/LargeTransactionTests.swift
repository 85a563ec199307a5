// Tests transactions over very many documents and ranges: their cost is proportional to the documents and ranges that
// they touch, and limits apply.

import Access
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Large transactions", .timeLimit(.minutes(10))) struct LargeTransactionTests {
  let fixture: EngineFixture

  init() throws { fixture = try EngineFixture(lockWait: 200_000_000) }

  private func names(_ range: Range<Int>) throws -> [DocumentName] {
    let collection = try fixture.collection("c")
    return range.map { collection.document("d\($0)") }
  }

  private func read(_ names: [DocumentName], _ token: [UInt8]) async throws -> Int {
    let count = Collected<Int>()
    try await fixture.engine.batchGetDocuments(
      in: fixture.database, names, consistency: .transaction(token), as: .administrator
    ) { page in count.append(page.items.count) }
    return count.all.reduce(0, +)
  }

  @Test(
    "two transactions of 100,000 reads with waiting writers and readers finish in seconds")
  func manyDocuments() async throws {
    let all = try names(0..<100_000)
    let first = try await fixture.begin()
    #expect(try await read(all, first) == all.count)
    // A write of one document waits. A retried transaction that reads all documents waits too, because it locks
    // exclusively.
    let write = Write(.update(all[99_999], fields: ["n": 1]))
    let outside = Task { [fixture] in try await fixture.commit([write]) }
    try await eventually("the write waits") { fixture.clock.sleepers >= 2 }
    let retry = try await fixture.begin(.readWrite(retrying: try await fixture.begin()))
    let retried = Task { try await self.read(all, retry) }
    try await eventually("the retry waits") { fixture.clock.sleepers >= 3 }
    #expect(try await read(all, first) == all.count)
    try await fixture.commit([Write(.update(all[0], fields: ["n": 2]))], transaction: first)
    #expect(try await retried.value == all.count)
    try await fixture.commit([Write(.update(all[1], fields: ["n": 3]))], transaction: retry)
    _ = try await outside.value
    #expect(try await fixture.get("c/d1") == ["n": 3])
  }

  @Test("the cost of a read or query does not grow with the number of earlier reads in its transaction")
  func constantCost() async throws {
    let token = try await fixture.begin()
    for index in 0..<3_000 {
      _ = try await fixture.get(ResourcePath(["c", "d\(index)"]), .transaction(token))
      let query = StructuredQuery(
        from: [.init("q")], filter: .field(FieldFilter(FieldPath(field: "n"), .equal, .integer(Int64(index))))
      )
      #expect(try await fixture.query(query, .transaction(token)).isEmpty)
    }
    // The transaction locks each document and range that it read, and nothing else: a write of `n` = 3,000
    // succeeds, and a write into the last range waits.
    try await fixture.set("q/free", ["n": 3_000])
    let phantom = Task { [fixture] in await failure { try await fixture.set("q/held", ["n": 2_999]) } }
    try await eventually("the phantom waits") { fixture.clock.sleepers >= 2 }
    try await fixture.commit([Write(.update(try fixture.name("r/result"), fields: [:]))], transaction: token)
    #expect(await phantom.value == nil)
  }

  @Test("a transaction above the read limit is rejected; other transactions continue")
  func limit() async throws {
    let token = try await fixture.begin()
    let names = try names(0..<EngineLimits.maximumBatchGetNames)
    #expect(try await read(names, token) == names.count)
    #expect(try await read(try self.names(100_000..<200_000), token) == 100_000)
    let rejection = await failure { try await read(try self.names(200_000..<300_000), token) }
    #expect(rejection == .invalidArgument("Transaction too big. Decrease transaction size."))
    // Repeated reads of one document count once.
    for _ in 0..<10 { _ = try await fixture.get("c/d1", .transaction(token)) }
    let other = try await fixture.begin()
    #expect(try await read(Array(names.prefix(10)), other) == 10)
    try await fixture.commit([], transaction: token)
    try await fixture.commit([Write(.update(names[0], fields: [:]))], transaction: other)
  }

  @Test("repeated names in a batch count once; one distinct name more than the limit is rejected")
  func repeatedNames() async throws {
    let any = [try fixture.name("c/d")]
    let many = [[DocumentName]](repeating: any, count: EngineLimits.maximumBatchGetNames + 1).flatMap { $0 }
    let token = try await fixture.begin()
    #expect(try await read(many, token) == 1)
    let rejection = await failure {
      try await read(try names(0..<EngineLimits.maximumBatchGetNames + 1), token)
    }
    #expect(rejection == .invalidArgument("At most 100000 documents can be read at once."))
  }

  @Test("each page of a query counts its reads against the limit; a read-only transaction records no reads")
  func queries() async throws {
    let writes = try names(0..<20).map { Write(.update($0, fields: ["n": 1])) }
    try await fixture.commit(writes)
    let database = try await fixture.engine.database(fixture.database)
    // The query uses an index, so it reads document rows in addition to the range.
    let query = StructuredQuery(from: [.init("c")], orderBy: [.init(FieldPath(field: "n"))])
    func count(_ token: [UInt8]) async throws -> Value? {
      try await fixture.engine.runAggregationQuery(
        AggregationQuery(query, [.init("all", .count(upTo: nil))]), under: fixture.root,
        consistency: .transaction(token), as: .administrator
      ).fields["all"]
    }
    let token = try await fixture.begin()
    let owner = try database.transactions.beginRequest(token, toCommit: false, as: .administrator).owner
    func read(_ range: Range<Int>) throws {
      let keys = range.map { number in withUnsafeBytes(of: UInt32(number).bigEndian) { [0xFF] + Key($0) } }
      try database.transactions.add(
        owner, ReadSet(version: database.rows.latestVersion, keys: keys))
    }
    try read(0..<EngineLimits.maximumTransactionReads - 60)
    #expect(try await count(token) == 20)
    try read(EngineLimits.maximumTransactionReads - 60..<EngineLimits.maximumTransactionReads - 30)
    let tooBig = FirestoreError.invalidArgument("Transaction too big. Decrease transaction size.")
    #expect(await failure { try await count(token) } == tooBig)
    database.transactions.endRequest(owner)

    var session = try await database.beginRead(.newTransaction(.readOnly()), [], as: .administrator)
    let prepared = try PreparedQuery(Query(parent: fixture.root, query), .standard)
    let (begun, ranges) = try await database.begin(prepared, &session)
    let name = fixture.database
    let (found, keys) = try await database.rows.read(at: session.version) { view in
      var run = begun
      return (try run.nextPage(view, name).documents.count, run.takeKeys())
    }
    #expect(found == 20 && keys.isEmpty && ranges.isEmpty)
    database.endRead(session)
  }
}
