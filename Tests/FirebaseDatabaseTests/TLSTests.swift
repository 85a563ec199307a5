// Tests the client over TLS. The server's certificate is signed by a certificate authority that the test
// creates.

import FirebaseCore
import Foundation
import HearthServer
import ServerFixture
import Testing

@testable import FirebaseDatabase

@Suite("Client over TLS", .serialized, .timeLimit(.minutes(10)))
struct TLSTests {
  private func start(_ files: CertificateAuthority.Files) async throws -> TestServer {
    var configuration = HearthConfiguration.forTesting()
    configuration.tls = .init(certificate: files.certificate, key: files.key)
    configuration.drainSeconds = 1
    let server = HearthServer(configuration)
    try await server.start()
    return TestServer(server: server, port: try #require(server.databasePort))
  }

  @Test("a trusted server is reached by name and by address", arguments: ["localhost", "127.0.0.1"])
  func trusted(host: String) async throws {
    let authority = try CertificateAuthority()
    defer { authority.remove() }
    let server = try await start(try authority.issue())
    setenv(TrustRoots.variable, authority.certificateFile, 1)
    let client = try Client(url: "https://\(host):\(server.port)?ns=tls")
    let long = String(repeating: "é", count: 100_000)
    try await within(15, "a write to \(host)") { [ref = client.ref] in
      _ = try await ref.child("x").setValue(["text": long])
    }
    #expect(try await client.ref.child("x/text").getData().value as? String == long)
    unsetenv(TrustRoots.variable)
    await server.stop([client])
  }

  @Test("a server with a certificate of another authority or for another name is rejected")
  func untrusted() async throws {
    let (authority, other) = (try CertificateAuthority(), try CertificateAuthority())
    defer { [authority, other].forEach { $0.remove() } }
    for (files, trusted) in [
      (try other.issue(), authority.certificateFile),
      (try authority.issue(names: ["example.org"], addresses: []), authority.certificateFile),
    ] {
      let server = try await start(files)
      setenv(TrustRoots.variable, trusted, 1)
      let client = try Client(url: "https://localhost:\(server.port)?ns=tls")
      // A read fails after three seconds without a connection.
      await #expect(throws: NSError.self) { try await client.ref.child("x").getData() }
      let connected = client.database.reference(withPath: ".info/connected").recordValues()
      #expect(try await connected.next() == "false")
      unsetenv(TrustRoots.variable)
      await server.stop([client])
    }
  }

  @Test("an unreadable file of trusted roots keeps the client offline and is logged")
  func unusableFile() async throws {
    let result = await #expect(processExitsWith: .success, observing: [\.standardErrorContent]) {
      setenv(TrustRoots.variable, "/nowhere/authority.pem", 1)
      let client = try Client(url: "https://localhost:1?ns=tls")
      await #expect(throws: NSError.self) { try await client.ref.child("x").getData() }
      await client.close()
    }
    let log = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(log.contains("/nowhere/authority.pem"))
  }
}
