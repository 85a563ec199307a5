// Points that split a scan of unknown length, for any length and bounds.

import RandomModels
import Testing

@testable import FirestoreEngine

@Suite struct PartitionPointTests {
  @Test("points are keys of the scan, ascending, as many as asked for, and spread evenly within what is held")
  func spread() {
    var random = SeededGenerator(seed: 7)
    for _ in 0..<300 {
      let count = Int.random(in: 0..<5_000, using: &random)
      let held = Int.random(in: 8..<200, using: &random)
      let limit = Int.random(in: 1..<300, using: &random)
      let least = Int.random(in: 1..<100, using: &random)
      var samples = KeySamples(keys: held, bytes: .max)
      for index in 0..<count { samples.add([UInt8(index >> 8), UInt8(index & 0xff)]) }
      #expect(samples.count == count)
      let points = samples.points(atMost: limit, least: least).map { Int($0[0]) << 8 | Int($0[1]) }
      #expect(points.count <= limit)
      // Half of what may be held is there at least.
      let parts = min(limit + 1, count / least, count <= held ? count : held / 2)
      #expect(points.count >= max(0, parts - 1), "\(count) \(held) \(limit) \(least)")
      guard !points.isEmpty else { continue }
      let edges = [0] + points + [count]
      let sizes = zip(edges.dropFirst(), edges).map { $0 - $1 }
      #expect(sizes.allSatisfy { $0 > 0 })
      // One stride is what a point may be off by.
      let stride = count / (held / 2) + 1
      let even = count / (points.count + 1)
      #expect(sizes.allSatisfy { abs($0 - even) <= 2 * stride + 1 }, "\(sizes) \(count) \(held)")
    }
  }

  @Test("long keys are bounded by their bytes")
  func bytes() {
    var samples = KeySamples(keys: .max, bytes: 10_000)
    for index in 0..<1_000 {
      samples.add([UInt8(index >> 8), UInt8(index & 0xff)] + [UInt8](repeating: 0, count: 998))
    }
    let points = samples.points(atMost: 100, least: 1)
    #expect((4...10).contains(points.count))
  }
}
