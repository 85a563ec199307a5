// Where the rows of subtrees lie. Most lie under their own path; a subtree that was replaced in one step, however large it
// was or is, has rows of a new generation under another prefix, so that switching is one small row.
//
// Invariants
//   1. The rows of a location are those of the innermost generation whose location holds it, and no others: what else
//      lies under its path is garbage on its way out.
//   2. A generation's number never comes back: it is made of the version of the commit that began it.

import OrderedStore

/// Where a subtree's rows lie.
struct SubtreeGeneration: Sendable, Equatable {
  /// The row key of its location, with which the keys of all its rows would begin.
  let prefix: [UInt8]
  let number: UInt64

  /// What the keys of its rows really begin with.
  var stored: [UInt8] { RowKeys.prefix(ofGeneration: number) }
}

/// All subtrees whose rows lie elsewhere, in the order of their locations.
struct SubtreeGenerations: Sendable {
  private var entries: [SubtreeGeneration] = []
  /// For each the innermost one around it.
  private var outer: [Int?] = []

  /// No subtrees.
  init() {}

  /// Subtrees in the order of their locations.
  init(sorted entries: [SubtreeGeneration]) {
    self.entries = entries
    link()
  }

  var isEmpty: Bool { entries.isEmpty }
  var all: [SubtreeGeneration] { entries }

  /// The subtrees at and below a location.
  func within(_ prefix: [UInt8]) -> ArraySlice<SubtreeGeneration> {
    let start = position(notBelow: prefix)
    var end = start
    while end < entries.count, entries[end].prefix.starts(with: prefix) { end += 1 }
    return entries[start..<end]
  }

  /// Puts a new generation in the place of everything at and below a location.
  mutating func begin(_ generation: SubtreeGeneration) {
    let replaced = within(generation.prefix)
    entries.replaceSubrange(replaced.startIndex..<replaced.endIndex, with: [generation])
    link()
  }

  /// Forgets the generation of exactly this location.
  mutating func remove(_ prefix: [UInt8]) {
    entries.removeAll { $0.prefix == prefix }
    link()
  }

  /// The innermost subtree that a row key lies in; nil if the row lies under its own key.
  func holder(of key: [UInt8]) -> SubtreeGeneration? {
    var index = position(notBelow: key)
    if index < entries.count, entries[index].prefix == key { return entries[index] }
    index -= 1
    var candidate = index >= 0 ? index : nil
    while let next = candidate {
      if key.starts(with: entries[next].prefix) { return entries[next] }
      candidate = outer[next]
    }
    return nil
  }

  /// The first subtree whose location comes after a key.
  func first(after key: [UInt8]) -> SubtreeGeneration? {
    var index = position(notBelow: key)
    if index < entries.count, entries[index].prefix == key { index += 1 }
    return index < entries.count ? entries[index] : nil
  }

  /// The first entry at or after a key.
  private func position(notBelow key: [UInt8]) -> Int {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if compareKeys(entries[middle].prefix, key) < 0 { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private mutating func link() {
    outer = []
    outer.reserveCapacity(entries.count)
    for index in entries.indices {
      var candidate = index > 0 ? index - 1 : nil
      while let next = candidate, !entries[index].prefix.starts(with: entries[next].prefix) {
        candidate = outer[next]
      }
      outer.append(candidate)
    }
  }
}

/// A run of rows that lie together: where they are, and what their keys begin with there and for the tree.
struct StoredRun {
  let range: KeyRange
  let stored: [UInt8]
  let prefix: [UInt8]
}

extension SubtreeGenerations {
  /// The row that a key of the tree stands for.
  func stored(_ key: [UInt8]) -> [UInt8] {
    guard !entries.isEmpty, key.first == RowKeys.tree, let holder = holder(of: key) else { return key }
    return holder.stored + key.dropFirst(holder.prefix.count)
  }

  /// The rows of a range of the tree from its start up to where others begin that lie elsewhere, and where those begin;
  /// nil there at the end of the range.
  func run(_ range: KeyRange) -> (run: StoredRun, next: [UInt8]?) {
    let holder = holder(of: range.start)
    var end = range.end
    if let last = holder.flatMap({ KeyRange.successor(ofPrefix: $0.prefix) }), isBefore(last, end) {
      end = last
    }
    if let inner = first(after: range.start), isBefore(inner.prefix, end) { end = inner.prefix }
    let isLast = end == range.end
    guard let holder else {
      return (
        StoredRun(range: KeyRange(start: range.start, end: end), stored: [], prefix: []),
        isLast ? nil : end
      )
    }
    let start = holder.stored + range.start.dropFirst(holder.prefix.count)
    var storedEnd = KeyRange.successor(ofPrefix: holder.stored)
    if let end, end.starts(with: holder.prefix) {
      storedEnd = holder.stored + end.dropFirst(holder.prefix.count)
    }
    return (
      StoredRun(range: KeyRange(start: start, end: storedEnd), stored: holder.stored, prefix: holder.prefix),
      isLast ? nil : end
    )
  }

  private func isBefore(_ key: [UInt8], _ end: [UInt8]?) -> Bool {
    guard let end else { return true }
    return compareKeys(key, end) < 0
  }
}
