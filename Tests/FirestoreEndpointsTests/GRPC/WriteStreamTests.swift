// Tests the Write stream: handshake, pipelined batches, and each kind of end.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import NIOCore
import HearthServer
import OrderedStore
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Write stream over gRPC", .timeLimit(.minutes(10)))
struct WriteStreamTests {
  private typealias Request = Google_Firestore_V1_WriteRequest
  private typealias Response = Google_Firestore_V1_WriteResponse

  private func handshake(_ client: GRPCTestClient) async throws -> (GRPCTestCall, Response) {
    let call = try await client.open("Write")
    try await call.send(Request.with { $0.database = FirestoreTestServer.database })
    return (call, try await call.message())
  }

  @Test("The response to the handshake has only a stream id and a token")
  func handshakeAnswer() async throws {
    try await FirestoreTestServer.with { client in
      let (_, response) = try await handshake(client)
      #expect(!response.streamID.isEmpty)
      #expect(!response.streamToken.isEmpty)
      #expect(response.writeResults.isEmpty)
      #expect(!response.hasCommitTime)
    }
  }

  @Test("Ten batches in flight are committed and answered in order, each atomically")
  func pipelining() async throws {
    try await FirestoreTestServer.with { client in
      let (call, first) = try await handshake(client)
      for round in 0..<10 {
        try await call.send(
          Request.with {
            $0.streamToken = first.streamToken
            $0.writes = [.set("w/counter", ["n": .int(Int64(round))]), .delete("w/none")]
          })
      }
      var tokens = [first.streamToken]
      var lastTime: (Int64, Int32) = (0, 0)
      for _ in 0..<10 {
        let response: Response = try await call.message()
        #expect(response.writeResults.count == 2)
        #expect(response.hasCommitTime)
        #expect((response.commitTime.seconds, response.commitTime.nanos) > lastTime)
        lastTime = (response.commitTime.seconds, response.commitTime.nanos)
        tokens.append(response.streamToken)
      }
      #expect(Set(tokens).count == 11)
      #expect(try await client.get("w/counter").fields["n"] == .int(9))
      try await call.halfClose()
      #expect(try await call.status() == .ok)
    }
  }

  @Test("A failed batch ends the stream with its error; earlier batches are applied, later batches are not")
  func failingBatch() async throws {
    try await FirestoreTestServer.with { client in
      let (call, first) = try await handshake(client)
      let batches: [[Proto.Write]] = [
        [.set("w/first", ["n": .int(1)])],
        [.set("w/second", ["n": .int(2)]), .set("w/missing", ["n": .int(2)]).requiring(exists: true)],
        [.set("w/third", ["n": .int(3)])],
      ]
      for writes in batches {
        try await call.send(
          Request.with {
            $0.streamToken = first.streamToken
            $0.writes = writes
          })
      }
      let response: Response = try await call.message()
      #expect(response.writeResults.count == 1)
      #expect(try await call.status().code == .notFound)
      #expect(try await client.get("w/first").fields["n"] == .int(1))
      for path in ["w/second", "w/third"] {
        await #expect(throws: GRPCStatus.self) { try await client.get(path) }
      }
    }
  }

  @Test(
    "An invalid handshake ends the stream with the official error text",
    arguments: [
      "'database' must be set", "'writes' must not be set", "do not set stream ID",
      "'stream_token' must not be set",
      "lacks",
    ])
  func invalidHandshakes(message: String) async throws {
    var request = Request.with { $0.database = FirestoreTestServer.database }
    switch message {
    case "'database' must be set": request.database = ""
    case "'writes' must not be set": request.writes = [.delete("a/b")]
    case "do not set stream ID": request.streamID = "x"
    case "lacks": request.database = "nonsense"
    default: request.streamToken = Data([1])
    }
    try await FirestoreTestServer.with { client in
      let call = try await client.open("Write")
      try await call.send(request)
      let status = try await call.status()
      #expect(status.code == .invalidArgument)
      #expect(status.message.contains(message), "\(status.message)")
    }
  }

  @Test("An empty batch ends the stream with a token and OK")
  func emptyBatch() async throws {
    try await FirestoreTestServer.with { client in
      let (call, first) = try await handshake(client)
      try await call.send(Request.with { $0.streamToken = first.streamToken })
      let response: Response = try await call.message()
      #expect(!response.streamToken.isEmpty)
      #expect(try await call.status() == .ok)
    }
  }

  @Test("Another database on the same stream is INVALID_ARGUMENT")
  func otherDatabase() async throws {
    try await FirestoreTestServer.with { client in
      let (call, _) = try await handshake(client)
      try await call.send(
        Request.with {
          $0.database = "projects/demo-test/databases/other"
          $0.writes = [.set("a/b", [:])]
        })
      #expect(try await call.status().code == .invalidArgument)
    }
  }

  @Test(
    "A batch that waits too long for a lock ends the stream with ABORTED, and succeeds when retried"
  )
  func lockWait() async throws {
    try await FirestoreTestPort.with(store: try MemoryStore(), lockWait: 100_000) { server in
      let client = server.client
      var read = Google_Firestore_V1_BatchGetDocumentsRequest()
      read.database = FirestoreTestServer.database
      read.documents = ["\(FirestoreTestServer.documents)/w/locked"]
      read.newTransaction.readWrite = .init()
      let held: [Google_Firestore_V1_BatchGetDocumentsResponse] = try await client.stream(
        "BatchGetDocuments", read)
      let transaction = try #require(held.first).transaction

      let (call, first) = try await handshake(client)
      let batch = Request.with {
        $0.streamToken = first.streamToken
        $0.writes = [.set("w/locked", ["n": .int(1)])]
      }
      try await call.send(batch)
      #expect(try await call.status().code == .aborted)
      await #expect(throws: GRPCStatus.self) { try await client.get("w/locked") }

      try await client.commit([.set("w/other", [:])], transaction: transaction)
      let (secondCall, _) = try await handshake(client)
      try await secondCall.send(Request.with { $0.writes = batch.writes })
      let response: Response = try await secondCall.message()
      #expect(response.writeResults.count == 1)
      #expect(try await client.get("w/locked").fields["n"] == .int(1))
    }
  }

  @Test("Shutdown ends an idle stream with UNAVAILABLE")
  func shutdown() async throws {
    let server = try await FirestoreTestServer.start()
    let (call, _) = try await handshake(server.client)
    async let stopped: Void = server.server.stop()
    #expect(try await call.status().code == .unavailable)
    await stopped
  }
}
