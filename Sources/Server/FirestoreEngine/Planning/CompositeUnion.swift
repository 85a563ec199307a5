// The entries of a composite index that one of several ranges gives, each document's once, in the order of what follows
// the ranges' prefixes: a merge.

import OrderedStore

/// Reads ranges of a composite index side by side.
struct CompositeUnion {
  /// An entry, and where in its key the part begins that orders it.
  struct Entry {
    var row: CompositeRow
    var start: Int

    var suffix: ArraySlice<UInt8> { row.key[start...] }
  }

  /// What a search for the next entry gives.
  enum Step {
    case entry(Entry)
    /// There are no more.
    case end
    /// What may be read is spent.
    case paused
  }

  private struct Stream {
    let start: Int
    let whole: KeyRange
    var rest: KeyRange?
    var ahead: ArraySlice<CompositeRow> = []
    var batch = 16
    /// Whether the last read found nothing and did not come to the end.
    var isPaused = false
  }

  private let view: any ReadView
  private let allowance: ScanAllowance
  private let reverse: Bool
  private let valuesStart: Int
  private var streams: [Stream]

  init(
    _ scan: CompositeScan, _ ranges: [KeyRange], _ view: any ReadView, _ allowance: ScanAllowance,
    reverse: Bool
  ) {
    self.view = view
    self.allowance = allowance
    self.reverse = reverse
    valuesStart = scan.collection.map { scan.index.prefix(in: $0).count } ?? scan.index.prefix.count
    streams = zip(scan.streams, ranges).map { Stream(start: $0.prefix.count, whole: $1, rest: $1) }
  }

  /// What is left of each range.
  var remainders: [KeyRange] {
    streams.map { stream in
      guard let next = stream.ahead.first?.key else { return stream.rest ?? KeyRange(start: [], end: []) }
      // From the next entry on, which was read ahead only.
      return reverse
        ? KeyRange(start: stream.whole.start, end: next.successor)
        : KeyRange(start: next, end: stream.whole.end)
    }
  }

  /// The next entry.
  mutating func next() throws -> Step {
    var least: Entry?
    for place in streams.indices {
      guard let row = try head(place) else {
        // What this one gives next may come before what the others have.
        if streams[place].isPaused { return .paused }
        continue
      }
      let entry = Entry(row: row, start: streams[place].start)
      guard let known = least else {
        least = entry
        continue
      }
      if reverse
        ? known.suffix.lexicographicallyPrecedes(entry.suffix)
        : entry.suffix.lexicographicallyPrecedes(known.suffix)
      {
        least = entry
      }
    }
    guard let least else { return .end }
    for place in streams.indices {
      while let row = try head(place), row.key[streams[place].start...].elementsEqual(least.suffix) {
        streams[place].ahead.removeFirst()
      }
    }
    return .entry(least)
  }

  private mutating func head(_ place: Int) throws -> CompositeRow? {
    if let row = streams[place].ahead.first { return row }
    streams[place].isPaused = false
    guard let range = streams[place].rest, !range.isEmpty else { return nil }
    var rows: [CompositeRow] = []
    var last: Key = []
    var count = 0
    let limit = streams[place].batch
    let start = valuesStart
    let hidden = try view.scan(range, reverse: reverse, maximumHidden: allowance.hidden) { key, value, _ in
      last = Array(key)
      count += 1
      if let row = CompositeRow(last, value, start: start) { rows.append(row) }
      return count < limit
    }
    allowance.spend(count + hidden.count + 1)
    streams[place].batch = min(limit * 2, 256)
    let end = hidden.last ?? (count == limit ? last : nil)
    streams[place].rest = end.map { range.remainder(after: $0, reverse: reverse) }
    streams[place].isPaused = rows.isEmpty && hidden.last != nil
    streams[place].ahead = rows[...]
    return rows.first
  }
}
