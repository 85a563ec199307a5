// Small scans over a view: the building blocks of plans and listings.

import FirestoreModel
import OrderedStore

extension ReadView {
  /// The first key of a range, or the last if read backwards; nil if it is empty.
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
  /// The part of the range that a scan has yet to visit after `key`.
  func remainder(after key: Key, reverse: Bool) -> KeyRange {
    reverse ? KeyRange(start: start, end: key) : KeyRange(start: key.successor, end: end)
  }
}

extension Array where Element == UInt8 {
  /// The least key above this one.
  var successor: Key { self + [0] }

  /// Whether these bytes begin with others.
  func begins(with prefix: Key) -> Bool {
    count >= prefix.count && self[..<prefix.count].elementsEqual(prefix)
  }
}

/// What a search for the next id gives.
enum IDStep: Equatable {
  case id([UInt8])
  /// There are no more.
  case end
  /// None before this one, in scan order; what may be read is spent.
  case paused([UInt8])
}

/// The ids under one index prefix (all entries with one value of one field), in order, with seeks.
struct EntryStream {
  private let prefix: Key
  private let whole: KeyRange
  private let reverse: Bool
  private let view: any ReadView
  private let allowance: ScanAllowance
  /// Encoded ids read ahead, in scan order.
  private var buffer: [[UInt8]] = []
  private var position = 0
  /// Where to read on; nil at the end.
  private var rest: KeyRange?
  private var batch = 8
  /// The id at which the last read stopped, if it found nothing and did not come to the end.
  private var pause: [UInt8]?

  /// - Parameter ids: bounds on the encoded id, which follows the prefix.
  init(_ view: any ReadView, _ allowance: ScanAllowance, prefix: Key, ids: KeyRange, reverse: Bool) {
    self.view = view
    self.allowance = allowance
    self.prefix = prefix
    self.reverse = reverse
    whole = KeyRange(
      start: prefix + ids.start, end: ids.end.map { prefix + $0 } ?? KeyRange.successor(ofPrefix: prefix))
    rest = whole
  }

  /// The next id, or the next that is not before `target` in scan order.
  mutating func next(notBefore target: [UInt8]? = nil) throws -> IDStep {
    while true {
      while position < buffer.count {
        let id = buffer[position]
        position += 1
        if let target, isBefore(id, target) { continue }
        return .id(id)
      }
      if let target, var range = rest {
        // What is asked for lies beyond what was read ahead: seek instead of reading through, and read little, since
        // the next step is likely to be another seek.
        batch = 4
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
    let limit = batch
    let hidden = try view.scan(range, reverse: reverse, maximumHidden: allowance.hidden) { key, _, _ in
      ids.append(Array(key[count...]))
      return ids.count < limit
    }
    allowance.spend(ids.count + hidden.count + 1)
    batch = min(batch * 2, 256)
    let last = hidden.last ?? (ids.count == limit ? ids.last.map { prefix + $0 } : nil)
    rest = last.map { range.remainder(after: $0, reverse: reverse) }
    if ids.isEmpty, let last = hidden.last { pause = Array(last[count...]) }
    buffer = ids
    return !ids.isEmpty
  }
}

/// The ids that stand under every one of several index prefixes, in order: a zig-zag merge, whose cost is that of the
/// rarest prefix.
struct Intersection {
  private var streams: [EntryStream]
  private let allowance: ScanAllowance
  private let reverse: Bool
  /// Where the search stands that was paused: its candidate, how many streams have it, and which is to be asked next. If
  /// none has it, the one to be asked has nothing up to there.
  private var paused: (candidate: [UInt8], agreed: Int, index: Int)?

  init(
    _ view: any ReadView, _ allowance: ScanAllowance, prefixes: [Key], ids: KeyRange, reverse: Bool
  ) {
    streams = prefixes.map { EntryStream(view, allowance, prefix: $0, ids: ids, reverse: reverse) }
    self.allowance = allowance
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
      // After a whole round the candidate is another.
      if steps > streams.count, allowance.isSpent, let candidate {
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

/// The ids that one of several intersections gives, each once, in order: a merge.
struct IDUnion {
  private var parts: [Intersection]
  /// Where each part stands; nil where it has to be asked.
  private var heads: [IDStep?]
  private var last: [UInt8]?
  private let reverse: Bool

  init(_ parts: [Intersection], reverse: Bool) {
    self.parts = parts
    self.reverse = reverse
    heads = Array(repeating: nil, count: parts.count)
  }

  /// Where to read each part on, within the bounds it has; nil where it has ended.
  func bounds(within whole: [KeyRange?]) -> [KeyRange?] {
    zip(heads, whole).map { head, range -> KeyRange? in
      guard let range else { return nil }
      switch head {
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
      switch heads[index] {
      case nil, .paused: heads[index] = try parts[index].next()
      case .id, .end: break
      }
    }
    var least: [UInt8]?
    var pause: [UInt8]?
    for head in heads {
      switch head {
      case .id(let id): least = first(id, least)
      case .paused(let id): pause = first(id, pause)
      case .end, nil: break
      }
    }
    // A part that was paused before the least id may still give a lesser one, or the same.
    if let pause, least.map({ first(pause, $0) == pause }) ?? true { return .paused(pause) }
    guard let least else { return .end }
    for index in parts.indices where heads[index] == .id(least) { heads[index] = nil }
    last = least
    return .id(least)
  }

  /// Which of two comes first in scan order.
  private func first(_ id: [UInt8], _ other: [UInt8]?) -> [UInt8] {
    guard let other else { return id }
    return (reverse ? id.lexicographicallyPrecedes(other) : other.lexicographicallyPrecedes(id)) ? other : id
  }
}
