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
// What cannot be told at once with what waits becomes a message behind it (see MergedChanges), and part of it later if it
// replaces what stood in the way; so 1 holds.

import NIOCore
import RealtimeEngine
import RealtimeModel

/// Answers and pushes that wait, in order.
struct PendingOutputs {
  private enum Content {
    case output(RealtimeOutput)
    /// Several pushes with one tag, or without any, merged.
    case merged(tag: Int64?, MergedChanges)
    /// What became part of an earlier message. Never the last entry.
    case nothing
  }

  private struct Entry {
    var content: Content
    /// The message with the same tag that it may become part of, counted from the first entry that ever was.
    var before: Int?
  }

  private var entries: CircularBuffer<Entry> = []
  /// How many entries have left, and how many had at most: what was put back since was told in part.
  private var taken = 0
  private var mostTaken = 0
  /// How many entries hold nothing.
  private var blanks = 0
  /// For each tag the last entry, counted from the first that ever was.
  private var last: [Int64?: Int] = [:]
  /// About how many bytes wait.
  private(set) var bytes = 0

  var isEmpty: Bool { entries.isEmpty }
  /// How many messages wait.
  var count: Int { entries.count - blanks }

  /// Adds an output.
  ///
  /// - Parameter merging: whether it may become one with what waits already.
  mutating func add(_ output: RealtimeOutput, merging: Bool) {
    var before: Int?
    switch output {
    case .push(let push) where push.canBeMerged:
      if merging, !push.isFirst {
        if merge(push) { return }
        before = last[push.tag]
      }
      last[push.tag] = taken + entries.count
    case .response(_, .listening), .push:
      // What comes later may be of a listen that is only answered here, or may not reach back over its end.
      last = [:]
    case .response, .ended: break
    }
    let entry = Entry(content: .output(output), before: before)
    bytes += PendingOutputs.size(entry)
    entries.append(entry)
  }

  /// Takes the first output.
  mutating func next() -> RealtimeOutput? {
    while let first = entries.popFirst() {
      taken += 1
      mostTaken = max(mostTaken, taken)
      bytes -= PendingOutputs.size(first)
      if entries.isEmpty { last = [:] }
      switch first.content {
      case .output(let output): return output
      case .merged(let tag, let changes): return .push(changes.push(tag))
      case .nothing: blanks -= 1
      }
    }
    return nil
  }

  /// Puts outputs that were taken back to the front; nothing is merged into them.
  mutating func putBack(_ outputs: ArraySlice<RealtimeOutput>) {
    for output in outputs.reversed() {
      let entry = Entry(content: .output(output))
      entries.prepend(entry)
      bytes += PendingOutputs.size(entry)
      taken -= 1
    }
  }

  // MARK: Merging

  /// Merges a push into what waits under its tag; false if it cannot be.
  private mutating func merge(_ push: RealtimePush) -> Bool {
    guard let number = last[push.tag], var merged = message(number, for: push.path),
      merged.changes.count + push.changeCount <= MergedChanges.most, merged.admits(push)
    else { return false }
    // Held once, it is changed in place.
    replace(number, by: .nothing)
    merged.add(push)
    replace(number, by: .merged(tag: push.tag, merged))
    fold(number, push.tag)
    return true
  }

  /// An entry as a message to which something of a location can be added; nil if that cannot be, or it has left.
  private func message(_ number: Int, for path: Path) -> MergedChanges? {
    guard number >= mostTaken else { return nil }
    switch entries[position(number)].content {
    case .merged(_, let changes): return changes
    case .output(.push(let first)):
      // A first value stays the value of its whole location.
      guard !first.isFirst || first.path.contains(path) else { return nil }
      // Adding looks at what is there already: what has many places is not gone through again for one more.
      guard first.changeCount <= MergedChanges.most else { return nil }
      var merged = MergedChanges()
      merged.add(first)
      return merged
    case .output, .nothing: return nil
    }
  }

  /// The most pairs of changes that are compared to see whether two messages can be one.
  private static let mostCompared = 1_024

  /// Has the last message of a tag become part of the one before it, once what stood in the way was replaced.
  private mutating func fold(_ number: Int, _ tag: Int64?) {
    var number = number
    while let before = entries[position(number)].before, before >= mostTaken,
      case .merged(_, let later) = entries[position(number)].content
    {
      // Each of one is held against each of the other, with every push that comes.
      let most = min(
        MergedChanges.most - later.changes.count, PendingOutputs.mostCompared / max(later.changes.count, 1))
      switch entries[position(before)].content {
      // A first value is told before its listen is answered: what could not be added to it at once comes behind.
      case .output(.push(let first)) where !first.isFirst && first.changeCount <= most: break
      case .merged(_, let changes) where changes.changes.count <= most: break
      case .output, .merged, .nothing: return
      }
      guard var earlier = message(before, for: .root) else { return }
      guard earlier.admits(later) else {
        // Not put together anew with the next push.
        return replace(before, by: .merged(tag: tag, earlier))
      }
      replace(before, by: .nothing)
      earlier.add(later)
      replace(before, by: .merged(tag: tag, earlier))
      last[tag] = before
      leave(number)
      number = before
    }
  }

  /// Has an entry hold nothing.
  private mutating func leave(_ number: Int) {
    replace(number, by: .nothing)
    blanks += 1
    while case .nothing? = entries.last?.content {
      entries.removeLast()
      blanks -= 1
    }
  }

  private mutating func replace(_ number: Int, by content: Content) {
    let index = position(number)
    bytes -= PendingOutputs.size(entries[index])
    entries[index].content = content
    bytes += PendingOutputs.size(entries[index])
  }

  private func position(_ number: Int) -> CircularBuffer<Entry>.Index {
    entries.index(entries.startIndex, offsetBy: number - taken)
  }

  private static func size(_ entry: Entry) -> Int {
    switch entry.content {
    case .merged(_, let changes): changes.size + 128
    case .output(.push(let push)): push.estimatedSize + 128
    case .output(.response(_, .value(let node))): node.estimatedSize + 128
    case .output(.response), .output(.ended): 128
    case .nothing: 0
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
