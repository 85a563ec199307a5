// Tests the permissions for transactions: the policy decides about each step, and a token is valid only for its caller.

import Access
import FirestoreModel
import JSON
import OrderedStore
import Testing

@testable import FirestoreEngine

/// Allows all reads and writes, and denies transactions to one caller.
private struct DenyTransactionsPolicy: AccessPolicy {
  let deniedCaller: Principal

  func decide(
    _ principal: Principal, _ operation: FirestoreOperation, view: any DocumentView
  ) -> FirestoreDecision {
    if case .transaction = operation, principal == deniedCaller { return .deny(reason: "denied caller") }
    return .allowed
  }
}

@Suite("Transaction permissions", .timeLimit(.minutes(10))) struct TransactionAccessTests {
  private let alice = Principal.user("alice", claims: ["iat": .int(1)])
  private let bob = Principal.user("bob", claims: ["iat": .int(1)])
  private static let invalid = FirestoreError.invalidArgument("Invalid transaction.")

  private func read(_ fixture: EngineFixture, _ token: [UInt8], _ caller: Principal) async -> FirestoreError?
  {
    await failure {
      try await fixture.engine.batchGetDocuments(
        in: fixture.database, [try fixture.name("c/d")], consistency: .transaction(token), as: caller
      ) { _ in }
    }
  }

  @Test("a transaction token is invalid for other callers, in every request and every state")
  func tokensAreBound() async throws {
    let fixture = try EngineFixture()
    let engine = fixture.engine
    let database = fixture.database
    let token = try await engine.beginTransaction(in: database, .readWrite(), as: alice)
    for other in [bob, .nobody, .administrator] {
      #expect(await read(fixture, token, other) == Self.invalid)
      #expect(
        await failure {
          try await engine.runQuery(
            Query(parent: fixture.root, StructuredQuery(from: [.init("c")])),
            consistency: .transaction(token),
            as: other
          ) { _ in }
        } == Self.invalid)
      #expect(
        await failure { try await engine.commit(in: database, [], transaction: token, as: other) }
          == Self.invalid)
      #expect(
        await failure { try await engine.rollback(in: database, transaction: token, as: other) }
          == Self.invalid)
      #expect(
        await failure {
          try await engine.beginTransaction(in: database, .readWrite(retrying: token), as: other)
        } == Self.invalid)
    }
    // The same user continues with a refreshed ID token.
    let refreshed = Principal.user("alice", claims: ["iat": .int(2)])
    #expect(await read(fixture, token, refreshed) == nil)
    _ = try await engine.commit(in: database, [], transaction: token, as: refreshed)
    #expect(
      await failure { try await engine.commit(in: database, [], transaction: token, as: bob) } == Self.invalid
    )
    #expect(
      await failure { try await engine.commit(in: database, [], transaction: token, as: alice) }?.code
        == .invalidArgument)
  }

  @Test("user ids in different Unicode normalization forms are different users")
  func normalizationForms() async throws {
    let fixture = try EngineFixture()
    let token = try await fixture.engine.beginTransaction(
      in: fixture.database, .readWrite(), as: Principal.user("\u{E9}"))
    #expect(await read(fixture, token, Principal.user("e\u{301}")) == Self.invalid)
  }

  @Test("the policy decides about the begin, the empty commit and the rollback of a transaction")
  func everyStepIsDecided() async throws {
    let fixture = try EngineFixture(policy: DenyTransactionsPolicy(deniedCaller: bob))
    let engine = fixture.engine
    let database = fixture.database
    let denied = FirestoreError.permissionDenied("Missing or insufficient permissions.")
    #expect(
      await failure { try await engine.beginTransaction(in: database, .readWrite(), as: bob) } == denied)
    #expect(
      await failure {
        try await engine.batchGetDocuments(
          in: database, [], consistency: .newTransaction(.readOnly()), as: bob
        ) { _ in }
      } == denied)
    #expect(await failure { try await engine.commit(in: database, [], as: bob) } == denied)
    let token = try await engine.beginTransaction(in: database, .readWrite(), as: alice)
    #expect(
      await failure { try await engine.commit(in: database, [], transaction: token, as: bob) } == denied)
    #expect(await failure { try await engine.rollback(in: database, transaction: token, as: bob) } == denied)
    try await engine.rollback(in: database, transaction: token, as: alice)
  }

  @Test("production mode without rules answers unauthenticated transaction requests with UNAUTHENTICATED")
  func unauthenticated() async throws {
    let fixture = try EngineFixture(policy: LockedPolicy())
    let engine = fixture.engine
    let token = try await fixture.begin()
    let operations: [@Sendable () async throws -> Void] = [
      { _ = try await engine.beginTransaction(in: fixture.database, .readWrite(), as: .nobody) },
      { _ = try await engine.commit(in: fixture.database, [], as: .nobody) },
      { _ = try await engine.commit(in: fixture.database, [], transaction: token, as: .nobody) },
      { try await engine.rollback(in: fixture.database, transaction: token, as: .nobody) },
    ]
    for operation in operations { #expect(await failure(operation)?.code == .unauthenticated) }
    try await fixture.commit([], transaction: token)
  }

  @Test("a rejected read leaves no open transaction")
  func rejectedReadEndsTransaction() async throws {
    let fixture = try EngineFixture()
    let database = try await fixture.engine.database(fixture.database)
    let invalidQuery = StructuredQuery(from: [.init("c")], limit: -1)
    for _ in 0..<3 {
      _ = await failure {
        try await fixture.engine.runQuery(
          Query(parent: fixture.root, invalidQuery), consistency: .newTransaction(.readWrite()),
          as: .administrator
        ) { _ in }
      }
      _ = await failure {
        try await fixture.engine.batchGetDocuments(
          in: fixture.database, [try fixture.name("c/d")], consistency: .newTransaction(.readWrite()),
          as: .administrator
        ) { _ in throw CancellationError() }
      }
    }
    #expect(database.transactions.openCount == 0)
  }
}
