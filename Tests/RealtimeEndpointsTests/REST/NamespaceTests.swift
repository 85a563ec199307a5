// Tests which database a request without the parameter `ns` uses.

import Access
import Testing

@testable import EndpointFixture
@testable import Ports
@testable import RealtimeEndpoints

@Suite("The database of a request", .timeLimit(.minutes(1)))
struct NamespaceTests {
  @Test(
    "The host names the database by its first label, unless it is an address",
    arguments: [
      ("blog.firebase.example", "blog"), ("Blog.firebase.example:9000", "blog"),
      ("localhost:9000", "default-ns"),
      ("blog.localhost", "default-ns"), ("127.0.0.1:9000", "default-ns"), ("10.0.2.2", "default-ns"),
      ("[::1]:9000", "default-ns"),
    ])
  func hosts(host: String, namespace: String) async throws {
    try await RealtimeTestServer.run { server in
      let client = try await RawClient.connect(server.port.port)
      try await client.send(
        "PUT /a.json HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1")
      #expect(String(decoding: await client.readToEnd(), as: UTF8.self).hasPrefix("HTTP/1.1 200 "))
      let reader = try await RawClient.connect(server.port.port)
      try await reader.send("GET /a.json?ns=\(namespace) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      #expect(String(decoding: await reader.readToEnd(), as: UTF8.self).hasSuffix("\r\n\r\n1"))
    }
  }
}
