// Measures the start with a large cache on disk: opening it, and reading one location of it.

import FirebaseCore
import FirebaseDatabase
import Foundation

/// Fills a cache by acknowledged writes, and opens it again. The shortest of five starts counts.
struct CacheStart {
  let megabytes: Int
  let server: String

  func run() async throws {
    let empty = try await start(fill: 0)
    let full = try await start(fill: megabytes)
    ClientBenchmarks.say("| | empty cache | \(megabytes) MB | ratio |")
    ClientBenchmarks.say(
      "| start | \(short(empty.start * 1e3)) ms | \(short(full.start * 1e3)) ms | \(short(full.start / empty.start)) |"
    )
    ClientBenchmarks.say(
      "| one value of 500 bytes, offline | \(short(empty.read * 1e3)) ms | \(short(full.read * 1e3)) ms | "
        + "\(short(full.read / empty.read)) |")
  }

  private func start(fill: Int) async throws -> (start: Double, read: Double) {
    let name = "cache-\(fill)"
    let writer = try MeasuredClient(name: name, namespace: name, server: server, isPersistent: true)
    let text = String(repeating: "x", count: 500)
    let root = writer.database.reference()
    _ = try await root.child("one").setValue(text)
    for part in 0..<(fill * 2) {
      let children = Dictionary(uniqueKeysWithValues: (0..<900).map { ("c\($0)", text) })
      _ = try await root.child("part\(part)").setValue(children)
    }
    _ = await writer.app.delete()
    // The file is closed when the client has handled the deletion.
    await writer.settle()
    var best = (start: Double.infinity, read: Double.infinity)
    for _ in 0..<5 {
      let reader = try MeasuredClient(name: name, namespace: name, server: server, isPersistent: true)
      let start = await seconds {
        reader.database.goOffline()
        await reader.settle()
      }
      let read = await seconds {
        let one = reader.database.reference(withPath: "one")
        let snapshot = await one.observeSingleEventAndPreviousSiblingKey(of: .value).0
        if !snapshot.exists() { ClientBenchmarks.say("the cache has no value") }
      }
      best = (min(best.start, start), min(best.read, read))
      _ = await reader.app.delete()
      await reader.settle()
    }
    return best
  }
}
