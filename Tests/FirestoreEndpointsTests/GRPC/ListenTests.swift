// Tests Listen features that no single SDK covers: several targets on one stream, commits that affect some
// of them, removal, invalid targets, and resuming within a process and after a restart.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOCore
import HearthServer
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Listen over gRPC", .timeLimit(.minutes(10)))
struct ListenTests {
  @Test("One commit that affects two of three targets arrives as one snapshot")
  func threeTargets() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit([
        .set("rooms/a", ["n": .int(1), "kind": .text("red")]),
        .set("rooms/b", ["n": .int(2), "kind": .text("blue")]),
        .set("users/u", ["n": .int(3)]),
      ])
      let listen = try await ListenClient(client)
      try await listen.add(2, .collection("rooms"))
      try await listen.add(4, .collection("rooms", where: "kind", is: .text("red")))
      try await listen.add(6, documents: ["users/u", "users/missing"])
      let first = try await listen.snapshot { $0.targets[6] == ["users/u": 3] && $0.targets[2]?.count == 2 }
      #expect(first.targets == [2: ["rooms/a": 1, "rooms/b": 2], 4: ["rooms/a": 1], 6: ["users/u": 3]])

      // In one commit, a document leaves target 4 and stays in 2, and another enters both. Target 6 does
      // not change.
      let commit = try await client.commit([
        .set("rooms/a", ["n": .int(10), "kind": .text("blue")]),
        .set("rooms/c", ["n": .int(11), "kind": .text("red")]),
      ])
      let second = try await listen.snapshot { $0.targets != first.targets }
      #expect(
        second.targets == [
          2: ["rooms/a": 10, "rooms/b": 2, "rooms/c": 11], 4: ["rooms/c": 11], 6: ["users/u": 3],
        ])
      let time = commit.commitTime.seconds * 1_000_000 + Int64(commit.commitTime.nanos / 1000)
      #expect(second.readTime >= time)

      try await client.commit([
        .delete("rooms/b"), .delete("users/u"), .set("users/missing", ["n": .int(12)]),
      ])
      let third = try await listen.snapshot { $0.targets != second.targets }
      #expect(
        third.targets == [2: ["rooms/a": 10, "rooms/c": 11], 4: ["rooms/c": 11], 6: ["users/missing": 12]])
      try await listen.call.halfClose()
      #expect(try await listen.call.status() == .ok)
    }
  }

  @Test("Every snapshot is the state at one commit, also during concurrent writes")
  func consistentSnapshots() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit([.set("pairs/a", ["n": .int(0)]), .set("pairs/b", ["n": .int(0)])])
      let listen = try await ListenClient(client)
      try await listen.add(2, .collection("pairs"))
      try await listen.add(4, documents: ["pairs/a"])
      try await listen.add(6, documents: ["pairs/b"])
      async let writer: Void = {
        for round in 1...100 {
          try await client.commit([
            .set("pairs/a", ["n": .int(Int64(round))]), .set("pairs/b", ["n": .int(Int64(round))]),
          ])
        }
      }()
      var last: Int64 = -1
      while last < 100 {
        let snapshot = try await listen.snapshot()
        guard listen.targets.values.allSatisfy(\.isCurrent) else { continue }
        let a = snapshot.targets[2]?["pairs/a"]
        #expect(a == snapshot.targets[2]?["pairs/b"])
        #expect(a == snapshot.targets[4]?["pairs/a"])
        #expect(a == snapshot.targets[6]?["pairs/b"])
        #expect((a ?? -1) >= last)
        last = a ?? -1
      }
      try await writer
    }
  }

  @Test("The removal of a target is acknowledged once, and its id may be reused")
  func removeAndAddAgain() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit([.set("c/a", ["n": .int(1)])])
      let listen = try await ListenClient(client)
      try await listen.add(2, .collection("c"))
      _ = try await listen.snapshot { $0.targets[2]?.count == 1 }
      try await listen.remove(2)
      #expect(try await listen.removal(of: 2).code == 0)
      try await client.commit([.set("c/b", ["n": .int(2)])])
      try await listen.add(2, .collection("c"))
      #expect(try await listen.snapshot { $0.targets[2]?.count == 2 }.targets[2] == ["c/a": 1, "c/b": 2])
    }
  }

  @Test("An invalid target is removed with its cause, and the other targets continue")
  func invalidTargets() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit([.set("c/a", ["n": .int(1)])])
      let listen = try await ListenClient(client)
      try await listen.add(2, .collection("c"))
      _ = try await listen.snapshot { $0.targets[2]?.count == 1 }

      var malformedName = Google_Firestore_V1_Target()
      malformedName.targetID = 4
      malformedName.documents.documents = ["not/a/name"]
      try await listen.add(malformedName)
      #expect(try await listen.removal(of: 4).code == 3)

      var badQuery = Google_Firestore_V1_StructuredQuery.collection("c", where: "x", is: .int(1))
      badQuery.where.fieldFilter.op = .in
      try await listen.add(6, badQuery)
      #expect(try await listen.removal(of: 6).code == 3)

      var emptyTarget = Google_Firestore_V1_Target()
      emptyTarget.targetID = 8
      try await listen.add(emptyTarget)
      #expect(try await listen.removal(of: 8).code == 12)

      try await client.commit([.set("c/b", ["n": .int(2)])])
      #expect(try await listen.snapshot { $0.targets[2]?.count == 2 }.targets[2] == ["c/a": 1, "c/b": 2])
    }
  }

  @Test("A resumed target gets only the changes since its token")
  func resume() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit((0..<10).map { .set("c/d\($0)", ["n": .int(Int64($0))]) })
      let first = try await ListenClient(client)
      try await first.add(2, .collection("c"))
      let previous = try await first.snapshot { $0.targets[2]?.count == 10 }
      let token = try #require(first.targets[2]?.resumeToken)
      try await first.call.reset()

      try await client.commit([.set("c/d3", ["n": .int(33)]), .delete("c/d4"), .set("c/new", ["n": .int(7)])])
      let second = try await ListenClient(client)
      try await second.add(2, .collection("c"), resuming: token, expected: 10)
      second.setDocuments(previous.targets[2] ?? [:], for: 2)
      let resumed = try await second.snapshot()
      var expected = previous.targets[2] ?? [:]
      expected["c/d3"] = 33
      expected["c/d4"] = nil
      expected["c/new"] = 7
      #expect(resumed.targets[2] == expected)
      #expect(!second.receivedKinds.contains("reset"))
      #expect(second.receivedKinds.filter { $0 != "filter" }.count == 3)
    }
  }

  @Test("A target resumes after a restart on disk, without missing or repeated changes")
  func resumeAfterRestart() async throws {
    let directory = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    var previous: ListenClient.Snapshot?
    var token = Data()
    try await FirestoreTestServer.with(.directory(directory)) { client in
      try await client.commit((0..<10).map { .set("c/d\($0)", ["n": .int(Int64($0))]) })
      let listen = try await ListenClient(client)
      try await listen.add(2, .collection("c"))
      try await listen.add(4, documents: ["c/d1"])
      previous = try await listen.snapshot { $0.targets[2]?.count == 10 && $0.targets[4]?.count == 1 }
      token = try #require(listen.targets[2]?.resumeToken)
      // These writes commit after the token and before the restart.
      try await client.commit([.set("c/d1", ["n": .int(100)])])
    }
    let before = try #require(previous)
    try await FirestoreTestServer.with(.directory(directory)) { client in
      try await client.commit([.delete("c/d2")])
      let listen = try await ListenClient(client)
      try await listen.add(2, .collection("c"), resuming: token, expected: 10)
      try await listen.add(4, documents: ["c/d1"], resuming: token)
      listen.setDocuments(before.targets[2] ?? [:], for: 2)
      listen.setDocuments(before.targets[4] ?? [:], for: 4)
      var expected = before.targets[2] ?? [:]
      expected["c/d1"] = 100
      expected["c/d2"] = nil
      let resumed = try await listen.snapshot { $0.targets == [2: expected, 4: ["c/d1": 100]] }
      #expect(resumed.targets == [2: expected, 4: ["c/d1": 100]])
      #expect(resumed.readTime > before.readTime)
      // The target continues after the resume.
      try await client.commit([.set("c/d5", ["n": .int(55)])])
      expected["c/d5"] = 55
      #expect(try await listen.snapshot { $0.targets[2] != resumed.targets[2] }.targets[2] == expected)
    }
  }

  @Test("An invalid token causes a RESET and a full snapshot")
  func unusableToken() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit([.set("c/a", ["n": .int(1)])])
      let listen = try await ListenClient(client)
      try await listen.add(2, .collection("c"), resuming: Data([1, 2, 3]))
      listen.setDocuments(["c/gone": 9], for: 2)
      #expect(try await listen.snapshot().targets[2] == ["c/a": 1])
      #expect(listen.receivedKinds.first == "reset")
    }
  }

  @Test("A malformed request, an empty request or another database ends the stream with INVALID_ARGUMENT")
  func malformedRequests() async throws {
    try await FirestoreTestServer.with { client in
      let malformed = try await client.open("Listen")
      var bytes = ByteBuffer()
      bytes.writeGRPCMessage(bytes: [0xff, 0xff, 0xff])
      try await malformed.send(raw: bytes)
      #expect(try await malformed.status().code == .invalidArgument)

      let empty = try await client.open("Listen")
      var request = Google_Firestore_V1_ListenRequest()
      request.database = FirestoreTestServer.database
      try await empty.send(request)
      #expect(try await empty.status().code == .invalidArgument)

      let withoutDatabase = try await client.open("Listen")
      try await withoutDatabase.send(Google_Firestore_V1_ListenRequest())
      #expect(try await withoutDatabase.status().code == .invalidArgument)

      let other = try await ListenClient(client)
      try await other.add(2, .collection("c"))
      _ = try await other.snapshot()
      request.database = "projects/demo-test/databases/other"
      request.removeTarget = 2
      try await other.call.send(request)
      #expect(try await other.call.status().code == .invalidArgument)
    }
  }

  @Test("Shutdown ends streams with UNAVAILABLE, never OK")
  func shutdown() async throws {
    let server = try await FirestoreTestServer.start()
    let listen = try await ListenClient(server.client)
    try await listen.add(2, .collection("c"))
    _ = try await listen.snapshot()
    async let stopped: Void = server.server.stop()
    #expect(try await listen.call.status().code == .unavailable)
    await stopped
  }
}
