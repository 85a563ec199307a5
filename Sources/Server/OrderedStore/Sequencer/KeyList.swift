// A key list stores keys in one block of memory.

/// An immutable list of keys.
struct KeyList: Sequence {
  /// The bytes of all keys, without separators.
  private var bytes: [UInt8] = []
  /// The end offset of each key.
  private var ends: [UInt32] = []

  /// Makes an empty list.
  init() {}

  /// Copies keys. Together they have fewer than 4 GiB, because a commit is limited to
  /// ``StoreLimits/maximumCommitBytes``.
  init(_ keys: some Collection<Key>) {
    ends.reserveCapacity(keys.count)
    var total = 0
    for key in keys {
      total += key.count
      ends.append(UInt32(total))
    }
    bytes.reserveCapacity(total)
    for key in keys { bytes.append(contentsOf: key) }
  }

  /// The number of keys.
  var count: Int { ends.count }

  /// The bytes of all keys.
  var byteCount: Int { bytes.count }

  func makeIterator() -> AnyIterator<Key> {
    var index = 0
    var start = 0
    return AnyIterator {
      guard index < ends.count else { return nil }
      let end = Int(ends[index])
      defer {
        start = end
        index += 1
      }
      return Key(bytes[start..<end])
    }
  }
}
