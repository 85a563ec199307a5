// Idle listeners: their cost in the server's memory, and in the writes of other clients.

import Foundation
import NIOCore

/// Durable commits per second in a large collection, while this number of targets listens to other documents of it,
/// 1,000 on each stream.
func commitsWithIdleListeners(_ setting: Setting, documents: Int, listeners: Int) async throws -> Double {
  let directory = try await loadedDirectory(setting, documents: documents)
  let server = try setting.startHearth(["--data", directory], database: false)
  defer { server.stop() }
  let load = try await ListenLoad.connect(server, setting, connections: min(4, listeners))
  let perStream = 1000
  var opened = 0
  while opened < listeners {
    let targets = opened..<min(opened + perStream, listeners)
    try await load.open(stream: opened / perStream, targets: targets)
    opened = targets.upperBound
    // Each request is answered before the next is sent.
    try await load.wait(for: opened)
  }
  let rate = try await commitRate(server, setting)
  try load.check()
  await load.close()
  return rate
}

/// Bytes of the server's memory per Listen stream with one target.
func idleStream(_ setting: Setting, streams: Int) async throws -> Double {
  let server = try setting.startHearth(["--ephemeral"], database: false)
  defer { server.stop() }
  return try await idleStreamBytes(server, setting, streams)
}

/// The same for a stream of a bare NIOHTTP2 server.
func bareIdleStream(_ setting: Setting, streams: Int) async throws -> Double {
  let server = try setting.startBare("bare-streams")
  defer { server.stop() }
  return try await idleStreamBytes(server, setting, streams)
}

private func idleStreamBytes(_ server: ChildProcess, _ setting: Setting, _ count: Int) async throws -> Double
{
  let connections = 20
  let load = try await ListenLoad.connect(server, setting, connections: connections)
  // The first streams allocate shared memory, so they are not counted.
  let first = 200
  for number in 0..<first { try await load.open(stream: number, targets: number..<(number + 1)) }
  try await load.wait(for: first)
  let before = try server.residentBytes()
  for number in first..<(first + count) {
    try await load.open(stream: number, targets: number..<(number + 1))
    // Keeps one request in flight on each connection. Otherwise the memory would include thousands of first reads.
    if (number + 1) % connections == 0 { try await load.wait(for: number + 1) }
  }
  try await load.wait(for: first + count)
  let after = try server.residentBytes()
  await load.close()
  return Double(after - before) / Double(count)
}
