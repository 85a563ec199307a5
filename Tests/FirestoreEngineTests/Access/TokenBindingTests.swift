// Tests that page tokens and transaction tokens are valid only for the caller and the database that they were issued
// to.

import Access
import AccessFixture
import FirestoreModel
import JSON
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Tokens of callers", .timeLimit(.minutes(5))) struct TokenBindingTests {
  private func listRequest(_ fixture: EngineFixture, _ token: String = "") -> ListDocumentsRequest {
    ListDocumentsRequest(
      parent: fixture.root, collectionID: "c", pageSize: 1, pageToken: token, orderBy: "n")
  }

  private func filledFixture() async throws -> EngineFixture {
    let fixture = try EngineFixture()
    for number in 0..<3 {
      try await fixture.set(ResourcePath(["c", "d\(number)"]), ["n": .integer(Int64(number))])
    }
    return fixture
  }

  @Test("a page token is valid only for the caller that received it")
  func pageTokens() async throws {
    let fixture = try await filledFixture()
    let alice = Principal.user("alice")
    let token = try await fixture.engine.listDocuments(listRequest(fixture), as: alice).nextPageToken
    #expect(!token.isEmpty)
    let tenant = Principal(.user(User(id: "alice", tenant: "t", claims: .none)))
    for other in [Principal.user("bob"), .nobody, .administrator, tenant] {
      let error = await failure {
        try await fixture.engine.listDocuments(listRequest(fixture, token), as: other)
      }
      #expect(error == .invalidArgument("The page token is not valid."))
    }
    let refreshed = Principal.user("alice", claims: ["iat": .int(2)])
    let next = try await fixture.engine.listDocuments(listRequest(fixture, token), as: refreshed)
    #expect(next.documents.count == 1)
  }

  @Test("a page token remains valid after a restart, and every changed bit makes it invalid")
  func forgery() async throws {
    let fixture = try await filledFixture()
    let token = try await fixture.engine.listDocuments(listRequest(fixture), as: .nobody).nextPageToken
    let restarted = try EngineFixture(store: fixture.store)
    _ = try await restarted.engine.listDocuments(listRequest(fixture, token), as: .nobody)
    let digits = Array(token.utf8)
    for index in digits.indices {
      var changed = digits
      changed[index] = digits[index] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
      let text = String(decoding: changed, as: UTF8.self)
      let error = await failure {
        try await fixture.engine.listDocuments(listRequest(fixture, text), as: .nobody)
      }
      #expect(error?.code == .invalidArgument)
    }
  }

  @Test("a page token of another database is invalid")
  func otherDatabases() async throws {
    let fixture = try await filledFixture()
    let token = try await fixture.engine.listDocuments(listRequest(fixture), as: .nobody).nextPageToken
    let other = DatabaseName(project: "demo", database: "other")
    var request = listRequest(fixture, token)
    request.parent = ParentName(rootOf: other)
    #expect(
      await failure { try await fixture.engine.listDocuments(request, as: .nobody) }?.code == .invalidArgument
    )
    let signers = [
      try await fixture.engine.database(fixture.database), try await fixture.engine.database(other),
    ]
    .map(\.signer)
    let owner = TokenOwner(.nobody, in: other)
    #expect(signers[0].code(of: [1], .page, for: owner) != signers[1].code(of: [1], .page, for: owner))
    #expect(signers[0].code(of: [1], .page, for: owner) != signers[0].code(of: [1], .transaction, for: owner))
  }

  @Test("every changed bit makes a transaction token invalid")
  func transactionTokens() async throws {
    let fixture = try EngineFixture()
    let token = try await fixture.engine.beginTransaction(in: fixture.database, .readWrite(), as: .user("u"))
    for index in token.indices where !(17..<25).contains(index) {
      var changed = token
      changed[index] ^= 1
      let error = await failure {
        try await fixture.engine.commit(in: fixture.database, [], transaction: changed, as: .user("u"))
      }
      #expect(error == .invalidArgument("Invalid transaction."), "byte \(index)")
    }
    _ = try await fixture.engine.commit(in: fixture.database, [], transaction: token, as: .user("u"))
  }

  @Test("a denied listing does not read the document that its page token names")
  func deniedCursor() async throws {
    let store = CountingStore(try MemoryStore())
    let policy = TestPolicy { _, _, _ in .allowed }
    let fixture = try EngineFixture(store: store, policy: policy)
    for number in 0..<3 {
      try await fixture.set(ResourcePath(["c", "d\(number)"]), ["n": .integer(Int64(number))])
    }
    let token = try await fixture.engine.listDocuments(listRequest(fixture), as: .nobody).nextPageToken
    fixture.engine.policies.publish(LockedPolicy(), for: fixture.database)
    _ = store.takeCount()
    let error = await failure {
      try await fixture.engine.listDocuments(listRequest(fixture, token), as: .nobody)
    }
    #expect(error?.code == .unauthenticated)
    #expect(store.takeCount() == 0)
  }
}
