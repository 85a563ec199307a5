// Tests that the server decides each request by one rules file and not by a mixture of two files, while rules are
// replaced and clients write, read and listen.
//
// Each of the two files opens one of two collections. Each file denies a request for documents of both collections;
// only a mixture of the files would allow it. While the second file is in force, a document of the first collection
// contains a secret for a moment. No client may receive it.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import HearthServer
import JSON
import Locking
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Rules that are replaced under load", .timeLimit(.minutes(30)))
struct RulesSwapTests {
  private static let swaps = max(
    40, ProcessInfo.processInfo.environment["HEARTH_RULES_PROGRAMS"].flatMap { Int($0) } ?? 0)
  private static let secret = "secret"

  /// Counts the outcomes of requests.
  private final class Tally: Sendable {
    private struct State {
      var isDone = false
      var allowed = 0
      var denied = 0
    }
    private let state = Guarded(State())

    var isDone: Bool { state.withLock { $0.isDone } }
    var counts: (allowed: Int, denied: Int) { state.withLock { ($0.allowed, $0.denied) } }

    func finish() { state.withLock { $0.isDone = true } }

    func count(isAllowed: Bool) {
      state.withLock { if isAllowed { $0.allowed += 1 } else { $0.denied += 1 } }
    }
  }

  /// A file that opens one collection; nil for none.
  private static func file(opening open: String?) -> String {
    """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        function first() { return \(open == "a"); }
        function second() { return \(open == "b"); }
        match /a/{id} { allow read, write: if first(); }
        match /b/{id} { allow read, write: if second(); }
        match /both/{id} { allow read, write: if first() && second(); }
        match /kinds/{id} {
          allow list: if first() && resource.data.kind == 'a' || second() && resource.data.kind == 'b';
        }
      }
    }
    """
  }

  private func load(_ open: String?, _ server: FirestoreTestServer) async throws {
    let file = JSONValue.object([
      "name": .string("firestore.rules"), "content": .string(Self.file(opening: open)),
    ])
    let body = JSONValue.object(["rules": .object(["files": .array([file])])])
    let reply = try await server.rest(
      "PUT", "/emulator/v1/projects/demo-test:securityRules", String(decoding: body.json(), as: UTF8.self))
    #expect(reply.status == 200)
  }

  /// Whether a request is allowed.
  private func isAllowed(_ request: () async throws -> Void) async throws -> Bool {
    do {
      try await request()
      return true
    } catch let status as GRPCStatus where status.code == .permissionDenied { return false }
  }

  private static func name(_ path: String) -> String { "\(FirestoreTestServer.documents)/\(path)" }

  private static func commitAsAdministrator(_ client: GRPCTestClient, _ writes: [Proto.Write]) async throws {
    var request = Google_Firestore_V1_CommitRequest()
    request.database = FirestoreTestServer.database
    request.writes = writes
    let _: Google_Firestore_V1_CommitResponse = try await client.unary(
      "Commit", request, metadata: GRPCTestClient.administrator)
  }

  // MARK: Clients

  private func write(_ client: GRPCTestClient, _ tally: Tally) async throws {
    while !tally.isDone {
      let both = try await isAllowed {
        try await client.commit([.set("a/written", ["n": .int(1)]), .set("b/written", ["n": .int(1)])])
      }
      #expect(!both, "a commit to both collections")
      let function = try await isAllowed { try await client.commit([.set("both/x", [:])]) }
      #expect(!function, "a commit that two functions of different files allow")
      for collection in ["a", "b"] {
        tally.count(
          isAllowed: try await isAllowed { try await client.commit([.set("\(collection)/alone", [:])]) })
      }
    }
  }

  private func read(_ client: GRPCTestClient, _ tally: Tally) async throws {
    var get = Google_Firestore_V1_BatchGetDocumentsRequest()
    get.database = FirestoreTestServer.database
    get.documents = [Self.name("a/live"), Self.name("b/live")]
    var kinds = Google_Firestore_V1_RunQueryRequest.collection("kinds")
    kinds.structuredQuery.where.fieldFilter.field.fieldPath = "kind"
    kinds.structuredQuery.where.fieldFilter.op = .in
    kinds.structuredQuery.where.fieldFilter.value.arrayValue.values = [.text("a"), .text("b")]
    while !tally.isDone {
      let both = try await isAllowed {
        let _: [Google_Firestore_V1_BatchGetDocumentsResponse] = try await client.stream(
          "BatchGetDocuments", get)
      }
      #expect(!both, "a read of both collections")
      let alternatives = try await isAllowed { _ = try await client.query(kinds) }
      #expect(!alternatives, "a query with alternatives of both files")
      for kind in ["a", "b"] {
        let isAllowed = try await isAllowed {
          let found = try await client.query(.collection("kinds", where: "kind", is: .text(kind)))
          #expect(found.allSatisfy { !$0.hasDocument || $0.document.fields["kind"] == .text(kind) })
        }
        tally.count(isAllowed: isAllowed)
      }
      tally.count(
        isAllowed: try await isAllowed {
          let document = try await client.get("a/live")
          #expect(document.fields["text"]?.stringValue != Self.secret, "a read of the secret")
        })
    }
  }

  private func listen(_ client: GRPCTestClient, _ tally: Tally) async throws {
    while !tally.isDone {
      let call = try await client.open("Listen")
      try await call.send(
        Proto.Listen.with {
          $0.database = FirestoreTestServer.database
          $0.addTarget.targetID = 2
          $0.addTarget.documents.documents = [Self.name("a/live"), Self.name("b/live")]
        })
      try await call.send(
        Proto.Listen.with {
          $0.database = FirestoreTestServer.database
          $0.addTarget.targetID = 4
          $0.addTarget.query.parent = FirestoreTestServer.documents
          $0.addTarget.query.structuredQuery = .collection("a")
        })
      var removed: Set<Int32> = []
      while removed.count < 2 {
        let response: Proto.ListenResponse = try await call.message()
        switch response.responseType {
        case .targetChange(let change) where change.targetChangeType == .remove:
          #expect(change.cause.code == 7)
          removed.formUnion(change.targetIds)
        case .targetChange(let change) where change.targetChangeType == .current:
          #expect(change.targetIds == [4], "a listen to both collections")
          tally.count(isAllowed: true)
        case .documentChange(let change):
          #expect(change.targetIds == [4], "a listen to both collections")
          #expect(change.document.fields["text"]?.stringValue != Self.secret, "a listen to the secret")
        default: break
        }
      }
      tally.count(isAllowed: false)
      try? await call.reset()
    }
  }

  // MARK: Rules

  /// Replaces the rules many times. Each file is in force when its upload returns. The last file denies access to
  /// both collections, which ends the listens.
  private func swap(_ server: FirestoreTestServer, _ tally: Tally) async throws {
    defer { tally.finish() }
    for _ in 0..<Self.swaps / 2 {
      for open in ["a", "b"] {
        try await load(open, server)
        for collection in ["a", "b"] {
          let isOpen = try await isAllowed { _ = try await server.client.get("\(collection)/live") }
          #expect(isOpen == (collection == open))
        }
        guard open == "b" else { continue }
        try await Self.commitAsAdministrator(server.client, [.set("a/live", ["text": .text(Self.secret)])])
        try await Self.commitAsAdministrator(server.client, [.set("a/live", ["text": .text("public")])])
      }
    }
    tally.finish()
    try await load(nil, server)
  }

  @Test("Every write, read, query and listen is decided by one rules file, not by a mixture of two files")
  func mixture() async throws {
    try await FirestoreTestServer.serving { server in
      try await Self.commitAsAdministrator(
        server.client,
        [
          .set("a/live", ["text": .text("public")]), .set("b/live", ["text": .text("public")]),
          .set("kinds/a", ["kind": .text("a")]), .set("kinds/b", ["kind": .text("b")]),
        ])
      try await load("a", server)
      let tally = Tally()
      let port = server.server.firestorePort ?? 0
      try await withThrowingTaskGroup(of: Void.self) { group in
        for work in [write, read, listen, listen] as [@Sendable (GRPCTestClient, Tally) async throws -> Void]
        {
          let client = try await GRPCTestClient.connect(port: port)
          group.addTask {
            do { try await work(client, tally) } catch {
              await client.close()
              throw error
            }
            await client.close()
          }
        }
        group.addTask { try await swap(server, tally) }
        try await group.waitForAll()
      }
      let counts = tally.counts
      print("rules replaced \(Self.swaps) times: \(counts.allowed) requests allowed, \(counts.denied) denied")
      #expect(counts.allowed > 0 && counts.denied > 0)
    }
  }
}
