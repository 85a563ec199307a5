// Indexed queries of 100 documents.

import FirestoreProtobuf
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import SwiftProtobuf

/// The documents of the collection for throughput measurements.
private let documents = 10_000

/// Queries per second, each of 100 documents: 8 connections with two in flight each.
func queryRate(_ setting: Setting) async throws -> Double {
  let directory = try await loadedDirectory(setting, documents: documents)
  let server = try setting.startHearth(["--data", directory], database: false)
  defer { server.stop() }
  let owners = BulkRequests.owners(of: documents)
  let requests = try (0..<owners).map(ownerQuery)
  try await checkQuery(requests[0], server, setting)
  return try await unaryRate(
    server, setting: setting, connections: 8, depth: 2, path: "/google.firestore.v1.Firestore/RunQuery"
  ) { client, call in requests[(client * 7 + call) % owners] }
}

/// Scans of 100 index entries with a get for each, per second, by the bare engine.
func bareQueryRate(_ setting: Setting) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  return try BareEngine.queriesPerSecond(directory: directory, documents: documents, seconds: setting.seconds)
}

/// The median latency of a query of 100 documents, one at a time, in a collection of a given size, in
/// microseconds: for ten queries that repeat, and for up to 1,000 different queries all over the collection.
func queryTimes(_ setting: Setting, documents: Int) async throws -> [Double] {
  let directory = try await loadedDirectory(setting, documents: documents)
  let server = try setting.startHearth(["--data", directory], database: false)
  defer { server.stop() }
  let owners = BulkRequests.owners(of: documents)
  let client = try await GRPCConnection.connect(port: server.port, on: setting.group)
  var figures: [Double] = []
  for queryCount in [min(10, owners), owners] {
    let requests = try (0..<min(queryCount, 1000)).map {
      try ownerQuery($0 * (queryCount / min(queryCount, 1000)))
    }
    for request in requests.prefix(10) { try await checkQuery(request, server, setting) }
    var times: [Double] = []
    let start = ContinuousClock.now
    var number = 0
    while (ContinuousClock.now - start).seconds < setting.seconds {
      // Adjacent numbers are not adjacent on disk.
      let request = requests[number * 7919 % requests.count]
      let before = ContinuousClock.now
      let answer = try await client.call(
        path: "/google.firestore.v1.Firestore/RunQuery", body: request
      ).get()
      times.append((ContinuousClock.now - before).seconds * 1e6)
      guard answer.status == 0 else { throw BenchmarkFailure("a query ended with \(answer.failure)") }
      number += 1
    }
    figures.append(percentile(times, 0.5))
  }
  await client.close()
  return figures
}

/// The framed request for an owner's documents.
private func ownerQuery(_ number: Int) throws -> ByteBuffer {
  let request = Google_Firestore_V1_RunQueryRequest.with {
    $0.parent = BenchmarkDocument.parent
    $0.structuredQuery = BenchmarkDocument.query(owner: BulkRequests.owner(number))
  }
  return framed(try request.serializedBytes())
}

/// Checks that a query returns its documents: a throughput of empty responses would not be a measurement.
private func checkQuery(_ request: ByteBuffer, _ server: ChildProcess, _ setting: Setting) async throws {
  let client = try await GRPCConnection.connect(port: server.port, on: setting.group)
  let answer = try await client.call(path: "/google.firestore.v1.Firestore/RunQuery", body: request).get()
  await client.close()
  var body = answer.body
  var found = 0
  while let message = body.readGRPCMessage() {
    if try Google_Firestore_V1_RunQueryResponse(serializedBytes: Array(message.readableBytesView)).hasDocument
    {
      found += 1
    }
  }
  guard answer.status == 0, found == BulkRequests.perOwner else {
    throw BenchmarkFailure("a query found \(found) documents, and ended with \(answer.failure)")
  }
}
