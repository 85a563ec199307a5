// Tests backpressure: the client reads a stream only as fast as it handles the messages, and loses no
// message.

import FirestoreModel
import FirestoreProtobuf
import Foundation
import NIOCore
import SwiftProtobuf
import Testing

@testable import FirebaseFirestore

@Suite("Backpressure", .timeLimit(.minutes(5))) struct BackpressureTests {
  private static let documentBytes = 64 << 10
  private static let documentCount = 192

  /// Messages with 12 MiB of documents, which make the target current.
  private func largeResult(_ target: Int32, _ database: DatabaseName) -> [Google_Firestore_V1_ListenResponse]
  {
    let root = ParentName(rootOf: database).description
    let text = String(repeating: "x", count: Self.documentBytes)
    let documents = (0..<Self.documentCount).map { number in
      Google_Firestore_V1_ListenResponse.with {
        $0.documentChange.targetIds = [target]
        $0.documentChange.document.name = "\(root)/flood/d\(number)"
        $0.documentChange.document.createTime.seconds = 1
        $0.documentChange.document.updateTime.seconds = 1
        $0.documentChange.document.fields["text"] = .with { $0.stringValue = text }
      }
    }
    let added = Google_Firestore_V1_ListenResponse.with {
      $0.targetChange.targetChangeType = .add
      $0.targetChange.targetIds = [target]
    }
    let current = Google_Firestore_V1_ListenResponse.with {
      $0.targetChange.targetChangeType = .current
      $0.targetChange.targetIds = [target]
      $0.targetChange.resumeToken = Data([1])
    }
    let consistent = Google_Firestore_V1_ListenResponse.with { $0.targetChange.readTime.seconds = 2 }
    return [added] + documents + [current, consistent]
  }

  @Test("a server can send at most two stream windows and one message ahead of the client")
  func boundedReadAhead() async throws {
    let server = try ListenServer()
    defer { server.stop() }
    let firestore = TestClient.make(port: server.port)
    let sizes = Recorder<Int>()
    let listener = firestore.collection("flood").addSnapshotListener { snapshot, _ in
      if let snapshot, !snapshot.metadata.isFromCache { sizes.add(snapshot.count) }
    }
    let listen = try await server.listens.first { _ in true }

    // Blocks the client's queue, as a cache that waits for the disk would.
    let client = firestore.client
    let gate = DispatchSemaphore(value: 0)
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      client.event { _ in
        continuation.resume()
        gate.wait()
      }
    }
    try server.send(largeResult(listen.target, client.database), on: listen)
    // Each call waits for earlier traffic of the same connection: its request follows the window updates that the client has
    // sent, and its response follows the bytes that the server has sent.
    for _ in 0..<300 { try await commitNothing(client.datastore) }
    let messageBytes = Self.documentBytes + 1_024
    #expect(server.sentBytes <= 2 * ClientGRPCCall.windowBytes + messageBytes)

    gate.signal()
    #expect(try await sizes.first { _ in true } == Self.documentCount)
    listener.remove()
    try await firestore.terminate()
  }

  private func commitNothing(_ datastore: Datastore) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      datastore.commit([]) { error in
        if let error { continuation.resume(throwing: error) } else { continuation.resume() }
      }
    }
  }

  private enum Seen: Equatable { case opened, message(Int64), ended(StatusCode) }

  @Test(
    "a call that the server ends delivers every message before its end, even if the client confirms none",
    arguments: [true, false])
  func end(confirms: Bool) async throws {
    let server = try ListenServer()
    defer { server.stop() }
    let address = try #require(ServerAddress("127.0.0.1:\(server.port)", isEncrypted: false))
    let connection = ClientGRPCConnection(address)
    let seen = Recorder<Seen>()
    let call = connection.call("Listen", metadata: [], credentials: CallCredentials()) { call, event in
      switch event {
      case .opened: seen.add(.opened)
      case .message(let buffer):
        let message = try? Google_Firestore_V1_ListenResponse(
          serializedBytes: Array(buffer.readableBytesView))
        seen.add(.message(message?.targetChange.readTime.seconds ?? -1))
        if confirms { call.messageHandled() }
      case .ended(let error): seen.add(.ended(error.code))
      }
    }
    call.send(try Google_Firestore_V1_ListenRequest.with { $0.addTarget.targetID = 2 }.serializedBytes())
    // Once client and server have ended their sides of the stream, it closes at once, even if the client does not read.
    if !confirms { call.finishSending() }
    let listen = try await server.listens.first { _ in true }
    for number in 0..<100 as Range<Int64> {
      try server.send([.with { $0.targetChange.readTime.seconds = number }], on: listen)
    }
    server.end(listen, status: 14)
    _ = try await seen.first { $0 == .ended(.unavailable) }
    #expect(seen.all == [.opened] + (0..<100).map { .message($0) } + [.ended(.unavailable)])
    connection.shutDown()
  }
}
