// Cloud Firestore measurements: durable commits and reads over gRPC.

import Foundation
import NIOConcurrencyHelpers
import NIOCore

/// Unary calls per second: `connections` clients with `depth` calls in flight each.
func unaryRate(
  _ server: ChildProcess, setting: Setting, connections: Int, depth: Int, path: String,
  body: @escaping @Sendable (_ client: Int, _ call: Int) -> ByteBuffer
) async throws -> Double {
  try await unaryLoad(
    server, setting: setting, connections: connections, depth: depth, path: path, tally: UnaryTally(),
    body: body
  ).rate
}

/// Unary calls per second, and the latencies that the tally measures in microseconds.
private func unaryLoad(
  _ server: ChildProcess, setting: Setting, connections: Int, depth: Int, path: String, tally: UnaryTally,
  body: @escaping @Sendable (_ client: Int, _ call: Int) -> ByteBuffer
) async throws -> (rate: Double, times: [Double]) {
  var clients: [UnaryLoad] = []
  for index in 0..<connections {
    clients.append(
      try await UnaryLoad.start(
        port: server.port, on: setting.group, path: path, depth: depth, tally: tally,
        body: { body(index, $0) }))
  }
  let warmUp = min(1, setting.seconds / 3)
  try await Task.sleep(for: .seconds(warmUp))
  let processor = ProcessorTime(server)
  _ = tally.takeTimes()
  let before = tally.done.value
  let start = ContinuousClock.now
  try await Task.sleep(for: .seconds(setting.seconds))
  let count = tally.done.value - before
  let elapsed = (ContinuousClock.now - start).seconds
  let times = tally.takeTimes()
  processor.report(calls: count, in: setting)
  tally.stop()
  for client in clients { await client.close() }
  if tally.failed.value > 0 {
    throw BenchmarkFailure("\(tally.failed.value) calls to \(path) failed beside \(count): \(tally.failure)")
  }
  return (Double(count) / elapsed, times)
}

/// Durable single-document commits per second by 64 gRPC clients.
func durableCommits(_ setting: Setting) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: false)
  defer { server.stop() }
  return try await commitRate(server, setting)
}

/// Durable commits per second of one new document each, by 64 clients.
func commitRate(_ server: ChildProcess, _ setting: Setting) async throws -> Double {
  let requests = try CommitRequests(count: 512)
  // Other documents than in an earlier run on the same directory.
  let run = Int.random(in: 0..<(1 << 20)) << 42
  return try await unaryRate(
    server, setting: setting, connections: 64, depth: 1, path: "/google.firestore.v1.Firestore/Commit"
  ) { client, call in requests.request(run | client << 32 | call) }
}

/// The bare engine's durable documents per second, in batches of 100.
func bareEngine(_ setting: Setting) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  return try BareEngine.documentsPerSecond(directory: directory, seconds: setting.seconds)
}

/// GetDocument calls per second, 8 connections with 16 calls in flight each.
func getDocument(_ setting: Setting) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: false)
  defer { server.stop() }
  return try await storedDocumentRate(server, setting)
}

/// GetDocument calls per second for a document that it stores first.
func storedDocumentRate(_ server: ChildProcess, _ setting: Setting) async throws -> Double {
  try await storeDocument(server, setting)
  return try await getDocumentRate(server, setting)
}

private func storeDocument(_ server: ChildProcess, _ setting: Setting) async throws {
  let writer = try await GRPCConnection.connect(port: server.port, on: setting.group)
  let put = try await writer.call(
    path: "/google.firestore.v1.Firestore/Commit", body: framed(BenchmarkDocument.commit(id: "bare", seed: 1))
  ).get()
  guard put.status == 0 else {
    throw BenchmarkFailure("the document could not be written: \(put.failure)")
  }
  await writer.close()
}

/// GetDocument with one call in flight on each of 64 connections: calls per second, and the median and the 99th
/// percentile of their latencies in microseconds.
func sparseGetDocument(_ setting: Setting) async throws -> [Double] {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: false)
  defer { server.stop() }
  try await storeDocument(server, setting)
  return try await sparseFigures(server, setting)
}

/// The same against a bare NIOHTTP2 handler.
func bareSparseGetDocument(_ setting: Setting) async throws -> [Double] {
  let server = try setting.startBare("bare-http2")
  defer { server.stop() }
  return try await sparseFigures(server, setting)
}

private func sparseFigures(_ server: ChildProcess, _ setting: Setting) async throws -> [Double] {
  let body = getDocumentRequest()
  let (rate, times) = try await unaryLoad(
    server, setting: setting, connections: 64, depth: 1, path: "/google.firestore.v1.Firestore/GetDocument",
    tally: UnaryTally(measuresLatency: true)
  ) { _, _ in body }
  return [rate, percentile(times, 0.5), percentile(times, 0.99)]
}

/// GetDocument calls per second of a bare NIOHTTP2 handler with the same protobuf messages.
func bareGetDocument(_ setting: Setting) async throws -> Double {
  let server = try setting.startBare("bare-http2")
  defer { server.stop() }
  return try await getDocumentRate(server, setting)
}

private func getDocumentRequest() -> ByteBuffer {
  let name = Array(BenchmarkDocument.name("bare").utf8)
  // GetDocumentRequest: field 1, the name.
  return framed([0x0A, UInt8(name.count)] + name)
}

private func getDocumentRate(_ server: ChildProcess, _ setting: Setting) async throws -> Double {
  let body = getDocumentRequest()
  return try await unaryRate(
    server, setting: setting, connections: 8, depth: 16,
    path: "/google.firestore.v1.Firestore/GetDocument"
  ) { _, _ in body }
}
