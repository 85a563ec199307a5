// Maps the keys of the tree, which encode paths, to the physical keys of its rows.
//
// Most rows have the key of their path. When a large subtree is replaced in one step, the new rows are a generation.
// They are stored under a prefix with the generation's number, and one small row maps the subtree's location to that
// number. Example: after /list was replaced by generation 7, the row of /list/a has the key 'n' + 7 + "a" 0x00.
//
// Invariants
//   1. The rows of a location are those of the innermost generation that contains it. All other rows stored
//      for its path are covered by pending deletes.
//   2. A generation number is never reused: it contains the version of the commit that began it.
//
// Decision: docs/decisions/0011-realtime-generations.md

import OrderedStore

/// A subtree and the generation of its rows.
struct SubtreeGeneration: Sendable, Equatable {
  /// The row key of its location, the prefix of its rows in the tree.
  let prefix: [UInt8]
  let number: UInt64

  /// The prefix of its rows in the store.
  var physicalPrefix: [UInt8] { RowKeys.prefix(ofGeneration: number) }
}

/// All subtrees with a generation, in the order of their locations.
struct SubtreeGenerations: Sendable {
  private var entries: [SubtreeGeneration] = []
  /// For each entry, the index of the innermost other entry that contains it; nil if there is none.
  private var enclosing: [Int?] = []

  /// Creates an empty map.
  init() {}

  /// Creates a map from subtrees in the order of their locations.
  init(sorted entries: [SubtreeGeneration]) {
    assert(
      zip(entries, entries.dropFirst()).allSatisfy { compareKeys($0.prefix, $1.prefix) < 0 },
      "invariant: generations are sorted by location")
    self.entries = entries
    linkEnclosing()
  }

  var isEmpty: Bool { entries.isEmpty }
  var all: [SubtreeGeneration] { entries }

  /// The subtrees at and below a location.
  func within(_ prefix: [UInt8]) -> ArraySlice<SubtreeGeneration> {
    let start = position(atOrAfter: prefix)
    var end = start
    while end < entries.count, entries[end].prefix.starts(with: prefix) { end += 1 }
    return entries[start..<end]
  }

  /// Replaces all generations at and below a location by a new one.
  mutating func install(_ generation: SubtreeGeneration) {
    let replaced = within(generation.prefix)
    entries.replaceSubrange(replaced.startIndex..<replaced.endIndex, with: [generation])
    linkEnclosing()
  }

  /// Removes the generation of exactly this location.
  mutating func remove(_ prefix: [UInt8]) {
    entries.removeAll { $0.prefix == prefix }
    linkEnclosing()
  }

  /// The innermost subtree that contains a row key; nil if the row's physical key is the same key.
  func innermost(containing key: [UInt8]) -> SubtreeGeneration? {
    var index = position(atOrAfter: key)
    if index < entries.count, entries[index].prefix == key { return entries[index] }
    index -= 1
    var candidate = index >= 0 ? index : nil
    while let next = candidate {
      if key.starts(with: entries[next].prefix) { return entries[next] }
      candidate = enclosing[next]
    }
    return nil
  }

  /// The first subtree whose location is after a key.
  func first(after key: [UInt8]) -> SubtreeGeneration? {
    var index = position(atOrAfter: key)
    if index < entries.count, entries[index].prefix == key { index += 1 }
    return index < entries.count ? entries[index] : nil
  }

  /// The index of the first entry at or after a key.
  private func position(atOrAfter key: [UInt8]) -> Int {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if compareKeys(entries[middle].prefix, key) < 0 { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private mutating func linkEnclosing() {
    enclosing = []
    enclosing.reserveCapacity(entries.count)
    for index in entries.indices {
      var candidate = index > 0 ? index - 1 : nil
      while let next = candidate, !entries[index].prefix.starts(with: entries[next].prefix) {
        candidate = enclosing[next]
      }
      enclosing.append(candidate)
    }
  }
}

/// A range of rows that are contiguous in the store: their physical keys, and the prefixes of their keys in
/// the store and in the tree.
struct PhysicalRange {
  let range: KeyRange
  let physicalPrefix: [UInt8]
  let prefix: [UInt8]
}

extension SubtreeGenerations {
  /// The physical key of a row of the tree.
  func physicalKey(_ key: [UInt8]) -> [UInt8] {
    guard !entries.isEmpty, key.first == RowKeys.tree, let innermost = innermost(containing: key) else {
      return key
    }
    return innermost.physicalPrefix + key.dropFirst(innermost.prefix.count)
  }

  /// The first contiguous rows of a range of the tree, and the key where the next ones begin; nil at the end
  /// of the range.
  func contiguousRange(_ range: KeyRange) -> (range: PhysicalRange, next: [UInt8]?) {
    let innermost = innermost(containing: range.start)
    var end = range.end
    if let last = innermost.flatMap({ KeyRange.successor(ofPrefix: $0.prefix) }), isBefore(last, end) {
      end = last
    }
    if let inner = first(after: range.start), isBefore(inner.prefix, end) { end = inner.prefix }
    let isLast = end == range.end
    guard let innermost else {
      return (
        PhysicalRange(range: KeyRange(start: range.start, end: end), physicalPrefix: [], prefix: []),
        isLast ? nil : end
      )
    }
    let start = innermost.physicalPrefix + range.start.dropFirst(innermost.prefix.count)
    var physicalEnd = KeyRange.successor(ofPrefix: innermost.physicalPrefix)
    if let end, end.starts(with: innermost.prefix) {
      physicalEnd = innermost.physicalPrefix + end.dropFirst(innermost.prefix.count)
    }
    return (
      PhysicalRange(
        range: KeyRange(start: start, end: physicalEnd), physicalPrefix: innermost.physicalPrefix,
        prefix: innermost.prefix),
      isLast ? nil : end
    )
  }

  private func isBefore(_ key: [UInt8], _ end: [UInt8]?) -> Bool {
    guard let end else { return true }
    return compareKeys(key, end) < 0
  }
}
