// Realtime Database writes: their throughput, also in a growing database and with many listeners.

import Foundation
import NIOConcurrencyHelpers
import NIOCore

/// The number of requests in flight on each writing connection.
private let writesInFlight = 8

/// Durable writes per second by `connections` connections, each to its own keys.
func durableWrites(_ setting: Setting, connections: Int) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: true)
  defer { server.stop() }
  return try await hearthWrites(server, setting, connections: connections) { client, n in
    "/bench/c\(client)/k\(n % 1000)"
  }
}

/// Text frames per second that a bare WebSocket echo returns, for the same messages.
func bareEcho(_ setting: Setting, connections: Int) async throws -> Double {
  let server = try setting.startBare("bare-echo")
  defer { server.stop() }
  return try await writeRate(
    server, setting, path: "/", connections: connections, acknowledgement: #""a":"p""#
  ) { client, n in write(n, at: "/bench/c\(client)/k\(n % 1000)") }
}

/// Durable writes per second while other connections listen to other locations, one each.
func writesWithOtherListeners(_ setting: Setting, listeners: Int) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: true)
  defer { server.stop() }
  let answered = SharedCounter()
  var held: [WebSocketConnection] = []
  for n in 0..<listeners {
    let connection = try await WebSocketConnection.connect(
      port: server.port, path: "/.ws?v=5&ns=bench", on: setting.group
    ) { text, _ in if text.contains(#""s":"ok""#) { answered.add() } }
    connection.send(#"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/elsewhere/\#(n)","h":""}}}"#)
    held.append(connection)
  }
  try await waitUntil("\(answered.value) of \(listeners) listens answered") { answered.value >= listeners }
  let rate = try await hearthWrites(server, setting, connections: 100) { client, n in
    "/bench/c\(client)/k\(n % 1000)"
  }
  await close(held)
  return rate
}

/// Durable writes per second to leaves all over a database of a given size.
func writesToDatabase(_ setting: Setting, megabytes: Int) async throws -> Double {
  let directory = try await loadedJSONDirectory(setting, megabytes: megabytes)
  let server = try setting.startHearth(["--data", directory], database: true)
  defer { server.stop() }
  // Background work of the import is not counted.
  try await server.waitUntilIdle()
  let records = JSONRecords.count(megabytes: megabytes)
  return try await hearthWrites(server, setting, connections: 100) { client, n in
    let scrambled = UInt64(client << 32 | n) &* 0x9E37_79B9_7F4A_7C15
    return "/data/" + JSONRecords.path(Int(scrambled >> 20) % records) + "/name"
  }
}

/// A put of a text of some thirty characters.
func write(_ number: Int, at path: String) -> String {
  #"{"t":"d","d":{"r":\#(number),"a":"p","b":{"p":"\#(path)","d":"a text of some thirty characters, \#(number)"}}}"#
}

private func hearthWrites(
  _ server: ChildProcess, _ setting: Setting, connections: Int,
  at path: @escaping @Sendable (_ client: Int, _ number: Int) -> String
) async throws -> Double {
  try await writeRate(
    server, setting, path: "/.ws?v=5&ns=bench", connections: connections, acknowledgement: #""s":"ok""#
  ) { client, n in write(n, at: path(client, n)) }
}

/// Answered messages per second.
///
/// - Parameter greeting: the first message of each connection, such as its credential; nil for none.
func writeRate(
  _ server: ChildProcess, _ setting: Setting, path: String, connections: Int, acknowledgement: String,
  greeting: String? = nil,
  message: @escaping @Sendable (_ client: Int, _ number: Int) -> String
) async throws -> Double {
  let done = SharedCounter()
  let rejection = NIOLockedValueBox<String?>(nil)
  var clients: [WebSocketConnection] = []
  for client in 0..<connections {
    let number = NIOLockedValueBox(0)
    let connection = try await WebSocketConnection.connect(port: server.port, path: path, on: setting.group) {
      text, channel in
      guard text.contains(acknowledgement) else {
        if text.contains(#""s":"#) { rejection.withLockedValue { $0 = String(buffer: text) } }
        return
      }
      done.add()
      let n = number.withLockedValue { (n: inout Int) -> Int in
        n += 1
        return n
      }
      channel.writeAndFlush(
        WebSocketFrameFactory.text(ByteBuffer(string: message(client, n))), promise: nil)
    }
    clients.append(connection)
    if let greeting { connection.send(greeting) }
    for _ in 0..<writesInFlight {
      let n = number.withLockedValue { (n: inout Int) -> Int in
        n += 1
        return n
      }
      connection.send(message(client, n))
    }
  }
  try await Task.sleep(for: .seconds(min(1, setting.seconds / 3)))
  let processor = ProcessorTime(server)
  let before = done.value
  let start = ContinuousClock.now
  try await Task.sleep(for: .seconds(setting.seconds))
  let count = done.value - before
  let elapsed = (ContinuousClock.now - start).seconds
  processor.report(calls: count, in: setting)
  await close(clients)
  // The server's greeting also has an "s", the session's name, but no request number.
  if let text = rejection.withLockedValue({ $0 }), text.contains(#""r":"#) {
    throw BenchmarkFailure("a write was rejected: \(text.prefix(200))")
  }
  return Double(count) / elapsed
}
