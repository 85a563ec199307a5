// Bulk load of an empty collection: its speed, and the server's memory.

import Foundation
import NIOConcurrencyHelpers
import NIOCore

/// The connections of a bulk load, and the number of requests in flight on each.
private let connections = 4
private let requestsInFlight = 2

/// Documents per second of a bulk load in commits of 500, and the server's memory before it, at its peak and
/// after it, in MiB. The loaded database is kept for other measurements.
func bulkLoad(_ setting: Setting, documents: Int) async throws -> [Double] {
  let directory = try setting.temporaryDirectory()
  do {
    let server = try setting.startHearth(["--data", directory], database: false)
    defer { server.stop() }
    let before = try server.residentBytes()
    let processor = ProcessorTime(server)
    let start = ContinuousClock.now
    try await loadDocuments(server, documents: documents, setting)
    let rate = Double(documents) / (ContinuousClock.now - start).seconds
    processor.report(calls: documents, in: setting)
    let figures = [
      rate, mebibytes(before), mebibytes(try server.peakBytes()), mebibytes(try server.residentBytes()),
    ]
    try setting.databases.keep(directory, as: databaseName(documents))
    return figures
  } catch {
    try? FileManager.default.removeItem(atPath: directory)
    throw error
  }
}

/// The directory of a database with a collection of this number of documents, loaded if no other measurement has done
/// so.
func loadedDirectory(_ setting: Setting, documents: Int) async throws -> String {
  try await setting.databases.directory(databaseName(documents), setting) { directory in
    let server = try setting.startHearth(["--data", directory], database: false)
    defer { server.stop() }
    try await loadDocuments(server, documents: documents, setting)
  }
}

private func databaseName(_ documents: Int) -> String { "firestore-\(documents)" }

func mebibytes(_ bytes: Int) -> Double { Double(bytes) / Double(1 << 20) }

/// Documents per second of a bulk load by a server that has loaded as many documents before. The reference is Google's
/// emulator, which keeps documents in memory.
func warmBulkLoad(_ setting: Setting, documents: Int, usesGoogleEmulator: Bool) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server =
    usesGoogleEmulator
    ? try GoogleEmulator.start() : try setting.startHearth(["--data", directory], database: false)
  defer { server.stop() }
  try await loadDocuments(server, documents: documents, setting)
  let processor = ProcessorTime(server)
  let start = ContinuousClock.now
  try await loadDocuments(server, documents: documents, setting, first: documents)
  let rate = Double(documents) / (ContinuousClock.now - start).seconds
  processor.report(calls: documents, in: setting)
  return rate
}

/// Writes a collection, or further documents of it from number `first` on.
func loadDocuments(_ server: ChildProcess, documents: Int, _ setting: Setting, first: Int = 0) async throws {
  let requests = try BulkRequests(count: documents, first: first)
  let next = NIOLockedValueBox(0)
  var clients: [GRPCConnection] = []
  for _ in 0..<connections {
    clients.append(try await GRPCConnection.connect(port: server.port, on: setting.group))
  }
  try await withThrowingTaskGroup(of: Void.self) { tasks in
    for client in clients {
      for _ in 0..<requestsInFlight {
        tasks.addTask {
          while true {
            let index = next.withLockedValue { next -> Int? in
              guard next < requests.requests else { return nil }
              defer { next += 1 }
              return next
            }
            guard let index else { return }
            let answer = try await client.call(
              path: "/google.firestore.v1.Firestore/Commit", body: requests.request(index), token: "owner"
            ).get()
            guard answer.status == 0 else {
              throw BenchmarkFailure("commit \(index) of the bulk load ended with \(answer.failure)")
            }
          }
        }
      }
    }
    try await tasks.waitForAll()
  }
  for client in clients { await client.close() }
}
