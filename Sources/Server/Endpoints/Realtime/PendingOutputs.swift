// What waits for a peer that does not read: one message that leads from what the peer was told to the newest state,
// however much has happened in between. State, not history.
//
// Invariants
//   1. Applied in order, what comes out leads every listen through states that it really had, to the same end as what
//      went in: all that waits for the default listens is one message, and all that waits for a query, so that no listen
//      ever shows a mixture of two states.
//   2. Nothing comes later than it would have: what is merged takes the place of the earliest. So pushes still stand
//      before the answers that they have to stand before.
//   3. A listen's first value is a message of its own, and nothing of it comes before its listen is answered.
//
// What cannot be told at once with what waits becomes a message behind it (see MergedChanges); so 1 holds.

import NIOCore
import RealtimeEngine
import RealtimeModel

/// Answers and pushes that wait, in order.
struct PendingOutputs {
  private enum Entry {
    case output(RealtimeOutput)
    /// Several pushes with one tag, or without any, merged.
    case merged(tag: Int64?, MergedChanges)
  }

  private var entries: CircularBuffer<Entry> = []
  /// How many entries have left.
  private var taken = 0
  /// For each tag the last entry, counted from the first that ever was.
  private var last: [Int64?: Int] = [:]
  /// About how many bytes wait.
  private(set) var bytes = 0

  var isEmpty: Bool { entries.isEmpty }
  /// How many messages wait.
  var count: Int { entries.count }

  /// Adds an output.
  ///
  /// - Parameter merging: whether it may become one with what waits already.
  mutating func add(_ output: RealtimeOutput, merging: Bool) {
    switch output {
    case .push(let push) where push.canBeMerged:
      if merging, !push.isFirst, merge(push) { return }
      last[push.tag] = taken + entries.count
    case .response(_, .listening), .push:
      // What comes later may be of a listen that is only answered here, or may not reach back over its end.
      last = [:]
    case .response, .ended: break
    }
    append(.output(output))
  }

  /// Takes the first output.
  mutating func next() -> RealtimeOutput? {
    guard let first = entries.popFirst() else { return nil }
    taken += 1
    bytes -= PendingOutputs.size(first)
    if entries.isEmpty { last = [:] }
    switch first {
    case .output(let output): return output
    case .merged(let tag, let changes): return .push(changes.push(tag))
    }
  }

  /// Puts outputs that were taken back to the front; nothing is merged into them.
  mutating func putBack(_ outputs: ArraySlice<RealtimeOutput>) {
    for output in outputs.reversed() {
      entries.prepend(.output(output))
      bytes += PendingOutputs.size(.output(output))
      taken -= 1
    }
  }

  private mutating func append(_ entry: Entry) {
    bytes += PendingOutputs.size(entry)
    entries.append(entry)
  }

  /// Merges a push into what waits under its tag; false if it cannot be.
  private mutating func merge(_ push: RealtimePush) -> Bool {
    guard let number = last[push.tag], number >= taken else { return false }
    let index = entries.index(entries.startIndex, offsetBy: number - taken)
    var merged: MergedChanges
    switch entries[index] {
    case .merged(_, let changes): merged = changes
    case .output(.push(let first)):
      // A first value stays the value of its whole location.
      guard !first.isFirst || first.path.contains(push.path) else { return false }
      // Adding looks at what is there already: what has many places is not gone through again for one more.
      guard first.changeCount <= MergedChanges.most else { return false }
      merged = MergedChanges()
      merged.add(first)
    case .output: return false
    }
    guard merged.changes.count + push.changeCount <= MergedChanges.most, merged.admits(push) else {
      return false
    }
    bytes -= PendingOutputs.size(entries[index])
    // Held once, it is changed in place.
    entries[index] = .output(.response(request: 0, .done))
    merged.add(push)
    entries[index] = .merged(tag: push.tag, merged)
    bytes += PendingOutputs.size(entries[index])
    return true
  }

  private static func size(_ entry: Entry) -> Int {
    switch entry {
    case .merged(_, let changes): changes.size + 128
    case .output(.push(let push)): push.estimatedSize + 128
    case .output(.response(_, .value(let node))): node.estimatedSize + 128
    case .output(.response), .output(.ended): 128
    }
  }
}

extension RealtimePush {
  fileprivate var canBeMerged: Bool {
    switch body {
    case .set, .merge: true
    case .rangeMerge, .cancel: false
    }
  }

  fileprivate var changeCount: Int {
    if case .merge(let children) = body { return children.count }
    return 1
  }
}
