// Tests that a rejected commit ends its transaction and releases the transaction's locks.

import Access
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

/// Writes whose commit fails.
struct InvalidWrites: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let code: StatusCode
  let writes: @Sendable (EngineFixture) throws -> [Write]

  private init(
    _ description: String, _ code: StatusCode = .invalidArgument,
    writes: @escaping @Sendable (EngineFixture) throws -> [Write]
  ) {
    testDescription = description
    self.code = code
    self.writes = writes
  }

  private init(_ description: String, fields: MapValue) {
    self.init(description) { [Write(.update(try $0.name("c/x"), fields: fields))] }
  }

  private static func nested(_ levels: Int) -> Value {
    (0..<levels).reduce(.integer(1)) { value, _ in .map(["m": value]) }
  }

  static let reservedField = InvalidWrites("a reserved field", fields: ["__a__": 1])

  static let all: [InvalidWrites] = [
    InvalidWrites(
      "a document beyond 1 MiB",
      fields: [
        "a": .string(String(repeating: "x", count: 600_000)),
        "b": .string(String(repeating: "x", count: 600_000)),
      ]),
    InvalidWrites(
      "a value that is too long", fields: ["a": .string(String(repeating: "x", count: 1_048_488))]),
    reservedField,
    InvalidWrites("an array in an array", fields: ["a": .array([.array([.integer(1)])])]),
    InvalidWrites("21 levels", fields: ["a": nested(21)]),
    InvalidWrites("a reserved field in a mask") {
      [Write(.update(try $0.name("c/x"), fields: [:]), mask: [FieldPath(field: "__a__")])]
    },
    InvalidWrites("another database") { _ in
      let other = DatabaseName(project: "demo", database: "other")
      return [Write(.update(try #require(DocumentName(database: other, path: "c/x")), fields: [:]))]
    },
    InvalidWrites("501 transforms") { fixture in
      let transforms = (0..<501).map { FieldTransform(FieldPath(field: "f\($0)"), .increment(1)) }
      return [Write(.update(try fixture.name("c/x"), fields: [:]), mask: [], transforms: transforms)]
    },
    InvalidWrites("no document to update", .notFound) {
      [Write(.update(try $0.name("c/x"), fields: [:]), precondition: .exists(true))]
    },
  ]
}

@Suite("Rejected commits", .timeLimit(.minutes(5))) struct RejectedCommitTests {
  @Test(
    "a rejected commit ends its transaction and releases its locks", arguments: InvalidWrites.all)
  func endsTransaction(invalidWrites: InvalidWrites) async throws {
    let fixture = try EngineFixture()
    try await fixture.set("c/a", ["n": 1])
    let token = try await fixture.begin()
    #expect(try await fixture.get("c/a", .transaction(token)) == ["n": 1])
    let writes = try invalidWrites.writes(fixture)
    #expect(
      await failure { try await fixture.commit(writes, transaction: token) }?.code == invalidWrites.code)
    let database = try await fixture.engine.database(fixture.database)
    try #require(database.transactions.openCount == 0)
    // The test clock never advances, so a wait for a lock would never end.
    try await fixture.set("c/a", ["n": 2])
    let expired = FirestoreError.invalidArgument(TransactionTable.expiredMessage)
    #expect(await failure { try await fixture.get("c/a", .transaction(token)) } == expired)
    #expect(await failure { try await fixture.commit([], transaction: token) } == expired)
    try await fixture.engine.rollback(in: fixture.database, transaction: token, as: .administrator)
  }

  @Test("a rejected commit ends only the caller's own transaction in the same database")
  func endsOnlyOwnTransaction() async throws {
    let fixture = try EngineFixture()
    let engine = fixture.engine
    let alice = Principal.user("alice")
    let token = try await engine.beginTransaction(in: fixture.database, .readWrite(), as: alice)
    let other = DatabaseName(project: "demo", database: "other")
    try await engine.createDatabase(other)
    let writes = try InvalidWrites.reservedField.writes(fixture)
    var tampered = token
    tampered[12] ^= 1
    let attempts: [(DatabaseName, [UInt8], Principal)] = [
      (fixture.database, token, Principal.user("bob")), (fixture.database, token, .nobody),
      (fixture.database, token, .administrator), (other, token, alice), (fixture.database, [1, 2, 3], alice),
      (fixture.database, tampered, alice),
    ]
    for (name, token, caller) in attempts {
      let rejection = await failure {
        try await engine.commit(in: name, writes, transaction: token, as: caller)
      }
      #expect(rejection?.code == .invalidArgument)
      engine.failTransaction(token, in: name, as: caller)
    }
    let write = Write(.update(try fixture.name("c/a"), fields: ["n": 1]))
    _ = try await engine.commit(in: fixture.database, [write], transaction: token, as: alice)
    #expect(try await fixture.get("c/a") == ["n": 1])
    // A committed transaction stays committed.
    engine.failTransaction(token, in: fixture.database, as: alice)
    #expect(
      await failure { try await engine.commit(in: fixture.database, [], transaction: token, as: alice) }?.code
        == .invalidArgument)
  }
}
