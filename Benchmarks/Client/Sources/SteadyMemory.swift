// Measures the memory of clients that write and listen for a long time: it must not grow.

import FirebaseCore
import FirebaseDatabase
import Foundation

/// Two clients, one of them with a cache on disk. Both observe a window that moves, and queries for a moment.
struct SteadyMemory {
  let duration: Int
  /// The maximum number of writes a second; 0 for no limit.
  let rate: Int
  let server: String

  func run() async throws {
    let clients = try [false, true].map {
      try MeasuredClient(name: "memory-\($0)", namespace: "memory", server: server, isPersistent: $0)
    }
    for client in clients {
      let list = client.database.reference(withPath: "list")
      list.queryOrderedByKey().queryLimited(toLast: 100).observe(.childAdded, with: { _ in })
      list.queryOrderedByKey().queryLimited(toLast: 100).observe(.value, with: { _ in })
    }
    let start = Date()
    var samples: [Int] = []
    var round = 0
    var writes = 0
    while Date().timeIntervalSince(start) < Double(duration) {
      for client in clients {
        let countdown = Countdown(200)
        for number in 0..<200 {
          write(round * 200 + number, in: client.database.reference(withPath: "list"), countdown)
        }
        await countdown.wait()
        writes += 200
        observeForAMoment(round, client)
      }
      round += 1
      if rate > 0 {
        let due = start.addingTimeInterval(Double(writes) / Double(rate)).timeIntervalSinceNow
        if due > 0 { try await Task.sleep(for: .seconds(due)) }
      }
      guard Date().timeIntervalSince(start) >= Double(samples.count * duration) / 20 else { continue }
      samples.append(try SteadyMemory.residentBytes())
      ClientBenchmarks.say(
        "\(Int(Date().timeIntervalSince(start))) s: \(writes) writes, \(samples.last ?? 0) bytes")
    }
    // The first quarter fills caches and the allocator's pools.
    let first = samples[samples.count / 4]
    let last = samples[samples.count - 1]
    ClientBenchmarks.say(
      "| memory over \(duration) s, \(writes) writes | \(short(Double(first) / 1e6)) MB at a quarter | "
        + "\(short(Double(last) / 1e6)) MB at the end | \(short(Double(last) / Double(first))) |")
    for client in clients { _ = await client.app.delete() }
  }

  /// Keeps at most 1,000 children.
  private func write(_ number: Int, in list: DatabaseReference, _ countdown: Countdown) {
    list.updateChildValues([
      "item\(number + 1_000_000)": ["number": number, "text": String(repeating: "x", count: 200)],
      "item\(number + 999_000)": NSNull(),
    ]) { _, _ in Task { await countdown.finishOne() } }
  }

  private func observeForAMoment(_ round: Int, _ client: MeasuredClient) {
    let query = client.database.reference(withPath: "list").queryOrdered(byChild: "number")
      .queryLimited(toFirst: UInt(1 + round % 50))
    let handle = query.observe(.value, with: { _ in })
    query.removeObserver(withHandle: handle)
    client.database.reference(withPath: "count").runTransactionBlock { data in
      data.value = (data.value as? Int ?? 0) + 1
      return .success(withValue: data)
    }
  }

  /// The memory of this process.
  private static func residentBytes() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    return (status.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
  }
}
