// Connections: names with several addresses, and encryption with authorities that are trusted or not.

import FirestoreModel
import Foundation
import HearthServer
import NIOCore
import NIOPosix
import Testing

@testable import FirebaseFirestore

/// Finds two addresses for every name, of which nobody listens on the first.
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

/// Certificates made by the system's openssl for one run.
private struct Certificates {
  let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-tls-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  private func openssl(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments
    process.standardError = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "openssl \(arguments.joined(separator: " "))")
  }

  func authority(_ name: String) throws {
    try openssl(
      ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        + ["-subj", "/CN=\(name)", "-keyout", path("\(name).key"), "-out", path("\(name).pem")])
  }

  func server(_ name: String, names: String, by authority: String) throws -> HearthConfiguration.TLSFiles {
    try Data("subjectAltName=\(names)\n".utf8).write(to: folder.appendingPathComponent("\(name).ext"))
    try openssl(
      ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=server"]
        + ["-keyout", path("\(name).key"), "-out", path("\(name).csr")])
    try openssl(
      ["x509", "-req", "-in", path("\(name).csr"), "-CA", path("\(authority).pem"), "-CAkey"]
        + [path("\(authority).key"), "-CAcreateserial", "-days", "2", "-extfile", path("\(name).ext")]
        + ["-out", path("\(name).pem")])
    return .init(certificate: path("\(name).pem"), key: path("\(name).key"))
  }
}

@Suite(.serialized, .timeLimit(.minutes(3))) struct ConnectionTests {
  @Test func aNameWithADeadAddressAndALiveOneIsReached() async throws {
    let server = TestServer()
    try await server.start()
    let port = await server.port
    let address = try #require(ServerAddress("two.example:\(port)", isEncrypted: false))
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let connection = GRPCConnection(address, resolver: TwoAddresses(loop, port: port))
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

  private func encrypted(_ host: String, _ port: Int) -> Firestore {
    let client = TestClient.make(port: port)
    let settings = client.settings
    settings.host = "\(host):\(port)"
    settings.isSSLEnabled = true
    client.settings = settings
    return client
  }

  @Test func anEncryptedServerIsReachedWhereItsAuthorityIsTrustedAndNotElsewhere() async throws {
    let certificates = try Certificates()
    defer {
      unsetenv(ServerTrust.variable)
      try? FileManager.default.removeItem(at: certificates.folder)
    }
    try certificates.authority("ours")
    try certificates.authority("theirs")
    let files = try certificates.server("good", names: "DNS:localhost,IP:127.0.0.1", by: "ours")
    let server = TestServer(tls: files)
    try await server.start()
    let port = await server.port

    setenv(ServerTrust.variable, certificates.path("ours.pem"), 1)
    for host in ["localhost", "127.0.0.1"] {
      let client = encrypted(host, port)
      let heard = Recorder<String>()
      let document = client.document("tls/\(host)")
      let listener = document.addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
        guard let snapshot, !snapshot.metadata.isFromCache else { return }
        if let text = snapshot.get("text") as? String { heard.add(text) }
      }
      try await deadline { try await client.document("tls/\(host)").setData(["text": host]) }
      #expect(try await heard.first { _ in true } == host)
      let read = try await deadline { try await client.document("tls/\(host)").getDocument(source: .server) }
      #expect(read.get("text") as? String == host)
      listener.remove()
    }

    // Another authority, and a server that speaks in clear where encryption is expected.
    setenv(ServerTrust.variable, certificates.path("theirs.pem"), 1)
    try await expectUnavailable(encrypted("localhost", port))
    setenv(ServerTrust.variable, certificates.path("none.pem"), 1)
    try await expectUnavailable(encrypted("localhost", port))
    await server.stop()

    // A certificate for another name.
    setenv(ServerTrust.variable, certificates.path("ours.pem"), 1)
    let other = TestServer(tls: try certificates.server("bad", names: "DNS:other.example", by: "ours"))
    try await other.start()
    try await expectUnavailable(encrypted("localhost", await other.port))
    try await expectUnavailable(encrypted("127.0.0.1", await other.port))
    await other.stop()

    let clear = TestServer()
    try await clear.start()
    try await expectUnavailable(encrypted("localhost", await clear.port))
    await clear.stop()
  }

  private func expectUnavailable(_ client: Firestore) async throws {
    await #expect {
      try await deadline(30) { try await client.document("tls/x").getDocument(source: .server) }
    } throws: { ($0 as? FirestoreErrorCode)?.code == .unavailable }
  }
}
