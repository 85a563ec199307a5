// Tests connections: host names with several addresses, and TLS with trusted and untrusted authorities.

import FirebaseCore
import FirestoreModel
import Foundation
import HearthServer
import NIOCore
import NIOPosix
import ServerFixture
import Testing

@testable import FirebaseFirestore

/// Resolves every name to two addresses. No server listens on the first one.
private final class TwoAddresses: Resolver, Sendable {
  private let loop: any EventLoop
  private let port: Int

  init(_ loop: any EventLoop, port: Int) {
    self.loop = loop
    self.port = port
  }

  func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
    loop.makeCompletedFuture { [try SocketAddress(ipAddress: "::1", port: 1)] }
  }

  func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
    loop.makeCompletedFuture { [try SocketAddress(ipAddress: "127.0.0.1", port: port)] }
  }

  func cancelQueries() {}
}

@Suite("Connections", .serialized, .timeLimit(.minutes(10))) struct ConnectionTests {
  @Test("the client connects to a host that has an unreachable and a reachable address")
  func severalAddresses() async throws {
    let server = TestServer()
    try await server.start()
    let port = await server.port
    let address = try #require(ServerAddress("two.example:\(port)", isEncrypted: false))
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let connection = ClientGRPCConnection(address, resolver: TwoAddresses(loop, port: port))
    let datastore = Datastore(
      database: .init(project: "demo-sdk"), appID: "", connection: connection)
    for _ in 0..<3 {
      try await deadline {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
          datastore.commit([]) { error in
            if let error { continuation.resume(throwing: error) } else { continuation.resume() }
          }
        }
      }
    }
    connection.shutDown()
    await server.stop()
  }

  private func makeTLSClient(_ host: String, _ port: Int) -> Firestore {
    let client = TestClient.make(port: port)
    let settings = client.settings
    settings.host = "\(host):\(port)"
    settings.isSSLEnabled = true
    client.settings = settings
    return client
  }

  @Test("the client connects over TLS only if the server's certificate is trusted and matches the host")
  func tls()
    async throws
  {
    let (serverAuthority, otherAuthority) = (try CertificateAuthority(), try CertificateAuthority())
    defer {
      unsetenv(TrustRoots.variable)
      serverAuthority.remove()
      otherAuthority.remove()
    }
    func files(_ names: [String], _ addresses: [String]) throws -> HearthConfiguration.TLSFiles {
      let files = try serverAuthority.issue(names: names, addresses: addresses)
      return .init(certificate: files.certificate, key: files.key)
    }
    let server = TestServer(tls: try files(["localhost"], ["127.0.0.1"]))
    try await server.start()
    let port = await server.port

    setenv(TrustRoots.variable, serverAuthority.certificateFile, 1)
    for host in ["localhost", "127.0.0.1"] {
      let client = makeTLSClient(host, port)
      let received = Recorder<String>()
      let document = client.document("tls/\(host)")
      let listener = document.addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
        guard let snapshot, !snapshot.metadata.isFromCache else { return }
        if let text = snapshot.get("text") as? String { received.add(text) }
      }
      try await deadline(15) { try await client.document("tls/\(host)").setData(["text": host]) }
      #expect(try await received.first(within: 15) { _ in true } == host)
      let read = try await deadline(15) {
        try await client.document("tls/\(host)").getDocument(source: .server)
      }
      #expect(read.get("text") as? String == host)
      listener.remove()
    }

    // Two rejected cases: the certificate's authority is not trusted, and the file of trusted authorities is
    // missing.
    setenv(TrustRoots.variable, otherAuthority.certificateFile, 1)
    try await expectUnavailable(makeTLSClient("localhost", port))
    setenv(TrustRoots.variable, "/nowhere/none.pem", 1)
    try await expectUnavailable(makeTLSClient("localhost", port))
    await server.stop()

    // A third rejected case: the certificate is trusted, but it is for another host.
    setenv(TrustRoots.variable, serverAuthority.certificateFile, 1)
    let other = TestServer(tls: try files(["other.example"], []))
    try await other.start()
    try await expectUnavailable(makeTLSClient("localhost", await other.port))
    try await expectUnavailable(makeTLSClient("127.0.0.1", await other.port))
    await other.stop()

    let plaintextServer = TestServer()
    try await plaintextServer.start()
    try await expectUnavailable(makeTLSClient("localhost", await plaintextServer.port))
    await plaintextServer.stop()
  }

  private func expectUnavailable(_ client: Firestore) async throws {
    await #expect {
      try await deadline(30) { try await client.document("tls/x").getDocument(source: .server) }
    } throws: { ($0 as? FirestoreErrorCode)?.code == .unavailable }
  }
}
