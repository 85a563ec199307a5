// Tests Listen when state is lost, hidden or old: expired tokens, documents that rules hide, removed
// targets, one-time targets, and streams that a restart interrupts.

import Access
import FirestoreEngine
import FirestoreModel
import FirestoreProtobuf
import Foundation
import GRPCFraming
import HearthServer
import NIOCore
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Listen state over gRPC", .timeLimit(.minutes(10)))
struct ListenStateTests {
  private typealias Time = Google_Protobuf_Timestamp

  // MARK: Resuming

  @Test(
    "An expired token gets ADD, RESET, all documents and an existence filter with their names")
  func resumePastWindow() async throws {
    try await ClockedTestPort.with { port in
      try await port.write((0..<10).map { .set("c/d\($0)", ["n": .int(Int64($0))]) })
      let first = try await ListenClient(port.client)
      try await first.add(2, .collection("c"))
      let previous = try await first.snapshot { $0.targets[2]?.count == 10 }
      let token = try #require(first.targets[2]?.resumeToken)
      try await first.call.reset()
      try await port.write([.delete("c/d3"), .set("c/d4", ["n": .int(44)])])

      // Tokens are valid for half an hour. Before that, the server sends only the changes since the token.
      try await port.advance(minutes: 29)
      let early = try await ListenClient(port.client)
      try await early.add(2, .collection("c"), resuming: token, expected: 10)
      early.setDocuments(previous.targets[2] ?? [:], for: 2)
      let resumed = try await early.snapshot()
      #expect(resumed.targets[2]?.count == 9 && resumed.targets[2]?["c/d4"] == 44)
      #expect(!early.receivedKinds.contains("reset") && early.filters.isEmpty)
      try await early.call.reset()

      for minutes in [2, 120] as [UInt64] {
        try await port.advance(minutes: minutes)
        let late = try await ListenClient(port.client)
        try await late.add(2, .collection("c"), resuming: token, expected: 10)
        late.setDocuments(previous.targets[2] ?? [:], for: 2)
        let restarted = try await late.snapshot()
        #expect(restarted.targets[2] == resumed.targets[2])
        #expect(late.receivedKinds.first == "reset")
        let filter = try #require(late.filters.first)
        #expect(filter.targetID == 2 && filter.count == 9)
        let names = try #require(
          BloomFilter(
            bitmap: [UInt8](filter.unchangedNames.bits.bitmap),
            padding: Int(filter.unchangedNames.bits.padding),
            hashCount: Int(filter.unchangedNames.hashCount)))
        for path in resumed.targets[2]?.keys.map({ $0 }) ?? [] {
          #expect(names.mightContain("\(FirestoreTestServer.documents)/\(path)"))
        }
        #expect(!names.mightContain("\(FirestoreTestServer.documents)/c/d3"))
        try await late.call.reset()
      }
    }
  }

  @Test("A target that resumes from a read time gets only later changes")
  func resumeFromReadTime() async throws {
    try await FirestoreTestServer.with { client in
      let commit = try await client.commit((0..<5).map { .set("c/d\($0)", ["n": .int(Int64($0))]) })
      try await client.commit([.delete("c/d1"), .set("c/d2", ["n": .int(22)])])
      var target = Google_Firestore_V1_Target()
      target.targetID = 2
      target.query.parent = FirestoreTestServer.documents
      target.query.structuredQuery = .collection("c")
      target.readTime = commit.commitTime
      let listen = try await ListenClient(client)
      try await listen.add(target)
      listen.setDocuments(["c/d0": 0, "c/d1": 1, "c/d2": 2, "c/d3": 3, "c/d4": 4], for: 2)
      #expect(try await listen.snapshot().targets[2] == ["c/d0": 0, "c/d2": 22, "c/d3": 3, "c/d4": 4])
      #expect(listen.receivedKinds.sorted() == ["change", "delete"])
    }
  }

  @Test("Three targets resume after a restart during a commit to two of them; the third gets no change")
  func targetsAfterRestart() async throws {
    let directory = FirestoreTestServer.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    var previous: ListenClient.Snapshot?
    var token = Data()
    var limited = Google_Firestore_V1_StructuredQuery.collection("c")
    limited.orderBy = [
      .with {
        $0.field.fieldPath = "n"
        $0.direction = .descending
      }
    ]
    limited.limit = .with { $0.value = 2 }
    func add(_ listen: ListenClient, resuming token: Data?) async throws {
      try await listen.add(2, .collection("c"), resuming: token, expected: token.map { _ in 4 })
      try await listen.add(4, limited, resuming: token, expected: token.map { _ in 2 })
      try await listen.add(6, .collection("other"), resuming: token, expected: token.map { _ in 1 })
    }
    try await FirestoreTestServer.with(.directory(directory)) { client in
      try await client.commit((0..<4).map { .set("c/d\($0)", ["n": .int(Int64($0))]) })
      try await client.commit([.set("other/o", ["n": .int(1)])])
      let listen = try await ListenClient(client)
      try await add(listen, resuming: nil)
      let snapshot = try await listen.snapshot { $0.targets[6]?.count == 1 && $0.targets[4]?.count == 2 }
      #expect(snapshot.targets[4] == ["c/d2": 2, "c/d3": 3])
      previous = snapshot
      token = try #require(listen.targets[6]?.resumeToken)
      try await listen.call.reset()
      try await client.commit([.delete("c/d3"), .set("c/d9", ["n": .int(9)])])
    }
    let before = try #require(previous)
    try await FirestoreTestServer.with(.directory(directory)) { client in
      let listen = try await ListenClient(client)
      try await add(listen, resuming: token)
      for id in [2, 4, 6] as [Int32] { listen.setDocuments(before.targets[id] ?? [:], for: id) }
      let all: [String: Int64] = ["c/d0": 0, "c/d1": 1, "c/d2": 2, "c/d9": 9]
      let resumed = try await listen.snapshot { _ in listen.targets.values.allSatisfy(\.isCurrent) }
      #expect(resumed.targets == [2: all, 4: ["c/d2": 2, "c/d9": 9], 6: ["other/o": 1]])
      // Two targets get a change and a delete each; the third gets none.
      #expect(listen.receivedKinds.sorted() == ["change", "change", "delete", "delete"])
      // One more commit to two targets arrives as one snapshot.
      try await client.commit([.set("c/d0", ["n": .int(50)]), .set("other/o", ["n": .int(2)])])
      let next = try await listen.snapshot { $0.targets != resumed.targets }
      #expect(next.targets[6] == ["other/o": 2])
      #expect(next.targets[4] == ["c/d0": 50, "c/d9": 9])
      #expect(next.targets[2]?["c/d0"] == 50)
    }
  }

  // MARK: Removal

  @Test(
    "A deletion arrives as document_delete; under rules, a document that leaves the query arrives as document_remove"
  )
  func deleteAndRemove() async throws {
    try await ClockedTestPort.with(policy: SwitchPolicy()) { port in
      try await port.write([
        .set("access/open", ["on": .int(1)]), .set("c/a", ["n": .int(1)]), .set("c/b", ["n": .int(1)]),
      ])
      var limited = Google_Firestore_V1_StructuredQuery.collection("c", where: "n", is: .int(1))
      limited.limit = .with { $0.value = 10 }
      for query in [.collection("c", where: "n", is: .int(1)), limited] {
        try await port.write([.set("c/a", ["n": .int(1)]), .set("c/b", ["n": .int(1)])])
        let listen = try await ListenClient(port.client)
        try await listen.add(2, query)
        _ = try await listen.snapshot { $0.targets[2]?.count == 2 }
        try await port.write([.delete("c/a")])
        _ = try await listen.snapshot { $0.targets[2]?.count == 1 }
        #expect(listen.receivedKinds.last == "delete")
        // A client under rules does not see the new contents of a document that left the query.
        try await port.write([.set("c/b", ["n": .int(77)])])
        _ = try await listen.snapshot { $0.targets[2]?.isEmpty == true }
        #expect(listen.receivedKinds.last == "remove")
        try await listen.call.reset()
      }
    }
    // An administrator gets the new contents of a document that left the query.
    try await FirestoreTestServer.with { client in
      try await client.commit([.set("c/b", ["n": .int(1)])])
      let listen = try await ListenClient(client)
      try await listen.add(2, .collection("c", where: "n", is: .int(1)))
      _ = try await listen.snapshot { $0.targets[2]?.count == 1 }
      try await client.commit([.set("c/b", ["n": .int(77)])])
      #expect(try await listen.snapshot { $0.targets[2]?.isEmpty == true }.targets[2]?.isEmpty == true)
      #expect(listen.receivedKinds.last == "change")
    }
  }

  @Test(
    "A revoked permission removes its targets with PERMISSION_DENIED; the documents that the rule reads stay hidden"
  )
  func revokedPermission() async throws {
    try await ClockedTestPort.with(policy: SwitchPolicy()) { port in
      try await port.write([.set("access/open", ["on": .int(1)]), .set("c/a", ["n": .int(1)])])
      let listen = try await ListenClient(port.client)
      try await listen.add(2, .collection("c"))
      try await listen.add(4, documents: ["c/a"])
      _ = try await listen.snapshot { $0.targets[2]?.count == 1 && $0.targets[4]?.count == 1 }
      // The document that the policy reads changes, but still allows access.
      try await port.write([.set("access/open", ["on": .int(1), "secret": .text("s")])])
      try await port.write([.set("c/b", ["n": .int(2)])])
      let next = try await listen.snapshot { $0.targets[2]?.count != 1 }
      #expect(next.targets == [2: ["c/a": 1, "c/b": 2], 4: ["c/a": 1]])
      try await port.write([.set("access/open", ["on": .int(0)])])
      for id in [2, 4] as [Int32] {
        let cause = try await listen.removal(of: id)
        #expect(cause.code == 7)
        #expect(cause.message == "Missing or insufficient permissions.")
      }
      try await listen.add(6, .collection("c"))
      #expect(try await listen.removal(of: 6).code == 7)
      // The stream remains open: it accepts a new target when access is allowed again.
      try await port.write([.set("access/open", ["on": .int(1)])])
      try await listen.add(2, .collection("c"))
      #expect(try await listen.snapshot { $0.targets[2]?.count == 2 }.targets[2] == ["c/a": 1, "c/b": 2])
    }
  }

  @Test("A one-time target ends after its first snapshot, and other targets continue")
  func once() async throws {
    try await FirestoreTestServer.with { client in
      try await client.commit([.set("c/a", ["n": .int(1)])])
      let listen = try await ListenClient(client)
      try await listen.add(2, .collection("c"))
      _ = try await listen.snapshot { $0.targets[2]?.count == 1 }
      var target = Google_Firestore_V1_Target()
      target.targetID = 4
      target.query.parent = FirestoreTestServer.documents
      target.query.structuredQuery = .collection("c")
      target.once = true
      try await listen.add(target)
      #expect(try await listen.snapshot { $0.targets[4] != nil }.targets[4] == ["c/a": 1])
      #expect(try await listen.removal(of: 4).code == 0)
      try await client.commit([.set("c/b", ["n": .int(2)])])
      let next = try await listen.snapshot { $0.targets[2]?.count == 2 }
      #expect(next.targets == [2: ["c/a": 1, "c/b": 2]])
      // The client may still remove the target: each request gets one response.
      try await listen.remove(4)
      #expect(try await listen.removal(of: 4).code == 0)
    }
  }

  // MARK: Slow readers

  @Test(
    "A client that pauses while documents of 16 KB are written gets the query's result when it reads again")
  func pausedReader() async throws {
    try await FirestoreTestServer.with { client in
      let text = String(repeating: "x", count: 16_000)
      let listen = try await ListenClient(client)
      try await listen.add(2, .collection("c"))
      _ = try await listen.snapshot()
      try await listen.call.channel.setOption(.autoRead, value: false).get()
      var expected: [String: Int64] = [:]
      for round in 0..<60 {
        var writes: [Proto.Write] = []
        for index in 0..<25 {
          let path = "c/d\((round * 25 + index) % 1_000)"
          let value = Int64(round * 100 + index)
          expected[path] = value
          writes.append(.set(path, ["n": .int(value), "x": .text(text)]))
        }
        try await client.commit(writes)
      }
      try await client.commit([.delete("c/d7")])
      expected["c/d7"] = nil
      try await listen.call.channel.setOption(.autoRead, value: true).get()
      listen.call.channel.read()
      let final = expected
      #expect(try await listen.snapshot { $0.targets[2] == final }.targets[2] == final)
    }
  }

  // MARK: Reads in the past

  @Test(
    "A read returns the state at a past time; an expired time is FAILED_PRECONDITION, a future time INVALID_ARGUMENT"
  )
  func pastReads() async throws {
    try await ClockedTestPort.with { port in
      let first = try await port.write([.set("c/a", ["n": .int(1)]), .set("c/b", ["n": .int(1)])]).commitTime
      try await port.write([.set("c/a", ["n": .int(2)]), .delete("c/b")])
      func values(at time: Time) async throws -> [Int64] {
        var get = Google_Firestore_V1_GetDocumentRequest()
        get.name = "\(FirestoreTestServer.documents)/c/a"
        get.readTime = time
        let document: Proto.Document = try await port.client.unary("GetDocument", get)
        var batch = Google_Firestore_V1_BatchGetDocumentsRequest()
        batch.database = FirestoreTestServer.database
        batch.documents = ["c/a", "c/b"].map { "\(FirestoreTestServer.documents)/\($0)" }
        batch.readTime = time
        let items: [Google_Firestore_V1_BatchGetDocumentsResponse] = try await port.client.stream(
          "BatchGetDocuments", batch)
        #expect(items.allSatisfy { $0.readTime == time })
        var query = Google_Firestore_V1_RunQueryRequest.collection("c")
        query.readTime = time
        let results = try await port.client.query(query)
        #expect(results.allSatisfy { $0.readTime == time })
        #expect(items.filter { !$0.found.name.isEmpty }.count == results.filter(\.hasDocument).count)
        return [document.fields["n"]?.integerValue ?? 0, Int64(results.filter(\.hasDocument).count)]
      }
      #expect(try await values(at: first) == [1, 2])
      try await port.advance(minutes: 50)
      #expect(try await values(at: first) == [1, 2])
      try await port.advance(minutes: 20)
      func rejection(_ body: () async throws -> Void) async -> GRPCStatus? {
        do {
          try await body()
          return nil
        } catch { return error as? GRPCStatus }
      }
      let late = await rejection { _ = try await values(at: first) }
      #expect(late?.code == .failedPrecondition)
      #expect(late?.message == "The requested snapshot version is too old.")
      var query = Google_Firestore_V1_RunQueryRequest.collection("c")
      query.readTime = first
      let lateQuery = await rejection { [query] in _ = try await port.client.query(query) }
      #expect(lateQuery?.code == .failedPrecondition)
      var begin = Google_Firestore_V1_RunQueryRequest.collection("c")
      begin.newTransaction.readOnly.readTime = first
      let lateBegin = await rejection { [begin] in _ = try await port.client.query(begin) }
      #expect(lateBegin?.code == .failedPrecondition)
      query.readTime.seconds += 100_000_000
      let future = await rejection { [query] in _ = try await port.client.query(query) }
      #expect(future?.code == .invalidArgument)
      #expect(future?.message == "The requested 'read_time' cannot be in the future.")
      query.readTime = first
      query.readTime.nanos += 7
      let fraction = await rejection { [query] in _ = try await port.client.query(query) }
      #expect(fraction?.code == .invalidArgument)
    }
  }

  @Test("The limit on the number of filters is checked before more expensive checks")
  func filterLimit() async throws {
    try await FirestoreTestServer.with { client in
      func query(_ count: Int) -> Google_Firestore_V1_RunQueryRequest {
        var request = Google_Firestore_V1_RunQueryRequest.collection("c")
        request.structuredQuery.where.compositeFilter.op = .and
        request.structuredQuery.where.compositeFilter.filters = (0..<count).map { _ in
          .with { filter in
            // Each filter is invalid: its list is empty.
            filter.fieldFilter.field.fieldPath = "n"
            filter.fieldFilter.op = .in
            filter.fieldFilter.value.arrayValue = .init()
          }
        }
        return request
      }
      for (count, expectedText) in [
        (101, "more than 100 filters"), (50_000, "more than 100 filters"), (100, "'IN' requires"),
      ] {
        do {
          _ = try await client.query(query(count))
          Issue.record("\(count) filters are accepted")
        } catch let status as GRPCStatus {
          #expect(status.code == .invalidArgument)
          #expect(status.message.contains(expectedText), "\(status.message)")
        }
      }
      // A composite filter without parts matches every document, and the server still evaluates it for each document.
      var request = query(0)
      let empty = Google_Firestore_V1_StructuredQuery.Filter.with { $0.compositeFilter.op = .and }
      request.structuredQuery.where.compositeFilter.filters = .init(repeating: empty, count: 100_000)
      do {
        _ = try await client.query(request)
        Issue.record("empty filters are accepted")
      } catch let status as GRPCStatus {
        #expect(status.message.contains("more than 100 filters"), "\(status.message)")
      }
    }
  }
}

/// A policy that allows everything while the field `on` of the document `access/open` is 1. Its decisions depend on this
/// document.
private struct SwitchPolicy: AccessPolicy {
  func decide(
    _ principal: Principal, _ operation: FirestoreOperation, view: any DocumentView
  ) throws -> FirestoreDecision {
    guard let database = try? DatabaseName(parsing: FirestoreTestServer.database),
      let open = DocumentName(database: database, path: "access/open")
    else { return .deny(reason: "no switch") }
    let isOpen = try view.document(open)?.fields["on"] == .integer(1)
    return isOpen ? .allow(dependingOn: [open]) : .deny(reason: "closed")
  }
}
