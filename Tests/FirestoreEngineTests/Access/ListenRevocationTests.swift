// Tests of open listens that lose their permission: by a replaced policy, by expired or revoked credentials, or by a
// decision that depends on the time.

import Access
import AccessFixture
import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Listens that lose their permission", .timeLimit(.minutes(5))) struct ListenRevocationTests {
  private func listen(
    _ fixture: EngineFixture, as caller: Principal, _ collection: String = "c"
  ) async throws -> (client: WatchClient, stream: WatchStream) {
    let client = WatchClient()
    let stream = try await fixture.watch(client, as: caller)
    stream.addTarget(WatchTarget(id: 2, fixture.selection(StructuredQuery(from: [.init(collection)]))))
    try await eventually("the target is current") {
      client.view.current == [2] && !client.view.snapshots.isEmpty
    }
    return (client, stream)
  }

  private func received(_ client: WatchClient) -> Set<String> {
    var ids: Set<String> = []
    for case .documentChange(let document, _, _) in client.view.responses { ids.insert(document.name.id) }
    return ids
  }

  @Test(
    "a new policy removes the targets that it denies, even if no document changes, and keeps the other targets"
  )
  func replacedPolicy() async throws {
    let fixture = try EngineFixture()
    try await fixture.set("c/a", [:])
    let denied = try await listen(fixture, as: .nobody)
    let allowed = try await listen(fixture, as: .user("u"))
    let policy = TestPolicy { principal, _, _ in
      principal.user == nil ? .deny(reason: "nobody") : .allowed
    }
    fixture.engine.policies.publish(policy, for: fixture.database)
    try await eventually("the target is removed") { denied.client.view.removed[2] != nil }
    #expect(denied.client.view.removed[2]??.code == .permissionDenied)
    let time = try #require(try await fixture.set("c/b", [:]).commitTime)
    #expect(try await allowed.client.snapshot(at: time)[2]?.count == 2)
    #expect(received(denied.client) == ["a"])
    denied.stream.close()
    allowed.stream.close()
  }

  @Test("a change committed after the policy was replaced reaches no denied listener, even a slow one")
  func slowListener() async throws {
    let fixture = try EngineFixture()
    try await fixture.set("c/a", [:])
    let (client, stream) = try await listen(fixture, as: .nobody)
    client.block(true)
    try await fixture.set("c/before", [:])
    fixture.engine.policies.publish(TestPolicy.denying("c"), for: fixture.database)
    for number in 0..<20 { try await fixture.set(ResourcePath(["c", "secret\(number)"]), [:]) }
    client.block(false)
    try await eventually("the target is removed") { client.view.removed[2] != nil }
    #expect(!received(client).contains { $0.hasPrefix("secret") })
    stream.close()
  }

  @Test("a stream ends with UNAUTHENTICATED when its credentials expire, also while nothing changes")
  func idleExpiry() async throws {
    let fixture = try EngineFixture()
    let seconds = fixture.clock.wallTime() / 1_000_000
    let caller = Principal(.user(User(id: "u", claims: .none)), expiry: seconds + 60)
    let (client, _) = try await listen(fixture, as: caller)
    let database = try await fixture.engine.database(fixture.database)
    try await eventually("the stream ends") {
      fixture.clock.advance(by: 1_000_000)
      return client.view.failure != nil
    }
    #expect(client.view.failure?.code == .unauthenticated)
    #expect(fixture.clock.wallTime() / 1_000_000 >= seconds + 60)
    try await eventually("the stream is removed") { database.hub.streamCount == 0 }
  }

  @Test("a change after the credentials expired is not sent")
  func expiryBeforeChange() async throws {
    let fixture = try EngineFixture()
    let seconds = fixture.clock.wallTime() / 1_000_000
    let caller = Principal(.user(User(id: "u", claims: .none)), expiry: seconds + 2)
    let (client, _) = try await listen(fixture, as: caller)
    // No timer runs, so only the change itself can end the stream.
    fixture.clock.setWallClock(forwardBy: 3_000_000)
    try await fixture.set("c/secret", [:])
    try await eventually("the stream ends") { client.view.failure != nil }
    #expect(client.view.failure?.code == .unauthenticated)
    #expect(received(client).isEmpty)
  }

  @Test("revoked credentials end their streams and no others")
  func revoked() async throws {
    let fixture = try EngineFixture()
    let revoked = try await listen(fixture, as: .user("revoked"))
    let other = try await listen(fixture, as: .user("other"))
    fixture.engine.revokeStreams { $0.user?.id == "revoked" }
    let time = try #require(try await fixture.set("c/a", [:]).commitTime)
    try await eventually("the stream ends") { revoked.client.view.failure?.code == .unauthenticated }
    _ = try await other.client.snapshot(at: time)
    #expect(received(revoked.client).isEmpty)
    #expect(other.client.view.failure == nil)
    other.stream.close()
  }

  @Test("a load in progress ends before its next page when its caller is revoked or the policy is replaced")
  func loadInProgress() async throws {
    for isRevoked in [true, false] {
      let fixture = try EngineFixture()
      let large = Value.bytes([UInt8](repeating: 1, count: 400_000))
      for number in 0..<16 { try await fixture.set(ResourcePath(["c", "d\(number)"]), ["x": large]) }
      let client = WatchClient()
      let stream = try await fixture.watch(client, as: .user("u"))
      client.block(true)
      stream.addTarget(WatchTarget(id: 2, fixture.selection(StructuredQuery(from: [.init("c")]))))
      try await eventually("the first page is sent") { client.view.sendCount > 0 }
      if isRevoked {
        fixture.engine.revokeStreams { $0.user?.id == "u" }
      } else {
        fixture.engine.policies.publish(TestPolicy.denying("c"), for: fixture.database)
      }
      client.block(false)
      try await eventually("the stream ends") { client.view.failure != nil }
      #expect(client.view.failure?.code == (isRevoked ? .unauthenticated : .unavailable))
      #expect(received(client).count < 16)
    }
  }

  @Test(
    "a resumed target shows no name of a document that its caller could not read at the version of the resume token"
  )
  func resumeFromDeniedVersion() async throws {
    let policy = TestPolicy { _, _, view in
      guard let flag = DocumentName(database: DatabaseName(project: "demo"), path: "flags/open") else {
        return .deny(reason: "no flag")
      }
      return try view.exists(flag) ? .allow(dependingOn: [flag]) : .deny(reason: "closed")
    }
    let fixture = try EngineFixture(policy: policy)
    let closed = try #require(try await fixture.set("c/secret", [:]).commitTime)
    try await fixture.delete("c/secret")
    try await fixture.set("c/a", [:])
    let open = try #require(try await fixture.set("flags/open", [:]).commitTime)
    for start in [
      WatchTarget.Start.readTime(closed), .resumeToken(ResumeToken.encode(Version(closed))), .readTime(open),
    ] {
      let client = WatchClient()
      let stream = try await fixture.watch(client, as: .nobody)
      stream.addTarget(
        WatchTarget(id: 2, fixture.selection(StructuredQuery(from: [.init("c")])), start: start))
      try await eventually("the target is current") { client.view.current == [2] }
      for response in client.view.responses {
        switch response {
        case .documentDelete(let name, _, _), .documentRemove(let name, _, _):
          Issue.record("the client receives \(name)")
        default: break
        }
      }
      if case .readTime(open) = start {
        #expect(client.view.resets == 0)
      } else {
        #expect(client.view.resets == 1)
      }
      stream.close()
    }
  }

  @Test("the policy repeats a decision that depends on the time before a change is sent")
  func timeDependence() async throws {
    let limit = Guarded<Int64>(.max)
    let policy = TestPolicy { _, _, view in
      view.time.microseconds < limit.withLock { $0 } ? .allow(time: true) : .deny(reason: "too late")
    }
    let fixture = try EngineFixture(policy: policy)
    let (client, stream) = try await listen(fixture, as: .nobody)
    limit.withLock { $0 = fixture.clock.wallTime() + 1_000_000 }
    try await fixture.set("c/a", [:])
    try await eventually("the change arrives") { received(client) == ["a"] }
    fixture.clock.advance(by: 2_000_000)
    try await fixture.set("c/secret", [:])
    try await eventually("the target is removed") { client.view.removed[2] != nil }
    #expect(received(client) == ["a"])
    stream.close()
  }

  @Test("the policy repeats a decision that depends on the time within a minute even if nothing changes")
  func timeWithoutChanges() async throws {
    let limit = Guarded<Int64>(.max)
    let policy = TestPolicy { _, _, view in
      view.time.microseconds < limit.withLock { $0 } ? .allow(time: true) : .deny(reason: "too late")
    }
    let fixture = try EngineFixture(policy: policy)
    let (client, stream) = try await listen(fixture, as: .nobody)
    limit.withLock { $0 = fixture.clock.wallTime() + 1_000_000 }
    for _ in 0..<6 {
      try await eventually("the heartbeat timer is waiting") { fixture.clock.sleepers >= 1 }
      fixture.clock.advance(by: 10_000_000)
    }
    try await eventually("the target is removed") { client.view.removed[2] != nil }
    stream.close()
  }

  @Test(
    "the policy decides again about each target that depends on a changed document, except removed targets")
  func sharedDependency() async throws {
    let flag = try #require(DocumentName(database: DatabaseName(project: "demo"), path: "flags/open"))
    let policy = TestPolicy { _, _, view in
      try view.exists(flag) ? .allow(dependingOn: [flag]) : .deny(reason: "closed")
    }
    let fixture = try EngineFixture(policy: policy)
    try await fixture.set("flags/open", [:])
    let client = WatchClient()
    let stream = try await fixture.watch(client, as: .nobody)
    for id: Int32 in [2, 4, 6] {
      stream.addTarget(WatchTarget(id: id, fixture.selection(StructuredQuery(from: [.init("c\(id)")]))))
    }
    try await eventually("the targets are current") { client.view.current == [2, 4, 6] }
    stream.removeTarget(4)
    try await eventually("a target is removed") { client.view.removals == [4] }
    try await fixture.set("flags/open", ["n": .integer(1)])
    try await fixture.delete("flags/open")
    try await eventually("the others are removed") { Set(client.view.removals) == [2, 4, 6] }
    #expect(client.view.removals.count == 3)
    stream.close()
  }
}
