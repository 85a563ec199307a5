// Tests rejections by the server: the client reverts writes, cancels and removes listeners, and reports the
// same errors as Google's SDKs.

import FirebaseCore
import Foundation
import HearthServer
import Testing

@testable import FirebaseDatabase

@Suite("Rejections", .timeLimit(.minutes(10)))
struct RejectionTests {
  /// Returns a value with more levels than the server accepts.
  private func deep(_ levels: Int) -> Any {
    (0..<levels).reduce(1 as Any) { value, _ in ["d": value] }
  }

  @Test("a rejected write is visible locally, then reverted, and completes with the server's reason")
  func revert() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(2)
    let ref = clients[0].ref.child("x")
    try await ref.setValue("old")
    let seen = ref.recordValues()
    #expect(try await seen.next() == #""old""#)
    let other = clients[1].ref.child("x").recordValues()
    #expect(try await other.next() == #""old""#)
    let error = await #expect(throws: NSError.self) { try await ref.setValue(deep(40)) }
    #expect(error?.domain == "com.firebase" && error?.code == 9_999)
    #expect(try await seen.next(2).last == #""old""#)
    #expect(seen.recorded.count == 3)
    #expect(other.recorded.count == 1, "no other client receives the rejected write")
    await server.stop(clients)
  }

  @Test("an update is reverted completely if one part is rejected")
  func revertUpdate() async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(1)
    let ref = clients[0].ref.child("x")
    try await ref.setValue(["a": 1, "b": 2])
    let seen = ref.recordValues()
    #expect(try await seen.next() == #"{"a":1,"b":2}"#)
    await #expect(throws: NSError.self) { try await ref.updateChildValues(["a": 5, "b/c": deep(40)]) }
    #expect(try await seen.next(2).last == #"{"a":1,"b":2}"#)
    // A later write to the same location remains.
    ref.child("a").setValue(deep(40)) { _, _ in }
    try await ref.child("a").setValue(9)
    #expect(try await ref.getData().childSnapshot(forPath: "a").value as? Int == 9)
    #expect(seen.recorded.last == #"{"a":9,"b":2}"#)
    await server.stop(clients)
  }

  @Test(
    "the server rejects a transaction that sets an invalid key, and the client continues",
    arguments: ["a.b", "x/$y", "[", "c#d/e", String(repeating: "k", count: 769)])
  func invalidKey(path: String) async throws {
    let server = try await TestServer.start()
    let clients = try server.clients(1)
    let ref = clients[0].ref.child("x")
    try await ref.setValue("old")
    let error = await #expect(throws: NSError.self) {
      _ = try await ref.runTransactionBlock { data in
        data.childData(byAppendingPath: path).value = 1
        #expect(data.hasChild(atPath: path))
        return .success(withValue: data)
      }
    }
    #expect(error?.domain == "com.firebase")
    #expect(try await ref.getData().value as? String == "old")
    await server.stop(clients)
  }

  @Test(
    "without permission, listens, reads, writes, transactions and onDisconnect writes fail with error code 1")
  func permission() async throws {
    var configuration = HearthConfiguration.forTesting()
    configuration.emulator = false
    let hearth = HearthServer(configuration)
    try await hearth.start()
    let server = TestServer(server: hearth, port: try #require(hearth.databasePort))
    let clients = try server.clients(1)
    let ref = clients[0].ref.child("x")
    func isDenied(_ error: (any Error)?) -> Bool {
      guard let error = error as NSError? else { return false }
      return error.domain == "com.firebase" && error.code == 1
        && error.localizedDescription == "Permission Denied"
    }
    let cancelled = Recorder<Bool>()
    ref.observe(
      .value, with: { _ in Issue.record("a value") }, withCancel: { cancelled.record(isDenied($0)) })
    ref.queryOrderedByKey().queryLimited(toFirst: 2).observe(
      .childAdded, with: { _ in Issue.record("a child") }, withCancel: { cancelled.record(isDenied($0)) })
    ref.observeSingleEvent(
      of: .value, with: { _ in Issue.record("a value") }, withCancel: { cancelled.record(isDenied($0)) })
    #expect(try await cancelled.next(3) == [true, true, true])
    for attempt in [
      { try await ref.setValue(1) }, { try await ref.updateChildValues(["a": 1]) },
      { try await ref.removeValue() },
      { try await ref.onDisconnectSetValue(1) }, { try await ref.setPriority(1) },
    ] as [@Sendable () async throws -> DatabaseReference] {
      #expect(isDenied(await #expect(throws: NSError.self) { _ = try await attempt() }))
    }
    #expect(isDenied(await #expect(throws: NSError.self) { try await ref.getData() }))
    let error = await #expect(throws: NSError.self) {
      try await ref.runTransactionBlock { data in
        data.value = 1
        return .success(withValue: data)
      }
    }
    #expect(isDenied(error))
    await server.stop(clients)
  }

  @Test(
    "a request with too many frames for the protocol fails like a rejected request, and is not sent again")
  func tooManyFrames() async throws {
    let server = try await TestServer.start()
    let client = try server.clients(1)[0]
    let connected = client.database.reference(withPath: ".info/connected").recordValues()
    _ = try await connected.first { $0 == "true" }
    client.ref.repository.enqueue { $0.maximumFrames = 4 }
    let seen = client.ref.child("large").recordValues()
    #expect(try await seen.next() == "null")
    let large = String(repeating: "x", count: 100_000)
    for attempt in [
      { try await client.ref.child("large").setValue(large) },
      { try await client.ref.updateChildValues(["large": large]) },
      { try await client.ref.child("large").onDisconnectSetValue(large) },
      {
        try await client.ref.child("large").runTransactionBlock { data in
          data.value = large
          return .success(withValue: data)
        }
        return client.ref
      },
    ] as [@Sendable () async throws -> DatabaseReference] {
      let error = await #expect(throws: NSError.self) { _ = try await within { try await attempt() } }
      #expect(error?.localizedDescription.contains("exceeds the maximum size") == true)
    }
    #expect(seen.recorded.last == "null", "the writes are reverted")
    try await client.ref.child("small").setValue(1)
    #expect(connected.recorded.filter { $0 == "true" }.count == 1, "the connection has survived")
    await server.stop([client])
  }
}
