// Tests of the rotation of signing keys, their public forms, and the revocation of tokens, also after restarts.

import Access
import Foundation
import Identity
import JSON
import Locking
import OrderedStore
import Testing

@Suite("Signing keys and revocations")
struct KeyAndRevocationTests {
  private static let day: Int64 = 86_400

  @Test("A key is published before it signs, and its tokens are accepted after the next key signs")
  func rotation() async throws {
    try await IdentityFixture.with { fixture in
      let first = fixture.keys.current.id
      fixture.clock.advance(30 * Self.day)
      let old = try fixture.idToken()
      try await fixture.keys.rotateIfDue()
      #expect(fixture.keys.published.count == 2 && fixture.keys.current.id == first)
      fixture.clock.advance(3000)
      #expect(try fixture.verifier.principal(of: old[...]).user?.id == "u1")
      fixture.clock.advance(Self.day)
      #expect(fixture.keys.current.id != first)
      #expect(try fixture.verifier.principal(of: fixture.idToken()[...]).user?.id == "u1")
      fixture.clock.advance(30 * Self.day)
      try await fixture.keys.rotateIfDue()
      #expect(!fixture.keys.published.map(\.id).contains(first), "the first key is older than 46 days")
      #expect(fixture.keys.published.count == 2)
    }
  }

  @Test("Keys, service accounts and accounts are the same after a restart")
  func restart() async throws {
    let clock = TestClock(1_800_000_000)
    let rows = try MemoryStore(StoreOptions(clock: clock.store))
    let first = try await IdentityFixture(rows, clock)
    let token = try first.idToken()
    let file = try await first.accounts.create(
      name: "server", project: IdentityFixture.project, role: .reader, tokenURI: "https://h.example/token")
    let second = try await IdentityFixture(rows, clock)
    #expect(second.keys.current.id == first.keys.current.id)
    #expect(try second.verifier.principal(of: token[...]).user?.id == "u1")
    let signed = try TestServiceAccount(file).sign(
      ["aud": .string("https://firestore.googleapis.com/")], clock.now)
    #expect(try second.verifier.principal(of: signed[...]).role == .reader)
    try await rows.close()
  }

  /// The ways to end the sessions of an account.
  enum Change: CaseIterable {
    case disable, delete, revoke, deleteTenant
  }

  @Test(
    "A disabled, deleted or revoked user's token is rejected immediately, and also after a restart",
    arguments: Change.allCases)
  func revocation(_ change: Change) async throws {
    let clock = TestClock(1_800_000_000)
    let rows = try MemoryStore(StoreOptions(clock: clock.store))
    let fixture = try await IdentityFixture(rows, clock)
    let database = try await fixture.store.project(IdentityFixture.project)
    try await database.write { transaction in
      try transaction.put(Account(localID: "u1", tenantID: nil, createdAt: 1))
      try transaction.put(Account(localID: "u2", tenantID: nil, createdAt: 1))
    }
    let (token, other) = (try fixture.idToken("u1"), try fixture.idToken("u2"))
    let callers = try [token, other].map { try fixture.verifier.principal(of: $0[...]) }
    #expect(callers.map { $0.user?.id } == ["u1", "u2"])
    for caller in callers { #expect(try await !fixture.store.isRevoked(caller)) }
    clock.advance(10)
    let now = clock.now
    try await database.write { transaction in
      guard var account = try transaction.reader.account("u1", in: nil) else { return }
      switch change {
      case .disable: account.disabled = true
      case .revoke: account.validSince = now
      case .delete: return try transaction.remove(account)
      case .deleteTenant: return try transaction.removeAllAccounts(in: nil)
      }
      try transaction.put(account)
    }
    for verifier in [fixture.verifier, try await IdentityFixture(rows, clock).verifier] {
      #expect(throws: InvalidCredential.self) { try verifier.principal(of: token[...]) }
      if change != .deleteTenant { #expect(try verifier.principal(of: other[...]).user?.id == "u2") }
    }
    // The list in memory drops revocations after a while. The accounts in the store still show that the token was revoked.
    #expect(try await fixture.store.isRevoked(callers[0]))
    #expect(try await fixture.store.isRevoked(callers[1]) == (change == .deleteTenant))
    for caller in [Principal.nobody, .administrator, .user("u1")] {
      #expect(try await !fixture.store.isRevoked(caller))
    }
    clock.advance(10)
    if change == .revoke || change == .delete {
      // A new sign-in is not affected.
      #expect(try fixture.verifier.principal(of: fixture.idToken("u1")[...]).user?.id == "u1")
    }
    try await rows.close()
  }

  @Test("Observers receive the changes of accounts after their commit, until they cancel")
  func events() async throws {
    try await IdentityFixture.with { fixture in
      let database = try await fixture.store.project(IdentityFixture.project)
      let received = AccountEventRecorder()
      let observation = fixture.store.events.observe { received.add($0) }
      try await database.write { transaction in
        var account = Account(localID: "u1", tenantID: nil, createdAt: 1)
        try transaction.put(account)
        account.disabled = true
        try transaction.put(account)
      }
      #expect(received.all.map(\.localID) == ["u1"] && received.all.first?.change == .disabled)
      #expect(received.all.first?.projectID == IdentityFixture.project)
      await #expect(throws: IdentityError.self) {
        try await database.write { transaction in
          try transaction.removeAllAccounts(in: nil)
          throw IdentityError.notFound
        }
      }
      #expect(received.all.count == 1, "a failed transaction publishes nothing")
      observation.cancel()
      try await database.write { try $0.removeAllAccounts(in: nil) }
      #expect(received.all.count == 1)
    }
  }

  @Test("Observers run in the order of their registration, also after earlier ones have cancelled")
  func observerOrder() async throws {
    try await IdentityFixture.with { fixture in
      let database = try await fixture.store.project(IdentityFixture.project)
      let order = Guarded<[Int]>([])
      // There are so many observers that an unordered collection would not keep their order by chance.
      var observations = (0..<32).map { number in
        fixture.store.events.observe { _ in order.withLock { $0.append(number) } }
      }
      try await database.write { try $0.removeAllAccounts(in: nil) }
      #expect(order.withLock { $0 } == Array(0..<32))
      order.withLock { $0 = [] }
      observations.removeFirst(16)
      observations.append(fixture.store.events.observe { _ in order.withLock { $0.append(32) } })
      try await database.write { try $0.removeAllAccounts(in: nil) }
      #expect(order.withLock { $0 } == Array(16...32))
      withExtendedLifetime(observations) {}
    }
  }

  @Test("A revoked key revokes the callers of this key, and a revoked account the callers of all its keys")
  func serviceAccountKeys() async throws {
    try await IdentityFixture.with { fixture in
      var callers: [Principal] = []
      var files: [TestServiceAccount] = []
      for name in ["server", "server", "other"] {
        let file = try TestServiceAccount(
          await fixture.accounts.create(
            name: name, project: IdentityFixture.project, role: .writer, tokenURI: "https://h.example/token"))
        let token = try file.sign(["aud": .string("https://firestore.googleapis.com/")], fixture.clock.now)
        callers.append(try fixture.verifier.principal(of: token[...]))
        files.append(file)
      }
      #expect(callers.map(\.keyID) == files.map(\.keyID))
      #expect(callers.map { fixture.verifier.isRevoked($0) } == [false, false, false])
      try await fixture.accounts.revoke(email: files[0].email, keyID: files[0].keyID)
      #expect(callers.map { fixture.verifier.isRevoked($0) } == [true, false, false])
      try await fixture.accounts.revoke(email: files[1].email, keyID: nil)
      #expect(callers.map { fixture.verifier.isRevoked($0) } == [true, true, false])
      // An account of the same name does not restore the callers of the revoked keys.
      _ = try await fixture.accounts.create(
        name: "server", project: IdentityFixture.project, role: .writer, tokenURI: "https://h.example/token")
      #expect(callers.map { fixture.verifier.isRevoked($0) } == [true, true, false])
      #expect(!fixture.verifier.isRevoked(.nobody) && !fixture.verifier.isRevoked(.administrator))
    }
  }

  @Test("The certificate contains the key of the JSON Web Key")
  func certificate() async throws {
    try await IdentityFixture.with { fixture in
      let key = fixture.keys.current
      let pem = try key.certificate(lifetime: SigningKeys.lifetimeSeconds)
      let lines = pem.split(separator: "\n").dropFirst().dropLast().joined()
      let der = try #require(Base64.decode(lines.utf8, .standard, paddedBy: [UInt8(ascii: "=")]))
      // The SubjectPublicKeyInfo is a part of the certificate, byte by byte.
      let info = key.publicKey.der
      let contains = (0...(der.count - info.count)).contains { der[$0...].starts(with: info) }
      #expect(contains)
      #expect(try key.publicKey.jwk["kid"]?.string == key.id)
      #expect(try RSAKey(jwk: key.publicKey.jwk)?.der == info)
    }
  }
}
