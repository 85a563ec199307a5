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

/// The ids under one index prefix (all entries with one value of one field), in order, with seeks.
struct EntryStream {
  private let prefix: Key
  private let whole: KeyRange
  private let reverse: Bool
  private let view: any ReadView
  /// Encoded ids read ahead, in scan order.
  private var buffer: [[UInt8]] = []
  private var position = 0
  /// Where to read on; nil at the end.
  private var rest: KeyRange?
  private var batch = 8

  /// - Parameter ids: bounds on the encoded id, which follows the prefix.
  init(_ view: any ReadView, prefix: Key, ids: KeyRange, reverse: Bool) {
    self.view = view
    self.prefix = prefix
    self.reverse = reverse
    whole = KeyRange(
      start: prefix + ids.start, end: ids.end.map { prefix + $0 } ?? KeyRange.successor(ofPrefix: prefix))
    rest = whole
  }

  /// The next id, or the next that is not before `target` in scan order; nil at the end.
  mutating func next(notBefore target: [UInt8]? = nil) throws -> [UInt8]? {
    while true {
      while position < buffer.count {
        let id = buffer[position]
        position += 1
        if let target, isBefore(id, target) { continue }
        return id
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
      guard try fill() else { return nil }
    }
  }

  private func isBefore(_ id: [UInt8], _ target: [UInt8]) -> Bool {
    reverse ? target.lexicographicallyPrecedes(id) : id.lexicographicallyPrecedes(target)
  }

  private mutating func fill() throws -> Bool {
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
    try view.scan(range, reverse: reverse) { key, _, _ in
      ids.append(Array(key[count...]))
      return ids.count < limit
    }
    batch = min(batch * 2, 256)
    if ids.count < limit {
      rest = nil
    } else if let last = ids.last {
      rest = range.remainder(after: prefix + last, reverse: reverse)
    }
    buffer = ids
    return !ids.isEmpty
  }
}

/// The ids that stand under every one of several index prefixes, in order: a zig-zag merge, whose cost is that of the
/// rarest prefix.
struct Intersection {
  private var streams: [EntryStream]
  private let reverse: Bool

  init(_ view: any ReadView, prefixes: [Key], ids: KeyRange, reverse: Bool) {
    streams = prefixes.map { EntryStream(view, prefix: $0, ids: ids, reverse: reverse) }
    self.reverse = reverse
  }

  /// The next common id; nil at the end.
  mutating func next() throws -> [UInt8]? {
    guard !streams.isEmpty, var candidate = try streams[0].next() else { return nil }
    var agreed = 1
    var index = 1 % streams.count
    while agreed < streams.count {
      guard let id = try streams[index].next(notBefore: candidate) else { return nil }
      if id == candidate {
        agreed += 1
      } else {
        candidate = id
        agreed = 1
      }
      index = (index + 1) % streams.count
    }
    return candidate
  }
}

/// The ids that one of several intersections gives, each once, in order: a merge.
struct IDUnion {
  private var parts: [Intersection]
  /// The next id of each part; nil at its end.
  private var heads: [[UInt8]?] = []
  private let reverse: Bool

  init(_ parts: [Intersection], reverse: Bool) {
    self.parts = parts
    self.reverse = reverse
  }

  /// The next id; nil at the end.
  mutating func next() throws -> [UInt8]? {
    if parts.count == 1 { return try parts[0].next() }
    if heads.isEmpty { for index in parts.indices { heads.append(try parts[index].next()) } }
    var least: [UInt8]?
    for case let head? in heads {
      guard let known = least else {
        least = head
        continue
      }
      if reverse ? known.lexicographicallyPrecedes(head) : head.lexicographicallyPrecedes(known) {
        least = head
      }
    }
    guard let least else { return nil }
    for index in parts.indices where heads[index] == least { heads[index] = try parts[index].next() }
    return least
  }
}
