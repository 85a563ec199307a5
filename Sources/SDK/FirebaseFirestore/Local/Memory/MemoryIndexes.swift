// The indexes of a cache in memory. They are updated with every change of a document.
//
// Invariant: an index contains exactly the entries of the existing documents in its collections.

import FirestoreModel

struct MemoryIndexes: Sendable {
  private var entries: [FieldIndex: [ResourcePath: SortedKeys]] = [:]
  /// The same definitions by collection ID, so that a write checks only the indexes of its collection.
  private var byCollection: [String: [FieldIndex]] = [:]

  var definitions: Set<FieldIndex> { Set(entries.keys) }

  mutating func add(_ index: FieldIndex, over documents: [ResourcePath: [DocumentName: CachedDocument]]) {
    var collections: [ResourcePath: SortedKeys] = [:]
    for (path, documents) in documents where path.id == index.collectionID {
      collections[path] = SortedKeys(
        documents.values.flatMap { document in
          document.isFound ? index.keys(of: document.fields).map { .init(key: $0, name: document.name) } : []
        })
    }
    entries[index] = collections
    byCollection[index.collectionID, default: []].append(index)
  }

  mutating func remove(_ index: FieldIndex) {
    entries[index] = nil
    byCollection[index.collectionID]?.removeAll { $0 == index }
  }

  mutating func replace(_ old: CachedDocument?, by new: CachedDocument?, in path: ResourcePath) {
    guard let id = path.id, let indexes = byCollection[id], let name = old?.name ?? new?.name else { return }
    for index in indexes {
      let before = old.map { $0.isFound ? index.keys(of: $0.fields) : [] } ?? []
      let after = new.map { $0.isFound ? index.keys(of: $0.fields) : [] } ?? []
      guard before != after else { continue }
      for key in before.subtracting(after) { entries[index]?[path]?.remove(.init(key: key, name: name)) }
      for key in after.subtracting(before) {
        entries[index]?[path, default: SortedKeys([])].insert(.init(key: key, name: name))
      }
    }
  }

  func keys(of index: FieldIndex, in path: ResourcePath) -> SortedKeys? { entries[index]?[path] }
}

/// Sorted index keys with the names of their documents. They are split into short runs, so that an insertion
/// moves few entries.
struct SortedKeys: Sendable {
  struct Entry: Sendable {
    let key: [UInt8]
    let name: DocumentName

    static func < (a: Entry, b: Entry) -> Bool {
      if a.key == b.key { return a.name < b.name }
      return a.key.lexicographicallyPrecedes(b.key)
    }
  }

  private static let runLength = 512
  /// No run is empty.
  private var runs: [[Entry]] = []

  init(_ entries: [Entry]) {
    let sorted = entries.sorted(by: <)
    runs = stride(from: 0, to: sorted.count, by: SortedKeys.runLength).map {
      Array(sorted[$0..<min($0 + SortedKeys.runLength, sorted.count)])
    }
  }

  var count: Int { runs.reduce(0) { $0 + $1.count } }

  mutating func insert(_ entry: Entry) {
    guard !runs.isEmpty else {
      runs = [[entry]]
      return
    }
    let run = min(SortedKeys.first(in: runs) { !($0[$0.count - 1] < entry) }, runs.count - 1)
    runs[run].insert(entry, at: SortedKeys.first(in: runs[run]) { !($0 < entry) })
    guard runs[run].count > 2 * SortedKeys.runLength else { return }
    let upper = Array(runs[run][SortedKeys.runLength...])
    runs[run].removeLast(upper.count)
    runs.insert(upper, at: run + 1)
  }

  mutating func remove(_ entry: Entry) {
    let run = SortedKeys.first(in: runs) { !($0[$0.count - 1] < entry) }
    guard run < runs.count else { return }
    let index = SortedKeys.first(in: runs[run]) { !($0 < entry) }
    guard index < runs[run].count else { return }
    let found = runs[run][index]
    guard found.key == entry.key, found.name == entry.name else { return }
    runs[run].remove(at: index)
    if runs[run].isEmpty { runs.remove(at: run) }
  }

  /// Visits the entries in a range in order, or in reverse, until `visit` returns false.
  func visit(_ range: IndexRange, reversed: Bool, _ visit: (Entry) -> Bool) {
    if reversed { return visitReversed(range, visit) }
    var (run, index) = position(of: range.start)
    while run < runs.count {
      while index < runs[run].count {
        let entry = runs[run][index]
        if let end = range.end, !entry.key.lexicographicallyPrecedes(end) { return }
        if !visit(entry) { return }
        index += 1
      }
      run += 1
      index = 0
    }
  }

  private func visitReversed(_ range: IndexRange, _ visit: (Entry) -> Bool) {
    var (run, index) = range.end.map { position(of: $0) } ?? (runs.count, 0)
    while true {
      while index > 0 {
        index -= 1
        let entry = runs[run][index]
        if entry.key.lexicographicallyPrecedes(range.start) || !visit(entry) { return }
      }
      guard run > 0 else { return }
      run -= 1
      index = runs[run].count
    }
  }

  /// The position of the first entry that is not below a key.
  private func position(of key: [UInt8]) -> (run: Int, index: Int) {
    let run = SortedKeys.first(in: runs) { !$0[$0.count - 1].key.lexicographicallyPrecedes(key) }
    guard run < runs.count else { return (run, 0) }
    return (run, SortedKeys.first(in: runs[run]) { !$0.key.lexicographicallyPrecedes(key) })
  }

  /// The index of the first element that meets a condition. All later elements must also meet it.
  private static func first<T>(in list: [T], where condition: (T) -> Bool) -> Int {
    var low = 0
    var high = list.count
    while low < high {
      let middle = (low + high) / 2
      if condition(list[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
