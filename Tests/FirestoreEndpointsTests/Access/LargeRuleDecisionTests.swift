// Tests large requests under security rules over sockets: ordinary requests are allowed, and the limits of rules apply to a
// request as a whole.

import Access
import FirestoreModel
import FirestoreProtobuf
import Foundation
import OrderedStore
import Ports
import SecurityRules
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Large requests under rules", .timeLimit(.minutes(5))) struct LargeRuleDecisionTests {
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        function changes(keys) { return request.resource.data.diff(resource.data).affectedKeys().hasOnly(keys); }
        match /notes/{id} {
          allow update: if changes(['title']) || changes(['owner']) || changes(['time']) || changes(['n', 'at']);
        }
        match /users/{id} { allow write: if request.resource.data.last == request.time; }
        match /posts/{id} {
          allow create: if getAfter(/databases/$(database)/documents/users/u).data.last == request.time
            && !request.resource.data.text.matches('a*c');
        }
        match /groups/{id} { allow get: if !exists(/databases/$(database)/documents/d/$(id.split('-')[0])); }
      }
    }
    """

  private func withServer(_ body: (FirestoreTestPort) async throws -> Void) async throws {
    let policy = FirestoreRulesPolicy(try FirestoreRuleset(compiling: Self.rules))
    try await FirestoreTestPort.with(store: try MemoryStore(), policy: policy, body)
  }

  private func commit(
    _ port: FirestoreTestPort, _ writes: [Proto.Write], asOwner: Bool
  ) async throws -> Google_Firestore_V1_CommitResponse {
    var request = Google_Firestore_V1_CommitRequest()
    request.database = FirestoreTestServer.database
    request.writes = writes
    return try await port.client.unary(
      "Commit", request, metadata: asOwner ? GRPCTestClient.administrator : [])
  }

  @Test("a rule with affectedKeys() allows a commit of 450 masked updates of documents of 10 KB")
  func maskedUpdates() async throws {
    try await withServer { port in
      var fields = Dictionary(
        uniqueKeysWithValues: (0..<100).map {
          ("field\($0)", Proto.Value.text(String(repeating: "x", count: 100)))
        })
      fields["n"] = .int(1)
      let paths = (0..<450).map { "notes/n\($0)" }
      for start in stride(from: 0, to: paths.count, by: 150) {
        _ = try await commit(port, paths[start..<start + 150].map { .set($0, fields) }, asOwner: true)
      }
      func updates(_ field: String) -> [Proto.Write] {
        paths.map { path in
          var write = Proto.Write.set(path, [field: .int(2)])
          write.updateMask.fieldPaths = [field]
          return write
        }
      }
      let response = try await commit(port, updates("n"), asOwner: false)
      #expect(response.writeResults.count == 450)
      await #expect(throws: (any Error).self) {
        _ = try await self.commit(port, updates("field7"), asOwner: false)
      }
    }
  }

  @Test(
    "a commit is allowed if its rules are evaluated in several parts and compare a server timestamp with the request's time"
  )
  func serverTimestampInSeveralParts() async throws {
    try await withServer { port in
      let text = Proto.Value.text(String(repeating: "a", count: 60_000))
      var user = Proto.Write.set("users/u", [:])
      user.updateTransforms = [
        .with {
          $0.fieldPath = "last"
          $0.setToServerValue = .requestTime
        }
      ]
      let posts = (0..<9).map { Proto.Write.set("posts/p\($0)", ["text": text]) }
      let response = try await commit(port, [user] + posts, asOwner: false)
      #expect(response.writeResults.count == 10)
    }
  }

  @Test("for a BatchGetDocuments request with 600 names, rules may read 20 other documents, but not 21")
  func lookups() async throws {
    try await withServer { port in
      func status(_ groupCount: Int) async throws -> Int {
        let names = (0..<600).map {
          "\"\(FirestoreTestServer.documents)/groups/g\($0 * groupCount / 600)-\($0)\""
        }
        return try await RESTClient.request(
          port.port.port, "POST", "/v1/\(FirestoreTestServer.documents):batchGet",
          body: "{\"documents\":[\(names.joined(separator: ","))]}"
        ).status
      }
      let statuses = [try await status(20), try await status(21)]
      #expect(statuses == [200, 403])
    }
  }
}
