// An outbound queue holds the outputs of one connection whose client reads more slowly than its data changes.
//
// A client listens to locations. Each change of a location is a push to the client. A tag is the client's
// number for a filtered listen; unfiltered listens have none.
//
// While the client does not read, a push that only sets values is coalesced with the last queued push of the same
// tag. A counter that changes 1,000 times a second then occupies one message, and the client receives its latest
// value.
//
// Pushes that remove values or set priorities are never coalesced. Clients apply the paths of one message in
// any order. A location could therefore become empty for a moment and lose its priority
// (docs/decisions/0021-coalescing-for-slow-readers.md).
//
// Invariants
//   1. A client that applies the dequeued pushes shows only states that its listens had, in order, and the latest at the end.
//   2. A coalesced push keeps the queue position of its first part, so no response overtakes an earlier push.
//   3. The first value of a listen is never coalesced. No push is coalesced across the start or the end of its listen.

import NIOCore
import RealtimeEngine
import RealtimeModel

/// The responses and pushes that wait to be sent on one connection, in order.
struct OutboundQueue {
  private enum Entry {
    case output(RealtimeOutput)
    /// Several pushes with the same tag, combined into one.
    case coalesced(CoalescedPush)

    /// The estimated memory in bytes.
    var bytes: Int {
      switch self {
      case .output(let output): output.estimatedSize + 128
      case .coalesced(let push): push.bytes + 128
      }
    }
  }

  /// Starts without capacity, because most connections never queue anything.
  private var entries = CircularBuffer<Entry>(initialCapacity: 0)
  /// The number of the first queued entry. Entries are numbered in the order in which they were added.
  private var firstNumber = 0
  /// For each tag, the number of the entry with which the next push may be coalesced.
  private var coalescible: [Int64?: Int] = [:]
  /// The estimated memory of all entries, in bytes.
  private(set) var bytes = 0

  var isEmpty: Bool { entries.isEmpty }
  /// The number of queued messages.
  var count: Int { entries.count }

  /// Adds an output at the end, or coalesces it with a queued push.
  ///
  /// - Parameter coalescing: whether the output may be coalesced: true while the client does not read.
  mutating func append(_ output: RealtimeOutput, coalescing: Bool) {
    switch output {
    case .push(let push):
      let isCoalescible = !push.isFirst && push.onlySetsValues
      if isCoalescible, coalescing, coalesce(push) { return }
      coalescible[push.tag] = isCoalescible ? firstNumber + entries.count : nil
    // No push is coalesced across the start of its listen. The response does not name the listen's tag, so
    // this ends coalescing for all tags.
    case .response(_, .listening): coalescible = [:]
    case .response, .authRevoked, .ended: break
    }
    bytes += Entry.output(output).bytes
    entries.append(.output(output))
  }

  /// Removes and returns the first output; nil if the queue is empty.
  mutating func next() -> RealtimeOutput? {
    guard let entry = entries.popFirst() else { return nil }
    firstNumber += 1
    bytes -= entry.bytes
    precondition(bytes >= 0, "invariant: the queue's bytes are the sum of its entries")
    switch entry {
    case .output(let output): return output
    case .coalesced(let push): return .push(push.push)
    }
  }

  /// Puts dequeued outputs back to the front, unchanged and in the same order.
  mutating func putBack(_ outputs: ArraySlice<RealtimeOutput>) {
    for output in outputs.reversed() {
      bytes += Entry.output(output).bytes
      entries.prepend(.output(output))
    }
    firstNumber -= outputs.count
  }

  /// Coalesces a push with the queued push of the same tag. Returns false if there is none, or if the result
  /// would have too many paths.
  private mutating func coalesce(_ push: RealtimePush) -> Bool {
    guard let number = coalescible[push.tag], number >= firstNumber else { return false }
    let index = entries.index(entries.startIndex, offsetBy: number - firstNumber)
    let entry = entries[index]
    var coalesced: CoalescedPush
    switch entry {
    case .coalesced(let queued): coalesced = queued
    case .output(.push(let queued)):
      coalesced = CoalescedPush(tag: queued.tag)
      guard coalesced.add(queued) else { return false }
    case .output: preconditionFailure("invariant: only pushes are coalesced")
    }
    // This placeholder releases the entry's reference to the changes, so that they are modified in place
    // instead of copied.
    entries[index] = .output(.ended)
    let isAdded = coalesced.add(push)
    entries[index] = isAdded ? .coalesced(coalesced) : entry
    bytes += entries[index].bytes - entry.bytes
    return isAdded
  }
}

/// Several pushes of one tag that only set values, combined into one push with the latest value of each path.
private struct CoalescedPush {
  /// The maximum number of paths in one message. Adding a path compares it with all others, so the limit
  /// bounds that cost.
  private static let maximumChanges = 256

  private let tag: Int64?
  /// The latest value of each path. No path contains another path.
  private var changes: [(path: Path, value: Node)] = []
  /// The estimated size of the push's JSON, in bytes.
  private(set) var bytes = 0

  init(tag: Int64?) { self.tag = tag }

  /// Adds a later push. Returns false, and adds nothing, if the message would have too many paths.
  mutating func add(_ push: RealtimePush) -> Bool {
    guard changes.count + push.changeCount <= Self.maximumChanges else { return false }
    switch push.body {
    case .set(let value): set(push.path, to: value)
    case .merge(let children): for child in children { set(push.path.appending(child.path), to: child.value) }
    case .rangeMerge, .cancel: preconditionFailure("invariant: only values are coalesced")
    }
    return true
  }

  private mutating func set(_ path: Path, to value: Node) {
    if let index = changes.firstIndex(where: { $0.path.contains(path) && $0.path != path }) {
      let relative = Path(keys: Array(path.keys.dropFirst(changes[index].path.count)))
      bytes -= changes[index].value.estimatedSize
      changes[index].value = changes[index].value.setting(relative, to: value)
      bytes += changes[index].value.estimatedSize
      return
    }
    changes.removeAll { change in
      guard path.contains(change.path) else { return false }
      bytes -= Self.bytes(of: change)
      return true
    }
    changes.append((path, value))
    bytes += Self.bytes(of: (path, value))
  }

  private static func bytes(of change: (path: Path, value: Node)) -> Int {
    change.path.keyBytes + 8 + change.value.estimatedSize
  }

  /// The changes as one push, at the deepest location that contains all of them.
  var push: RealtimePush {
    guard let first = changes.first else { preconditionFailure("invariant: a coalesced push has changes") }
    if changes.count == 1 { return RealtimePush(first.path, .set(first.value), tag: tag) }
    var common = first.path
    for change in changes {
      while !common.contains(change.path), let parent = common.parent { common = parent }
    }
    let relative = changes.map { change in
      (path: Path(keys: Array(change.path.keys.dropFirst(common.count))), value: change.value)
    }
    return RealtimePush(common, .merge(relative), tag: tag)
  }
}

extension RealtimePush {
  /// Whether the push only sets values. False if it removes a value, or sets the priority of a location without its
  /// value.
  fileprivate var onlySetsValues: Bool {
    switch body {
    case .set(let value): !value.isEmpty && !path.isPriority
    case .merge(let children): children.allSatisfy { !$0.value.isEmpty && !$0.path.isPriority }
    case .rangeMerge, .cancel: false
    }
  }

  fileprivate var changeCount: Int {
    if case .merge(let children) = body { return children.count }
    return 1
  }
}
