// The end of the real process: within the ten seconds that it promises, whatever its clients do and whatever it is
// busy with, and with everything that it acknowledged on disk.

import Foundation
import NIOConcurrencyHelpers
import NIOCore
import Testing

@Suite("Stopping hearth serve", .timeLimit(.minutes(10)))
struct StopTests {
  /// Far more than the ten seconds that are promised, since machines may be busy; far less than what would hold it up.
  private static let patience = Duration.seconds(90)

  private func start(_ data: String) async throws -> HearthProcess {
    let process = try HearthProcess(
      ["serve", "--data", data, "--emulator", "--firestore-port", "0", "--database-port", "0"])
    try await process.wait(for: "ready\n")
    return process
  }

  /// Writes numbers one after the other until the server refuses or is gone; those that were acknowledged.
  private func writing(_ port: Int, lane: Int) -> (
    acknowledged: NIOLockedValueBox<Int>, task: Task<Void, Never>
  ) {
    let acknowledged = NIOLockedValueBox(0)
    let task = Task {
      while !Task.isCancelled {
        let next = acknowledged.withLockedValue { $0 + 1 }
        let answer = try? await PlainRequest.answer(
          port, "PUT /lanes/\(lane).json?ns=acknowledged", "\(next)")
        guard answer?.hasPrefix("HTTP/1.1 200 ") == true else { return }
        acknowledged.withLockedValue { $0 = next }
      }
    }
    return (acknowledged, task)
  }

  /// Stops a server while it is written to; the exit code, after checking the time and that nothing was lost.
  private func stop(_ process: HearthProcess, _ data: String) async throws -> Int32 {
    let port = try process.port(of: "Realtime Database")
    let lanes = (0..<4).map { writing(port, lane: $0) }
    for lane in lanes {
      let deadline = ContinuousClock.now + .seconds(120)
      while lane.acknowledged.withLockedValue({ $0 }) < 5, ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(10))
      }
    }
    let started = ContinuousClock.now
    process.signal(SIGTERM)
    let code = await process.wait()
    #expect(ContinuousClock.now - started < Self.patience)
    for lane in lanes { lane.task.cancel() }
    for lane in lanes { await lane.task.value }
    let again = try await start(data)
    let port2 = try again.port(of: "Realtime Database")
    for (index, lane) in lanes.enumerated() {
      let count = lane.acknowledged.withLockedValue { $0 }
      #expect(count >= 5)
      let answer = try await PlainRequest.answer(port2, "GET /lanes/\(index).json?ns=acknowledged")
      let stored = Int(answer.split(separator: "\r\n").last ?? "") ?? 0
      // One more may have been written whose answer did not get through.
      #expect(stored == count || stored == count + 1, "lane \(index): \(count) acknowledged, \(stored) there")
    }
    again.signal(SIGTERM)
    #expect(await again.wait() == 0)
    return code
  }

  @Test("Clients that never read do not hold up the end, and nothing acknowledged is lost")
  func deafClients() async throws {
    let data = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: data) }
    let process = try await start(data)
    let port = try process.port(of: "Realtime Database")
    let text = "\"" + String(repeating: "x", count: 2 << 20) + "\""
    #expect(
      try await PlainRequest.answer(port, "PUT /big.json?ns=demo&print=silent", text).hasPrefix(
        "HTTP/1.1 204 "))
    let get = "GET /big.json?ns=demo HTTP/1.1\r\nHost: localhost\r\n"
    var deaf: [any Channel] = []
    for _ in 0..<3 {
      deaf.append(
        try await PlainRequest.deaf(
          port,
          PlainRequest.socket(
            [#"{"r":1,"a":"q","b":{"p":"/big","h":""}}"#]
              + (2..<12).map { #"{"r":\#($0),"a":"g","b":{"p":"/big","q":{}}}"# })))
      deaf.append(try await PlainRequest.deaf(port, Array("\(get)Accept: text/event-stream\r\n\r\n".utf8)))
      deaf.append(try await PlainRequest.deaf(port, Array(String(repeating: "\(get)\r\n", count: 20).utf8)))
      deaf.append(
        try await PlainRequest.deaf(
          try process.port(of: "Cloud Firestore"), Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)))
    }
    let code = try await stop(process, data)
    #expect(code == 0 || code == 1)
    for channel in deaf { channel.close(promise: nil) }
  }

  @Test("A server that was asked for minutes of work leaves in time, and nothing acknowledged is lost")
  func longWork() async throws {
    let data = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
      .path
    defer { try? FileManager.default.removeItem(atPath: data) }
    let process = try await start(data)
    let port = try process.port(of: "Realtime Database")
    let wide = "{" + (0..<60_000).map { "\"k\($0)\":\(($0 &* 7919) % 60_000)" }.joined(separator: ",") + "}"
    #expect(
      try await PlainRequest.answer(port, "PUT /wide.json?ns=demo&print=silent", wide).hasPrefix(
        "HTTP/1.1 204 "))
    // Thousands of listens that each sort it anew.
    var deaf: [any Channel] = []
    for _ in 0..<8 {
      deaf.append(
        try await PlainRequest.deaf(
          port,
          PlainRequest.socket(
            (1...1000).map {
              #"{"r":\#($0),"a":"q","b":{"p":"/wide","q":{"i":".value","l":\#($0),"vf":"r"},"t":\#($0),"h":""}}"#
            })))
    }
    let code = try await stop(process, data)
    // Work that goes on regardless is left behind, and said to be.
    #expect(
      code == 0 || code == 1 && process.errors.contains("leaving took more than 9.5 s"),
      "exit \(code): \(process.errors.suffix(2000))")
    for channel in deaf { channel.close(promise: nil) }
  }
}
