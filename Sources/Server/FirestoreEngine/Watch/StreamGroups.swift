// The open Listen streams of a database, in groups that get their heartbeats (fresh resume tokens) one after another.
//
// Many streams may have opened in the same moment, for example after an outage. If all of them got their heartbeats together,
// other requests would wait on the same event loops. See decision 0041.
//
// Invariant: a stream is in one group from `insert` to `remove`. So it gets one heartbeat in each round of the groups.

/// Streams in groups of about equal size.
struct StreamGroups {
  /// The number of groups: with 100,000 streams, 390 get their heartbeats together. See decision 0041.
  static let count = 256

  private var groups = [[ObjectIdentifier: WatchStream]](repeating: [:], count: count)
  private var next = 0
  /// The number of streams.
  private(set) var streamCount = 0

  /// All streams.
  var streams: [WatchStream] { groups.flatMap(\.values) }

  mutating func insert(_ stream: WatchStream) {
    let id = ObjectIdentifier(stream)
    if groups[group(of: id)].updateValue(stream, forKey: id) == nil { streamCount += 1 }
  }

  mutating func remove(_ stream: WatchStream) {
    let id = ObjectIdentifier(stream)
    if groups[group(of: id)].removeValue(forKey: id) != nil { streamCount -= 1 }
  }

  /// The streams of the next groups in the round. Each group is included at most once.
  mutating func streamsOfNextGroups(_ groupCount: UInt64) -> [WatchStream] {
    var streams: [WatchStream] = []
    for _ in 0..<min(groupCount, UInt64(Self.count)) {
      streams += groups[next].values
      next = (next + 1) % Self.count
    }
    return streams
  }

  private func group(of id: ObjectIdentifier) -> Int { Int(id.hashValue.magnitude % UInt(Self.count)) }
}
