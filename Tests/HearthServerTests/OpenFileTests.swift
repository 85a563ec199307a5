// The files that a process may open are divided: a crowd of connections does not keep the store from opening its own.

import EmbeddedStore
import Foundation
import NIOCore
import Testing

@Suite("Open files", .timeLimit(.minutes(10)))
struct OpenFileTests {
  @Test("idle connections beyond all bounds do not stop writing, and new ones are served once they are gone")
  func crowd() async throws {
    let data = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: data) }
    let process = try HearthProcess(
      ["serve", "--data", data, "--emulator", "--firestore-port", "0", "--database-port", "0"], openFiles: 200
    )
    try await process.wait(for: "ready\n")
    let port = try process.port(of: "Realtime Database")
    let writer = try await PlainRequest.connection(port)
    let firestore = try process.port(of: "Cloud Firestore")
    var crowd: [any Channel] = []
    for _ in 0..<300 { crowd.append(try await PlainRequest.connection(firestore).channel) }
    // More than a log holds, so that the store needs new files.
    let text = String(repeating: "x", count: 1_000_000)
    let count = 24
    for number in 1...count {
      let end = number == count ? "Connection: close\r\n" : ""
      let head = "PUT /rows/\(number).json?ns=demo HTTP/1.1\r\nHost: localhost\r\n\(end)"
      let request = "\(head)Content-Length: \(text.utf8.count + 2)\r\n\r\n\"\(text)\""
      try await writer.channel.writeAndFlush(ByteBuffer(string: request))
    }
    let answers = try await writer.answers.get()
    #expect(answers.components(separatedBy: "HTTP/1.1 200 ").count - 1 == count, "\(process.errors)")
    for channel in crowd { channel.close(promise: nil) }
    var answer = ""
    for _ in 0..<1000 where !answer.hasPrefix("HTTP/1.1 200 ") {
      answer = try await PlainRequest.answer(port, "PUT /after.json?ns=demo", "true")
    }
    #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)")
    process.signal(SIGTERM)
    #expect(await process.wait() == 0)
  }

  @Test(
    "the store's share and the connections' never add up to more than there is",
    arguments: [128, 200, 1024, 20_000, 1 << 20])
  func division(limit: Int) {
    let files = OpenFileBudget(limit: limit)
    #expect(files.tables >= 20 && files.connections >= 1)
    #expect(files.tables + files.connections < limit)
    #expect(files.connections >= limit / 16)
  }
}
