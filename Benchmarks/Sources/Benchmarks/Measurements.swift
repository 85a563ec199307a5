// The four measurements of the first slice. Each runs once against Hearth and once against its reference; the caller
// interleaves the rounds and takes medians.

import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// Where the binaries are and how long one run lasts.
struct Setting: Sendable {
  var hearth: String
  var own: String
  var seconds: Double
  var group: any EventLoopGroup
  /// Where measurements leave the server's processor time for one call, in microseconds.
  let processorTimes = NIOLockedValueBox<[Double]>([])

  /// Starts Hearth on free ports; returns the process and the port of the asked-for database.
  func startHearth(_ storage: [String], database: Bool) throws -> ChildProcess {
    let ports = [
      "--host", "127.0.0.1", "--firestore-port", "0", "--database-port", "0", "--log-level", "error",
    ]
    return try ChildProcess(hearth, ["serve", "--emulator"] + storage + ports, ready: "ready") { line in
      guard line.lowercased().contains(database ? "realtime" : "firestore") else { return nil }
      return line.split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) }.last {
        $0 > 1024 && $0 < 65536
      }
    }
  }

  /// Starts one of this program's own bare servers.
  func startBare(_ command: String) throws -> ChildProcess {
    try ChildProcess(own, [command]) { line in line.hasPrefix("port ") ? Int(line.dropFirst(5)) : nil }
  }

  func temporaryDirectory() throws -> String {
    let path = NSTemporaryDirectory() + "hearth-bench-\(UInt64.random(in: 0...UInt64.max))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }
}

/// Unary calls per second: `connections` clients with `depth` calls in flight each.
private func unaryRate(
  _ server: ChildProcess, setting: Setting, connections: Int, depth: Int, path: String,
  body: @escaping @Sendable (_ client: Int, _ call: Int) -> ByteBuffer
) async throws -> Double {
  var clients: [GRPCConnection] = []
  for _ in 0..<connections {
    clients.append(try await GRPCConnection.connect(port: server.port, on: setting.group))
  }
  let done = ManagedAtomicCount()
  let failed = ManagedAtomicCount()
  let stop = NIOLockedValueBox(false)
  let warmUp = min(1, setting.seconds / 3)
  for (index, client) in clients.enumerated() {
    for lane in 0..<depth {
      let counter = NIOLockedValueBox(lane)
      @Sendable func next() {
        if stop.withLockedValue({ $0 }) { return }
        let call = counter.withLockedValue { (n: inout Int) -> Int in
          n += depth
          return n
        }
        client.call(path: path, body: body(index, call)).whenComplete { result in
          if case .success(let answer) = result, answer.status == 0 { done.add() } else { failed.add() }
          next()
        }
      }
      client.eventLoop.execute { next() }
    }
  }
  try await Task.sleep(for: .seconds(warmUp))
  let processorBefore = server.processorSeconds()
  let before = done.value
  let start = ContinuousClock.now
  try await Task.sleep(for: .seconds(setting.seconds))
  let count = done.value - before
  let elapsed = (ContinuousClock.now - start).seconds
  if let processorBefore, let processor = server.processorSeconds(), count > 0 {
    setting.processorTimes.withLockedValue { $0.append((processor - processorBefore) / Double(count) * 1e6) }
  }
  let failures = failed.value
  stop.withLockedValue { $0 = true }
  for client in clients { await client.close() }
  if failures > 0 { throw BenchmarkFailure("\(failures) calls to \(path) failed beside \(count)") }
  return Double(count) / elapsed
}

/// A counter shared by event loops.
final class ManagedAtomicCount: Sendable {
  private let box = NIOLockedValueBox(0)
  func add(_ n: Int = 1) { box.withLockedValue { $0 += n } }
  var value: Int { box.withLockedValue { $0 } }
}

/// Durable single-document commits per second by 64 gRPC clients.
func durableCommits(_ setting: Setting) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: false)
  defer { server.stop() }
  let requests = try CommitRequests(count: 512)
  return try await unaryRate(
    server, setting: setting, connections: 64, depth: 1, path: "/google.firestore.v1.Firestore/Commit"
  ) { client, call in requests.request(client << 32 | call) }
}

/// The bare engine's durable documents per second, in batches of 100.
func bareEngine(_ setting: Setting) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  return try BareEngine.documentsPerSecond(directory: directory, seconds: setting.seconds)
}

/// GetDocument calls per second, 8 connections of 16 calls in flight.
func getDocument(_ setting: Setting) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: false)
  defer { server.stop() }
  let writer = try await GRPCConnection.connect(port: server.port, on: setting.group)
  let put = try await writer.call(
    path: "/google.firestore.v1.Firestore/Commit", body: framed(BenchmarkDocument.commit(id: "bare", seed: 1))
  ).get()
  guard put.status == 0 else {
    throw BenchmarkFailure("the document could not be written: status \(put.status)")
  }
  await writer.close()
  return try await getDocumentRate(server, setting)
}

/// The same against a bare NIOHTTP2 handler with the same protobuf messages.
func bareGetDocument(_ setting: Setting) async throws -> Double {
  let server = try setting.startBare("bare-http2")
  defer { server.stop() }
  return try await getDocumentRate(server, setting)
}

private func getDocumentRate(_ server: ChildProcess, _ setting: Setting) async throws -> Double {
  let name = Array(BenchmarkDocument.name("bare").utf8)
  // GetDocumentRequest: field 1, the name.
  var request: [UInt8] = [0x0A, UInt8(name.count)]
  request += name
  let body = framed(request)
  return try await unaryRate(
    server, setting: setting, connections: 8, depth: 16,
    path: "/google.firestore.v1.Firestore/GetDocument"
  ) { _, _ in body }
}

/// Messages per second delivered to `listeners` connections that listen to one path, one writer with four writes in
/// flight.
func fanOut(_ setting: Setting, listeners: Int) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: true)
  defer { server.stop() }
  return try await fanOutRate(
    port: server.port, path: "/.ws?v=5&ns=bench", setting, listeners: listeners,
    subscribe: #"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/bench","h":""}}}"#,
    marker: "benchmark-payload", acknowledgement: #""s":"ok""#
  ) { n in
    #"{"t":"d","d":{"r":\#(n),"a":"p","b":{"p":"/bench","d":{"n":\#(n),"text":"benchmark-payload"}}}}"#
  }
}

/// The same against a bare broadcast that encodes nothing.
func bareFanOut(_ setting: Setting, listeners: Int) async throws -> Double {
  let server = try setting.startBare("bare-websocket")
  defer { server.stop() }
  return try await fanOutRate(
    port: server.port, path: "/", setting, listeners: listeners, subscribe: nil,
    marker: "benchmark-payload", acknowledgement: "benchmark-payload"
  ) { n in
    #"{"t":"d","d":{"b":{"p":"bench","d":{"n":\#(n),"text":"benchmark-payload"}},"a":"d"}}"#
  }
}

private func fanOutRate(
  port: Int, path: String, _ setting: Setting, listeners: Int, subscribe: String?, marker: String,
  acknowledgement: String, write: @escaping @Sendable (Int) -> String
) async throws -> Double {
  let delivered = ManagedAtomicCount()
  let subscribed = ManagedAtomicCount()
  var connections: [WebSocketConnection] = []
  for _ in 0..<listeners {
    let connection = try await WebSocketConnection.connect(port: port, path: path, on: setting.group) {
      text, _ in
      if text.contains(marker) {
        delivered.add()
      } else if text.contains(#""s":"ok""#) {
        subscribed.add()
      }
    }
    if let subscribe { connection.send(subscribe) }
    connections.append(connection)
  }
  if subscribe != nil {
    let deadline = ContinuousClock.now + .seconds(30)
    while subscribed.value < listeners {
      if ContinuousClock.now > deadline {
        throw BenchmarkFailure("\(subscribed.value) of \(listeners) listens answered")
      }
      try await Task.sleep(for: .milliseconds(20))
    }
  }
  let sequence = ManagedAtomicCount()
  let writer = try await WebSocketConnection.connect(port: port, path: path, on: setting.group) {
    text, channel in
    guard text.contains(acknowledgement) else { return }
    sequence.add()
    var bytes = channel.allocator.buffer(capacity: 128)
    bytes.writeString(write(sequence.value))
    channel.writeAndFlush(
      WebSocketFrameFactory.text(bytes), promise: nil)
  }
  for _ in 0..<4 {
    sequence.add()
    writer.send(write(sequence.value))
  }
  try await Task.sleep(for: .seconds(min(1, setting.seconds / 3)))
  let before = delivered.value
  let start = ContinuousClock.now
  try await Task.sleep(for: .seconds(setting.seconds))
  let rate = Double(delivered.value - before) / (ContinuousClock.now - start).seconds
  writer.close()
  for connection in connections { connection.close() }
  return rate
}

/// Bytes of the server's memory per idle connection that listens to one path.
func idleConnection(_ setting: Setting, connections: Int) async throws -> Double {
  let server = try setting.startHearth(["--ephemeral"], database: true)
  defer { server.stop() }
  return try await idleBytes(
    server, path: "/.ws?v=5&ns=bench", setting, connections,
    subscribe: #"{"t":"d","d":{"r":1,"a":"q","b":{"p":"/idle","h":""}}}"#)
}

/// The same of a bare WebSocket server.
func bareIdleConnection(_ setting: Setting, connections: Int) async throws -> Double {
  let server = try setting.startBare("bare-websocket")
  defer { server.stop() }
  return try await idleBytes(server, path: "/", setting, connections, subscribe: nil)
}

private func idleBytes(
  _ server: ChildProcess, path: String, _ setting: Setting, _ count: Int, subscribe: String?
) async throws -> Double {
  let answered = ManagedAtomicCount()
  var held: [WebSocketConnection] = []
  func open(_ n: Int) async throws {
    for _ in 0..<n {
      let connection = try await WebSocketConnection.connect(port: server.port, path: path, on: setting.group)
      { text, _ in
        if text.contains(#""s":"ok""#) { answered.add() }
      }
      if let subscribe { connection.send(subscribe) }
      held.append(connection)
    }
    let deadline = ContinuousClock.now + .seconds(30)
    while subscribe != nil, answered.value < held.count {
      if ContinuousClock.now > deadline {
        throw BenchmarkFailure("\(answered.value) of \(held.count) listens answered")
      }
      try await Task.sleep(for: .milliseconds(20))
    }
  }
  // The first connections pay for what is shared: they are not counted.
  try await open(200)
  let before = try server.residentBytes()
  try await open(count)
  let after = try server.residentBytes()
  for connection in held { connection.close() }
  return Double(after - before) / Double(count)
}

extension ByteBuffer {
  /// Whether the readable bytes contain `text`.
  func contains(_ text: String) -> Bool {
    let needle = Array(text.utf8)
    return withUnsafeReadableBytes { bytes in
      guard bytes.count >= needle.count, let first = needle.first else { return false }
      for start in 0...(bytes.count - needle.count) where bytes[start] == first {
        if (1..<needle.count).allSatisfy({ bytes[start + $0] == needle[$0] }) { return true }
      }
      return false
    }
  }
}
