// Cloud Firestore: durable commits and reads over gRPC.

import Foundation
import NIOConcurrencyHelpers
import NIOCore

/// Unary calls per second: `connections` clients with `depth` calls in flight each.
func unaryRate(
  _ server: ChildProcess, setting: Setting, connections: Int, depth: Int, path: String,
  body: @escaping @Sendable (_ client: Int, _ call: Int) -> ByteBuffer
) async throws -> Double {
  var clients: [GRPCConnection] = []
  for _ in 0..<connections {
    clients.append(try await GRPCConnection.connect(port: server.port, on: setting.group))
  }
  let done = ManagedAtomicCount()
  let failed = ManagedAtomicCount()
  let failure = NIOLockedValueBox("")
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
          switch result {
          case .success(let answer) where answer.status == 0: done.add()
          case .success(let answer):
            failed.add()
            failure.withLockedValue { $0 = answer.failure }
            // A connection that is gone answers at once, again and again.
            guard answer.status > 0 else { return }
          case .failure(let error):
            failed.add()
            failure.withLockedValue { $0 = "\(error)" }
            return
          }
          next()
        }
      }
      client.eventLoop.execute { next() }
    }
  }
  try await Task.sleep(for: .seconds(warmUp))
  let processor = ProcessorTime(server)
  let before = done.value
  let start = ContinuousClock.now
  try await Task.sleep(for: .seconds(setting.seconds))
  let count = done.value - before
  let elapsed = (ContinuousClock.now - start).seconds
  processor.leave(calls: count, in: setting)
  let failures = failed.value
  let reason = failure.withLockedValue { $0 }
  stop.withLockedValue { $0 = true }
  for client in clients { await client.close() }
  if failures > 0 { throw BenchmarkFailure("\(failures) calls to \(path) failed beside \(count): \(reason)") }
  return Double(count) / elapsed
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
  // Other documents than those of an earlier run on the same directory.
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
    throw BenchmarkFailure("the document could not be written: \(put.failure)")
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
