// Tests of the budget of open files: many connections do not prevent the store from opening its files.

import EmbeddedStore
import Foundation
import NIOCore
import Testing

@Suite("Open files", .timeLimit(.minutes(10)))
struct OpenFileTests {
  @Test("Idle connections beyond the limit do not stop writes; after their end new connections are served")
  func manyIdleConnections() async throws {
    let data = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: data) }
    let process = try HearthProcess(
      ["serve", "--data", data, "--emulator", "--firestore-port", "0", "--database-port", "0"], openFiles: 200
    )
    try await process.wait(for: "ready\n")
    let port = try process.port(of: "Realtime Database")
    let writer = try await PlainRequest.connect(port)
    let firestore = try process.port(of: "Cloud Firestore")
    var idle: [any Channel] = []
    for _ in 0..<300 { idle.append(try await PlainRequest.connect(firestore).channel) }
    // These values exceed the size of one log, so the store must open new files.
    let value = String(repeating: "x", count: 1_000_000)
    let count = 24
    for number in 1...count {
      let end = number == count ? "Connection: close\r\n" : ""
      let header = "PUT /rows/\(number).json?ns=demo HTTP/1.1\r\nHost: localhost\r\n\(end)"
      let request = "\(header)Content-Length: \(value.utf8.count + 2)\r\n\r\n\"\(value)\""
      try await writer.channel.writeAndFlush(ByteBuffer(string: request))
    }
    let responses = try await writer.received.get()
    #expect(responses.components(separatedBy: "HTTP/1.1 200 ").count - 1 == count, "\(process.errors)")
    for channel in idle { channel.close(promise: nil) }
    var response = ""
    let deadline = ContinuousClock.now + .seconds(120)
    while !response.hasPrefix("HTTP/1.1 200 "), ContinuousClock.now < deadline {
      response = try await PlainRequest.send(port, "PUT /after.json?ns=demo", "true")
    }
    #expect(response.hasPrefix("HTTP/1.1 200 "), "\(response)")
    process.signal(SIGTERM)
    #expect(await process.wait() == 0)
  }

  @Test(
    "The tables of the store and the connections together never exceed the limit of open files",
    arguments: [128, 200, 1024, 20_000, 1 << 20])
  func sharesFitTheLimit(limit: Int) {
    let files = OpenFileBudget(limit: limit)
    #expect(files.tables >= 20 && files.connections >= 1)
    #expect(files.tables + files.connections < limit)
    #expect(files.connections >= limit / 16)
  }
}
