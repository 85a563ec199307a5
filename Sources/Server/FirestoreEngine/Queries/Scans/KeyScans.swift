// Scans index keys: streams of document ids, and intersections and unions of such streams.
//
// Scans skip *hidden* keys, which have no value at the view's version. `ScanBudget` limits how many one scan skips.

import FirestoreModel
import OrderedStore

extension ReadView {
  /// The first key of a range, or the last if reversed; nil if the range is empty.
  func firstKey(in range: KeyRange, reverse: Bool = false) throws -> Key? {
    var found: Key?
    try scan(range, reverse: reverse) { key, _, _ in
      found = Array(key)
      return false
    }
    return found
  }
}

extension KeyRange {
  /// The part of the range that remains for a scan after it has visited `key`.
  func remainder(after key: Key, reverse: Bool) -> KeyRange {
    reverse ? KeyRange(start: start, end: key) : KeyRange(start: key.successor, end: end)
  }
}

extension Array where Element == UInt8 {
  /// The smallest key above this one.
  var successor: Key { self + [0] }

  /// Whether these bytes begin with others.
  func begins(with prefix: Key) -> Bool {
    count >= prefix.count && self[..<prefix.count].elementsEqual(prefix)
  }
}

/// The result of a search for the next id.
enum IDStep: Equatable {
  case id([UInt8])
  /// No id remains.
  case end
  /// The scan budget is exhausted. The next id is this one or comes after it in scan order.
  case paused([UInt8])
}

/// Streams the document ids under one index prefix, in order. The prefix contains a field and a value, so
/// these are the documents with that value. The stream can seek to an id.
struct EntryStream {
  private let prefix: Key
  private let bounds: KeyRange
  private let reverse: Bool
  private let view: any ReadView
  private let budget: ScanBudget
  /// Encoded ids that were read ahead, in scan order.
  private var buffer: [[UInt8]] = []
  private var position = 0
  /// The rest of the range; nil at the end.
  private var rest: KeyRange?
  private var batchSize = 8
  /// The id at which the last read stopped because the budget was exhausted, if it found no id.
  private var pause: [UInt8]?

  /// - Parameter ids: bounds of the encoded id, which follows the prefix.
  init(_ view: any ReadView, _ budget: ScanBudget, prefix: Key, ids: KeyRange, reverse: Bool) {
    self.view = view
    self.budget = budget
    self.prefix = prefix
    self.reverse = reverse
    bounds = KeyRange(
      start: prefix + ids.start, end: ids.end.map { prefix + $0 } ?? KeyRange.successor(ofPrefix: prefix))
    rest = bounds
  }

  /// The next id. With `target`, skips ids that precede it in scan order.
  mutating func next(notBefore target: [UInt8]? = nil) throws -> IDStep {
    while true {
      while position < buffer.count {
        let id = buffer[position]
        position += 1
        if let target, isBefore(id, target) { continue }
        return .id(id)
      }
      if let target, var range = rest {
        // The target is after all ids that were read ahead, so the stream seeks to it. It reads only a few
        // ids, since another seek is likely to follow.
        batchSize = 4
        let key = prefix + target
        if reverse {
          if key.successor.lexicographicallyPrecedes(range.end ?? key) { range.end = key.successor }
        } else if range.start.lexicographicallyPrecedes(key) {
          range.start = key
        }
        rest = range
      }
      guard try fill() else { return pause.map { .paused($0) } ?? .end }
    }
  }

  private func isBefore(_ id: [UInt8], _ target: [UInt8]) -> Bool {
    reverse ? target.lexicographicallyPrecedes(id) : id.lexicographicallyPrecedes(target)
  }

  private mutating func fill() throws -> Bool {
    pause = nil
    guard let range = rest else { return false }
    if let end = range.end, !range.start.lexicographicallyPrecedes(end) {
      rest = nil
      return false
    }
    buffer.removeAll(keepingCapacity: true)
    position = 0
    var ids: [[UInt8]] = []
    let count = prefix.count
    let limit = batchSize
    let skipped = try view.scan(range, reverse: reverse, maximumHidden: budget.maximumHiddenKeys) {
      key, _, _ in
      ids.append(Array(key[count...]))
      return ids.count < limit
    }
    budget.consume(ids.count + skipped.count + 1)
    batchSize = min(batchSize * 2, 256)
    let last = skipped.last ?? (ids.count == limit ? ids.last.map { prefix + $0 } : nil)
    rest = last.map { range.remainder(after: $0, reverse: reverse) }
    if ids.isEmpty, let last = skipped.last { pause = Array(last[count...]) }
    buffer = ids
    return !ids.isEmpty
  }
}

/// Streams the document ids that are under all of several index prefixes, in order. It is a zig-zag merge:
/// each stream seeks to the current candidate of the others. So the cost depends on the prefix with the
/// fewest ids.
struct IndexIntersection {
  private var streams: [EntryStream]
  private let budget: ScanBudget
  private let reverse: Bool
  /// The state of a paused search: the candidate id, the number of streams in which it was found, and the
  /// stream to search next. If the number is 0, the candidate is only a lower bound for the next stream's
  /// ids.
  private var paused: (candidate: [UInt8], agreed: Int, index: Int)?

  init(
    _ view: any ReadView, _ budget: ScanBudget, prefixes: [Key], ids: KeyRange, reverse: Bool
  ) {
    streams = prefixes.map { EntryStream(view, budget, prefix: $0, ids: ids, reverse: reverse) }
    self.budget = budget
    self.reverse = reverse
  }

  /// The next common id.
  mutating func next() throws -> IDStep {
    guard !streams.isEmpty else { return .end }
    var candidate = paused?.candidate
    var (agreed, index) = (paused?.agreed ?? 0, paused?.index ?? 0)
    paused = nil
    var steps = 0
    while agreed < streams.count {
      // The search may pause only after a complete round over the streams, in which the candidate has
      // changed. So every read makes progress.
      if steps > streams.count, budget.isExhausted, let candidate {
        paused = (candidate, agreed, index)
        return .paused(candidate)
      }
      steps += 1
      switch try streams[index].next(notBefore: candidate) {
      case .end: return .end
      case .paused(let id):
        paused = (id, 0, index)
        return .paused(id)
      case .id(let id):
        agreed = id == candidate ? agreed + 1 : 1
        candidate = id
      }
      index = (index + 1) % streams.count
    }
    return candidate.map { .id($0) } ?? .end
  }
}

/// Streams the ids of several intersections in order, each id once, by merging them.
struct IDUnion {
  private var parts: [IndexIntersection]
  /// The next id of each part; nil if the id has to be read.
  private var nextSteps: [IDStep?]
  private var last: [UInt8]?
  private let reverse: Bool

  init(_ parts: [IndexIntersection], reverse: Bool) {
    self.parts = parts
    self.reverse = reverse
    nextSteps = Array(repeating: nil, count: parts.count)
  }

  /// The range in which each part continues, within its bounds; nil if the part has ended.
  func remainingRanges(within bounds: [KeyRange?]) -> [KeyRange?] {
    zip(nextSteps, bounds).map { step, range -> KeyRange? in
      guard let range else { return nil }
      switch step {
      case .end: return nil
      case .id(let id), .paused(let id):
        return reverse
          ? KeyRange(start: range.start, end: id.successor) : KeyRange(start: id, end: range.end)
      case nil:
        guard let last else { return range }
        return reverse
          ? KeyRange(start: range.start, end: last) : KeyRange(start: last.successor, end: range.end)
      }
    }
  }

  /// The next id.
  mutating func next() throws -> IDStep {
    for index in parts.indices {
      switch nextSteps[index] {
      case nil, .paused: nextSteps[index] = try parts[index].next()
      case .id, .end: break
      }
    }
    var first: [UInt8]?
    var pause: [UInt8]?
    for step in nextSteps {
      switch step {
      case .id(let id): first = precedingID(id, first)
      case .paused(let id): pause = precedingID(id, pause)
      case .end, nil: break
      }
    }
    // A part that paused before the smallest id may still find an id that is smaller or equal, so the union
    // pauses too.
    if let pause, first.map({ precedingID(pause, $0) == pause }) ?? true { return .paused(pause) }
    guard let first else { return .end }
    for index in parts.indices where nextSteps[index] == .id(first) { nextSteps[index] = nil }
    last = first
    return .id(first)
  }

  /// Which of two ids comes first in scan order.
  private func precedingID(_ id: [UInt8], _ other: [UInt8]?) -> [UInt8] {
    guard let other else { return id }
    return (reverse ? id.lexicographicallyPrecedes(other) : other.lexicographicallyPrecedes(id)) ? other : id
  }
}
