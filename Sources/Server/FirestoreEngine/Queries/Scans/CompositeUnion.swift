// Merges several ranges of a composite index, each with a key prefix. Entries are returned in the order of
// their keys after this prefix (the suffix). Entries with equal suffixes belong to the same document, and only one of
// them is returned.

import OrderedStore

/// Reads several ranges of a composite index in one merge.
struct CompositeUnion {
  /// An entry. The part of its key from the offset `start` determines its position in the merge.
  struct Entry {
    var row: CompositeRow
    var start: Int

    var suffix: ArraySlice<UInt8> { row.key[start...] }
  }

  /// The result of a search for the next entry.
  enum Step {
    case entry(Entry)
    /// No entry remains.
    case end
    /// The scan budget is exhausted.
    case paused
  }

  private struct Stream {
    let start: Int
    let bounds: KeyRange
    var rest: KeyRange?
    var readAhead: ArraySlice<CompositeRow> = []
    var batchSize = 16
    /// Whether the last read stopped at the budget before it found an entry.
    var isPaused = false
  }

  private let view: any ReadView
  private let budget: ScanBudget
  private let reverse: Bool
  private let valuesStart: Int
  private var streams: [Stream]

  init(
    _ scan: CompositeScan, _ ranges: [KeyRange], _ view: any ReadView, _ budget: ScanBudget,
    reverse: Bool
  ) {
    self.view = view
    self.budget = budget
    self.reverse = reverse
    valuesStart = scan.collection.map { scan.index.prefix(in: $0).count } ?? scan.index.prefix.count
    streams = zip(scan.streams, ranges).map { Stream(start: $0.prefix.count, bounds: $1, rest: $1) }
  }

  /// The remaining part of each range.
  var remainders: [KeyRange] {
    streams.map { stream in
      guard let next = stream.readAhead.first?.key else { return stream.rest ?? KeyRange(start: [], end: []) }
      // Entries that were read ahead have not been returned, so they remain.
      return reverse
        ? KeyRange(start: stream.bounds.start, end: next.successor)
        : KeyRange(start: next, end: stream.bounds.end)
    }
  }

  /// The next entry.
  mutating func next() throws -> Step {
    var first: Entry?
    for stream in streams.indices {
      guard let row = try nextRow(stream) else {
        // This range's next entry is unknown and may precede the entries of the other ranges.
        if streams[stream].isPaused { return .paused }
        continue
      }
      let entry = Entry(row: row, start: streams[stream].start)
      guard let current = first else {
        first = entry
        continue
      }
      if reverse
        ? current.suffix.lexicographicallyPrecedes(entry.suffix)
        : entry.suffix.lexicographicallyPrecedes(current.suffix)
      {
        first = entry
      }
    }
    guard let first else { return .end }
    for stream in streams.indices {
      while let row = try nextRow(stream), row.key[streams[stream].start...].elementsEqual(first.suffix) {
        streams[stream].readAhead.removeFirst()
      }
    }
    return .entry(first)
  }

  private mutating func nextRow(_ stream: Int) throws -> CompositeRow? {
    if let row = streams[stream].readAhead.first { return row }
    streams[stream].isPaused = false
    guard let range = streams[stream].rest, !range.isEmpty else { return nil }
    var rows: [CompositeRow] = []
    var last: Key = []
    var count = 0
    let limit = streams[stream].batchSize
    let start = valuesStart
    let skipped = try view.scan(range, reverse: reverse, maximumHidden: budget.maximumHiddenKeys) {
      key, value, _ in
      last = Array(key)
      count += 1
      if let row = CompositeRow(last, value, start: start) { rows.append(row) }
      return count < limit
    }
    budget.consume(count + skipped.count + 1)
    streams[stream].batchSize = min(limit * 2, 256)
    let end = skipped.last ?? (count == limit ? last : nil)
    streams[stream].rest = end.map { range.remainder(after: $0, reverse: reverse) }
    streams[stream].isPaused = rows.isEmpty && skipped.last != nil
    streams[stream].readAhead = rows[...]
    return rows.first
  }
}
