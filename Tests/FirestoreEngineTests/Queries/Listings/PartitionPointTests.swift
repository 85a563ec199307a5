// Tests of partition points, the keys that divide a scan into parts of similar size. The length of the scan is unknown
// until its end.

import RandomModels
import Testing

@testable import FirestoreEngine

@Suite("Partition points") struct PartitionPointTests {
  @Test("partition points are ascending keys of the scan, at most the requested count, and evenly spread")
  func spread() {
    var random = SeededGenerator(seed: 7)
    for _ in 0..<300 {
      let count = Int.random(in: 0..<5_000, using: &random)
      let capacity = Int.random(in: 8..<200, using: &random)
      let limit = Int.random(in: 1..<300, using: &random)
      let minimum = Int.random(in: 1..<100, using: &random)
      var samples = KeySamples(keys: capacity, bytes: .max)
      for index in 0..<count { samples.add([UInt8(index >> 8), UInt8(index & 0xff)]) }
      #expect(samples.count == count)
      let points = samples.points(atMost: limit, minimumPartKeys: minimum).map {
        Int($0[0]) << 8 | Int($0[1])
      }
      #expect(points.count <= limit)
      // When the samples reach their capacity, every second sample is dropped. So at least half of the capacity is filled.
      let parts = min(limit + 1, count / minimum, count <= capacity ? count : capacity / 2)
      #expect(points.count >= max(0, parts - 1), "\(count) \(capacity) \(limit) \(minimum)")
      guard !points.isEmpty else { continue }
      let edges = [0] + points + [count]
      let sizes = zip(edges.dropFirst(), edges).map { $0 - $1 }
      #expect(sizes.allSatisfy { $0 > 0 })
      // A point is off by at most one stride, the distance between two sampled keys.
      let stride = count / (capacity / 2) + 1
      let even = count / (points.count + 1)
      #expect(sizes.allSatisfy { abs($0 - even) <= 2 * stride + 1 }, "\(sizes) \(count) \(capacity)")
    }
  }

  @Test("the memory for sampled keys is bounded in bytes")
  func bytes() {
    var samples = KeySamples(keys: .max, bytes: 10_000)
    for index in 0..<1_000 {
      samples.add([UInt8(index >> 8), UInt8(index & 0xff)] + [UInt8](repeating: 0, count: 998))
    }
    let points = samples.points(atMost: 100, minimumPartKeys: 1)
    #expect((4...10).contains(points.count))
  }
}
