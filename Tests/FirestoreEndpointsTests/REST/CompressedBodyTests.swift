// Tests of REST requests with compressed bodies.

import FirestoreProtobuf
import HearthServer
import NIOCore
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import Ports

@Suite("Compressed bodies", .timeLimit(.minutes(5)))
struct CompressedBodyTests {
  private static let docs = "/v1/" + FirestoreTestServer.documents

  private func post(
    _ connection: RawConnection, _ target: String, _ body: [UInt8], _ encoding: String, close: Bool = true
  ) async throws {
    let head =
      "POST \(target) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.count)\r\nContent-Encoding: \(encoding)\r\n"
      + (close ? "Connection: close\r\n" : "") + "\r\n"
    try await connection.send(Array(head.utf8) + body)
  }

  private func reply(
    _ server: FirestoreTestServer, _ target: String, _ body: [UInt8], _ encoding: String
  ) async throws -> RESTReply {
    let connection = try await RawConnection.connect(port: server.server.firestorePort ?? 0)
    try await post(connection, target, body, encoding)
    return try RESTClient.parse(try await connection.textUntilClose())
  }

  private func document(_ text: String) -> [UInt8] {
    Array(#"{"fields":{"t":{"stringValue":"\#(text)"}}}"#.utf8)
  }

  @Test(
    "a compressed body is read like an uncompressed one",
    arguments: [
      ("gzip", CompressionAlgorithm.gzip), ("GZIP", .gzip), ("x-gzip", .gzip), ("deflate", .deflate),
    ])
  func decompressed(encoding: String, algorithm: CompressionAlgorithm) async throws {
    try await FirestoreTestServer.serving { server in
      for (id, text) in [("small", "x"), ("large", String(repeating: "x", count: 900_000))] {
        let body = TestCompressor.compress(document(text), algorithm)
        let reply = try await reply(server, "\(Self.docs)/c?documentId=\(id)", body, encoding)
        #expect(reply.status == 200, "\(reply.body.prefix(300))")
        #expect(try await server.client.get("c/\(id)").fields["t"] == .text(text))
      }
      let plain = try await reply(server, "\(Self.docs)/c?documentId=plain", document("y"), "identity")
      #expect(plain.status == 200)
      // The encoding of an empty body is ignored.
      for encoding in ["gzip", "utf-8", "br"] {
        let none = try await server.rest(
          "GET", "\(Self.docs)/c/plain", headers: ["Content-Encoding: \(encoding)"])
        #expect(none.status == 200)
      }
    }
  }

  @Test("pipelined requests after a compressed one are served in order")
  func pipelined() async throws {
    try await FirestoreTestServer.serving { server in
      let connection = try await RawConnection.connect(port: server.server.firestorePort ?? 0)
      let large = String(repeating: "x", count: 900_000)
      try await post(
        connection, "\(Self.docs)/c?documentId=a", TestCompressor.compress(document(large)), "gzip",
        close: false)
      try await post(
        connection, "\(Self.docs)/c?documentId=b", TestCompressor.compress(document("b")), "gzip",
        close: false)
      try await post(connection, "\(Self.docs)/c?documentId=c", [1, 2, 3], "gzip", close: false)
      try await post(connection, "\(Self.docs)/c?documentId=d", document("d"), "identity")
      let text = try await connection.textUntilClose()
      let statuses = text.split(separator: "HTTP/1.1 ").map { String($0.prefix(3)) }
      #expect(statuses == ["200", "200", "400", "200"])
    }
  }

  @Test("a disconnect releases a body that waits for decompression, and other bodies are served")
  func disconnect() async throws {
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: 64 << 20)
    let echo = try await EchoPort.start(limits: limits)
    let noise = TestCompressor.compress((0..<(2 << 20)).map { _ in UInt8.random(in: 0...255) })
    try await BusyThreads.withBusyDecompression { busy in
      for _ in 0..<3 {
        let connection = try await RawConnection.connect(port: echo.port.port)
        try await post(connection, "\(Self.docs):commit", noise, "gzip")
        #expect(try await eventually { limits.memory.used > 1_900_000 })
        try await connection.reset()
        #expect(try await eventually { limits.memory.used == 0 })
      }
      let connection = try await RawConnection.connect(port: echo.port.port)
      try await post(connection, "\(Self.docs):commit", noise, "gzip")
      #expect(try await eventually { limits.memory.used > 1_900_000 })
      busy.free()
      // The decompressed body is not JSON.
      let reply = try RESTClient.parse(try await connection.textUntilClose())
      #expect(reply.status >= 400 && reply.status != 415)
      #expect(!reply.body.contains("cannot be decompressed"))
      #expect(try await eventually { limits.memory.used == 0 })
    }
    await echo.stop()
  }

  @Test("a body that decompresses beyond the limit gets the error of a large body")
  func bomb() async throws {
    try await FirestoreTestServer.serving { server in
      for bytes in [(10 << 20) + 1, 200 << 20] {
        let reply = try await reply(server, "\(Self.docs):commit", TestCompressor.bomb(bytes), "gzip")
        #expect(reply.status == 400)
        #expect(
          reply.error["message"] == .string("Request payload size exceeds the limit: 10485760 bytes."))
      }
    }
  }

  @Test("a corrupt body gets 400; an unsupported encoding gets 415 with the names of the supported encodings")
  func invalid() async throws {
    try await FirestoreTestServer.serving { server in
      let compressed = TestCompressor.compress(Array("{}".utf8))
      for body in [Array(compressed.dropLast()), compressed + [0], [1, 2, 3], Array("{}".utf8)] {
        let reply = try await reply(server, "\(Self.docs):commit", body, "gzip")
        #expect(reply.status == 400 && reply.error["status"] == .string("INVALID_ARGUMENT"))
        #expect(reply.error["message"].string?.contains("cannot be decompressed") == true)
      }
      #expect(try await reply(server, "\(Self.docs):commit", compressed, "gzip").status == 200)
      for encoding in ["br", "gzip, gzip", "gzip, br"] {
        let reply = try await reply(server, "\(Self.docs):commit", compressed, encoding)
        #expect(reply.status == 415 && reply.headers["accept-encoding"] == "gzip, deflate")
        #expect(reply.error["code"] == .int(415))
      }
    }
  }
}
