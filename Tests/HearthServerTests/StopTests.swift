// Tests of stopping a `hearth serve` process. The process must end within the promised ten seconds, under any client
// behaviour and load, with every acknowledged write on disk.

import Foundation
import NIOConcurrencyHelpers
import NIOCore
import Testing

@Suite("Stopping hearth serve", .timeLimit(.minutes(10)))
struct StopTests {
  /// The maximum time for a stop in these tests. This time is far above the promised ten seconds, because test machines may
  /// be busy. This time is also far below the time for which the server would run if it waited for these tests' clients.
  private static let stopTimeout = Duration.seconds(90)

  private func start(_ data: String) async throws -> HearthProcess {
    let process = try HearthProcess(
      ["serve", "--data", data, "--emulator", "--firestore-port", "0", "--database-port", "0"])
    try await process.wait(for: "ready\n")
    return process
  }

  /// Writes increasing numbers until the server rejects a write or ends.
  /// - Returns: the last acknowledged number, and the task.
  private func startWriting(_ port: Int, writer: Int) -> (
    acknowledged: NIOLockedValueBox<Int>, task: Task<Void, Never>
  ) {
    let acknowledged = NIOLockedValueBox(0)
    let task = Task {
      while !Task.isCancelled {
        let next = acknowledged.withLockedValue { $0 + 1 }
        let response = try? await PlainRequest.send(
          port, "PUT /writers/\(writer).json?ns=acknowledged", "\(next)")
        guard response?.hasPrefix("HTTP/1.1 200 ") == true else { return }
        acknowledged.withLockedValue { $0 = next }
      }
    }
    return (acknowledged, task)
  }

  /// Stops a server under writes, and checks the deadline and that no acknowledged write is lost.
  /// - Returns: the exit code.
  private func stop(_ process: HearthProcess, _ data: String) async throws -> Int32 {
    let port = try process.port(of: "Realtime Database")
    let writers = (0..<4).map { startWriting(port, writer: $0) }
    for writer in writers {
      let deadline = ContinuousClock.now + .seconds(120)
      while writer.acknowledged.withLockedValue({ $0 }) < 5, ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(10))
      }
    }
    let started = ContinuousClock.now
    process.signal(SIGTERM)
    let code = await process.wait()
    #expect(ContinuousClock.now - started < Self.stopTimeout)
    for writer in writers { writer.task.cancel() }
    for writer in writers { await writer.task.value }
    let again = try await start(data)
    let newPort = try again.port(of: "Realtime Database")
    for (index, writer) in writers.enumerated() {
      let count = writer.acknowledged.withLockedValue { $0 }
      #expect(count >= 5)
      let response = try await PlainRequest.send(newPort, "GET /writers/\(index).json?ns=acknowledged")
      let stored = Int(response.split(separator: "\r\n").last ?? "") ?? 0
      // One more write than acknowledged may be stored, because its response may have been lost.
      #expect(
        stored == count || stored == count + 1, "writer \(index): \(count) acknowledged, \(stored) stored")
    }
    again.signal(SIGTERM)
    #expect(await again.wait() == 0)
    return code
  }

  @Test("With clients that never read, the server stops in time and loses no acknowledged write")
  func clientsThatNeverRead() async throws {
    let data = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: data) }
    let process = try await start(data)
    let port = try process.port(of: "Realtime Database")
    let value = "\"" + String(repeating: "x", count: 2 << 20) + "\""
    #expect(
      try await PlainRequest.send(port, "PUT /big.json?ns=demo&print=silent", value).hasPrefix(
        "HTTP/1.1 204 "))
    let get = "GET /big.json?ns=demo HTTP/1.1\r\nHost: localhost\r\n"
    var channels: [any Channel] = []
    for _ in 0..<3 {
      channels.append(
        try await PlainRequest.sendWithoutReading(
          port,
          PlainRequest.webSocketBytes(
            [#"{"r":1,"a":"q","b":{"p":"/big","h":""}}"#]
              + (2..<12).map { #"{"r":\#($0),"a":"g","b":{"p":"/big","q":{}}}"# })))
      channels.append(
        try await PlainRequest.sendWithoutReading(port, Array("\(get)Accept: text/event-stream\r\n\r\n".utf8))
      )
      channels.append(
        try await PlainRequest.sendWithoutReading(
          port, Array(String(repeating: "\(get)\r\n", count: 20).utf8)))
      channels.append(
        try await PlainRequest.sendWithoutReading(
          try process.port(of: "Cloud Firestore"), Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)))
    }
    let code = try await stop(process, data)
    #expect(code == 0 || code == 1)
    for channel in channels { channel.close(promise: nil) }
  }

  @Test("A server with minutes of queued work stops in time and loses no acknowledged write")
  func queuedWork() async throws {
    let data = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: data) }
    let process = try await start(data)
    let port = try process.port(of: "Realtime Database")
    let wide = "{" + (0..<60_000).map { "\"k\($0)\":\(($0 &* 7919) % 60_000)" }.joined(separator: ",") + "}"
    #expect(
      try await PlainRequest.send(port, "PUT /wide.json?ns=demo&print=silent", wide).hasPrefix(
        "HTTP/1.1 204 "))
    // Each of these thousands of listens makes the server sort the node again.
    var channels: [any Channel] = []
    for _ in 0..<8 {
      channels.append(
        try await PlainRequest.sendWithoutReading(
          port,
          PlainRequest.webSocketBytes(
            (1...1000).map {
              #"{"r":\#($0),"a":"q","b":{"p":"/wide","q":{"i":".value","l":\#($0),"vf":"r"},"t":\#($0),"h":""}}"#
            })))
    }
    let code = try await stop(process, data)
    // If work does not stop in time, the server abandons it and logs that.
    #expect(
      code == 0 || code == 1 && process.errors.contains("stopping took more than 9.5 s"),
      "exit \(code): \(process.errors.suffix(2000))")
    for channel in channels { channel.close(promise: nil) }
  }
}
