// Tests that idle Firestore streams of a production server end when the credentials of their callers are revoked.

import FirestoreProtobuf
import GRPCFraming
import HearthServer
import SwiftProtobuf
import Testing

@testable import EndpointFixture

@Suite("Revocation reaches idle Firestore streams", .serialized, .timeLimit(.minutes(5)))
struct FirestoreStreamRevocationTests {
  private typealias WriteRequest = Google_Firestore_V1_WriteRequest
  private typealias ListenRequest = Google_Firestore_V1_ListenRequest

  private static let database = "projects/\(ProductionServer.project)/databases/(default)"
  /// The time within which a revocation must take effect.
  private static let maximumDelay = Duration.seconds(1)

  /// Opens a Write stream that has sent the response to its handshake.
  private func writeStream(_ client: GRPCTestClient, _ token: String) async throws -> GRPCTestCall {
    let call = try await client.open("Write", metadata: [("authorization", "Bearer " + token)])
    try await call.send(WriteRequest.with { $0.database = Self.database })
    let _: Google_Firestore_V1_WriteResponse = try await call.message()
    return call
  }

  /// Opens a Listen stream whose target is confirmed.
  private func listenStream(_ client: GRPCTestClient, _ token: String) async throws -> GRPCTestCall {
    let call = try await client.open("Listen", metadata: [("authorization", "Bearer " + token)])
    try await call.send(
      ListenRequest.with {
        $0.database = Self.database
        $0.addTarget.targetID = 1
        $0.addTarget.documents.documents = [Self.database + "/documents/a/b"]
      })
    let _: Google_Firestore_V1_ListenResponse = try await call.message()
    return call
  }

  /// Opens the back channel of a WebChannel session that has sent the response to its handshake.
  private func writeChannel(_ port: Int, _ token: String) async throws -> BackChannel {
    let (client, _) = try await WebChannelTestClient.handshake(
      port, "Write", [#"{"database":"\#(Self.database)"}"#], headers: "Authorization:Bearer \(token)\r\n")
    let channel = try await client.open(after: 0)
    #expect(try await channel.nextMessage()?.text.contains("streamToken") == true)
    return channel
  }

  @Test(
    "Over gRPC and WebChannel, idle streams of a user end with UNAUTHENTICATED within a second, and streams of others stay open",
    arguments: AccountChange.allCases)
  func users(change: AccountChange) async throws {
    try await ProductionServer.with { server in
      let port = server.server.firestorePort ?? 0
      let admin = try await server.accessToken(server.account("admin"))
      let (user, other) = (try await server.signUp(), try await server.signUp())
      let client = try await GRPCTestClient.connect(port: port)
      let ending = [try await writeStream(client, user.token), try await listenStream(client, user.token)]
      let channel = try await writeChannel(port, user.token)
      let unaffected = [try await writeStream(client, other.token), try await writeStream(client, admin)]

      try await server.endSessions(of: user.id, by: change, admin: admin)
      let start = ContinuousClock.now
      for call in ending { #expect(try await call.status().code == .unauthenticated) }
      #expect(try await channel.nextMessage()?.text.contains("UNAUTHENTICATED") == true)
      #expect(ContinuousClock.now - start < Self.maximumDelay)

      for call in unaffected {
        #expect(!call.hasUnreadEvents)
        try await call.halfClose()
        #expect(try await call.status() == .ok)
      }
      await channel.close()
      await client.close()
    }
  }

  @Test("Idle streams of a revoked service account end with UNAUTHENTICATED within a second")
  func serviceAccounts() async throws {
    try await ProductionServer.with { server in
      let account = try await server.account("backend")
      let token = try await server.accessToken(account)
      let client = try await GRPCTestClient.connect(port: server.server.firestorePort ?? 0)
      let calls = [try await writeStream(client, token), try await listenStream(client, token)]
      try await server.credentials.revoke(email: account.email, keyID: nil)
      let start = ContinuousClock.now
      for call in calls { #expect(try await call.status().code == .unauthenticated) }
      #expect(ContinuousClock.now - start < Self.maximumDelay)
      await client.close()
    }
  }
}
