// Times commits while a document changes that the rules of many listens read.

import FirestoreProtobuf
import Foundation
import NIOCore
import SwiftProtobuf

/// Every listen depends on `flags/open`. Commits to other documents do not.
private let blocks = """
  match /items/{item} {
    allow read: if get(/databases/$(database)/documents/flags/open).data.open == true;
    allow write: if true;
  }
  match /flags/{flag} { allow write: if true; }
  """
/// Seconds between two changes of the document.
private let changeInterval = 1.0
/// The server accepts 1,000 streams on a connection.
private let streamsPerConnection = 900
private let maximumStreams = 10_000

/// The 99th percentile and the longest time of durable commits in microseconds while listens are open, and the milliseconds
/// in which all listens end after a last change that denies them.
/// - Parameters:
///   - listens: the number of listens; more than 10,000 share streams.
///   - changes: whether the document changes each second, so that all listens are decided again and stay allowed.
func commitTimesDuringLookups(_ setting: Setting, listens: Int, changes: Bool) async throws -> [Double] {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let (server, _) = try setting.startProduction(directory, blocks: blocks)
  defer { server.stop() }
  let writer = try await GRPCConnection.connect(port: server.port, on: setting.group)
  try await write(isOpen: true, number: 0, writer)
  let perStream = max(1, listens / maximumStreams)
  let streams = listens / perStream
  let load = try await ListenLoad.connect(
    server, setting, connections: streams / streamsPerConnection + 2)
  for number in 0..<streams {
    try await load.open(stream: number, targets: number * perStream..<(number + 1) * perStream)
    // The requests of some streams are answered before the next are sent.
    if number % 500 == 499 { try await load.wait(for: (number + 1) * perStream) }
  }
  try await load.wait(for: streams * perStream)
  let task = Task {
    var number = 1
    while changes, !Task.isCancelled {
      try await write(isOpen: true, number: number, writer)
      number += 1
      try? await Task.sleep(for: .seconds(changeInterval))
    }
  }
  let times = try await SteadyCommits.times(server, setting, seconds: max(setting.seconds, 4))
  task.cancel()
  try await task.value
  guard load.removed == 0 else { throw BenchmarkFailure("\(load.removed) listens ended") }
  let start = ContinuousClock.now
  try await write(isOpen: false, number: 0, writer)
  try await waitUntil("\(load.removed) of \(streams * perStream) listens ended", seconds: 120) {
    load.removed >= streams * perStream
  }
  let elapsed = (ContinuousClock.now - start).seconds
  await writer.close()
  await load.close()
  return [percentile(times, 0.99), times.max() ?? 0, elapsed * 1000]
}

private func write(isOpen: Bool, number: Int, _ connection: GRPCConnection) async throws {
  let request = Google_Firestore_V1_CommitRequest.with {
    $0.database = BenchmarkDocument.database
    $0.writes = [
      .with {
        $0.update.name = BenchmarkDocument.parent + "/flags/open"
        $0.update.fields = [
          "open": .with { $0.booleanValue = isOpen }, "n": .with { $0.integerValue = Int64(number) },
        ]
      }
    ]
  }
  let reply = try await connection.call(
    path: "/google.firestore.v1.Firestore/Commit", body: framed(try request.serializedBytes())
  ).get()
  guard reply.status == 0 else { throw BenchmarkFailure("the flag could not be written: \(reply.failure)") }
}
