// Tests the emulator hub, where tools and test libraries look up the emulators.

import HearthServer
import JSON
import RealtimeModel
import Testing

@testable import EndpointFixture

@Suite("Emulator hub", .timeLimit(.minutes(10)))
struct EmulatorHubTests {
  private func withHub(_ body: (FirestoreTestServer, Int) async throws -> Void) async throws {
    try await FirestoreTestServer.serving {
      $0.hub = .init(port: 0)
    } _: { server in
      try await body(server, try #require(server.server.hubPort))
    }
  }

  @Test("The hub lists the emulators and itself with their addresses")
  func emulators() async throws {
    try await withHub { server, port in
      let reply = try await RESTClient.request(
        port, "GET", "/emulators", headers: ["Origin: http://localhost:3000"])
      #expect(reply.status == 200 && reply.json.keys == ["database", "firestore", "hub"])
      #expect(reply.headers["access-control-allow-origin"] == "http://localhost:3000")
      let ports = [server.server.firestorePort, server.server.databasePort, port]
      for (name, port) in zip(["firestore", "database", "hub"], ports) {
        let emulator = reply.json[name]
        #expect(emulator["name"] == .string(name) && emulator["host"] == .string("127.0.0.1"))
        let expected = try #require(port)
        #expect(
          emulator["port"] == .int(Int64(expected)) && emulator["port"] == emulator["listen"][0]["port"])
      }
    }
  }

  @Test("The hub returns its description, and serves the requests of test libraries")
  func root() async throws {
    try await withHub { _, port in
      let root = try await RESTClient.request(port, "GET", "/").json
      #expect(root["port"] == .int(Int64(port)) && root["version"].string != nil)
      #expect(root["origins"][0] == .string("http://127.0.0.1:\(port)"))
      for (path, enabled) in [("disable", false), ("enable", true)] {
        let reply = try await RESTClient.request(
          port, "PUT", "/functions/\(path)BackgroundTriggers", body: "")
        #expect(reply.status == 200 && reply.json["enabled"].value == .bool(enabled))
      }
      #expect(try await RESTClient.request(port, "GET", "/none").status == 404)
    }
  }

  @Test("The hub picks another port if the default is in use; production has no hub")
  func ports() async throws {
    try await withHub { _, port in
      try await FirestoreTestServer.serving {
        $0.hub = .init(port: port)
      } _: { second in
        #expect(second.server.hubPort != nil && second.server.hubPort != port)
      }
      await #expect(throws: HearthError.self) {
        try await FirestoreTestServer.serving {
          $0.hub = .init(port: port)
          $0.hubPortIsFixed = true
        } _: { _ in
        }
      }
      try await FirestoreTestServer.serving {
        $0.emulator = false
        $0.hub = .init(port: 0)
      } _: { production in
        #expect(production.server.hubPort == nil)
      }
    }
  }
}
