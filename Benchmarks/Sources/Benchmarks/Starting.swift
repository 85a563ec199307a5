// Start time: from the start of the process to the first response, and the memory of an idle server.

import Foundation
import NIOCore

/// Published figures of Google's Firestore emulator: milliseconds to the first response, MiB when idle, MiB
/// after 1,000 documents.
let publishedEmulator: [Double] = [740, 95, 456]

/// Milliseconds from starting the server on an empty directory to the first response over gRPC, and its memory
/// in MiB: when idle, and after 1,000 documents.
func startEmpty(_ setting: Setting) async throws -> [Double] {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let (server, time) = try await start(on: directory, setting)
  defer { server.stop() }
  // One-time work of the start is complete by then.
  try await Task.sleep(for: .milliseconds(500))
  let idle = try server.residentBytes()
  try await loadDocuments(server, documents: 1000, setting)
  return [time, mebibytes(idle), mebibytes(try server.residentBytes())]
}

/// The same time and idle memory on a directory with `documents` documents.
func startLoaded(_ setting: Setting, documents: Int) async throws -> [Double] {
  let directory = try await loadedDirectory(setting, documents: documents)
  let (server, time) = try await start(on: directory, setting)
  defer { server.stop() }
  try await Task.sleep(for: .milliseconds(500))
  return [time, mebibytes(try server.residentBytes())]
}

private func start(on directory: String, _ setting: Setting) async throws -> (ChildProcess, Double) {
  let start = ContinuousClock.now
  let server = try setting.startHearth(["--data", directory], database: false)
  do {
    let client = try await GRPCConnection.connect(port: server.port, on: setting.group)
    let name = Array(BenchmarkDocument.name("nothing").utf8)
    let answer = try await client.call(
      path: "/google.firestore.v1.Firestore/GetDocument", body: framed([0x0A, UInt8(name.count)] + name)
    ).get()
    let time = (ContinuousClock.now - start).seconds * 1000
    await client.close()
    // NOT_FOUND: the server has read the store.
    guard answer.status == 5 else { throw BenchmarkFailure("the first answer was \(answer.failure)") }
    return (server, time)
  } catch {
    server.stop()
    throw error
  }
}
