// Reads the candidates of a plan: documents that may match. Index entries are read ahead in batches, and
// their documents one by one.
//
// Invariant: rows that are read are recorded for the transaction's validation. Index entries without a
// document are skipped. A consistent snapshot has no such entries.

import FirestoreModel
import OrderedStore

/// A document that may match.
struct Candidate {
  var document: StoredDocument
  /// The encoded value of the first order field, for sources that are in its order. Adjacent candidates with
  /// equal values form a run.
  var value: ArraySlice<UInt8> = []
  /// The key of the index entry that led to the document, for sources that scan one index. For a composite
  /// index, only the part of the key after the fixed values.
  var entry: Key = []
}

/// Where a scan continues.
enum ScanPosition: Sendable {
  case start
  /// After a document, for sources in name order and for lists of names.
  case after(StoredDocument)
  /// In the rest of a range, for sources that scan a single range.
  case range(KeyRange)
  /// For the source `entries`: in the rest of the id range of each disjunct of the filter; nil for a disjunct without
  /// further documents.
  case ids([KeyRange?])
  /// After a document's path, for walks over a subtree.
  case path(ResourcePath)
  /// In the rest of each range of a composite index.
  case ranges([KeyRange])
}

/// Reads a plan's source.
struct Candidates {
  /// A candidate that was read ahead.
  private enum ReadAhead {
    case document(StoredDocument)
    case row(DocumentName, Key, value: ArraySlice<UInt8>, entry: Key)
  }

  private let plan: QueryPlan
  private let database: DatabaseName
  private let view: any ReadView
  private let recordsKeys: Bool
  private let budget: ScanBudget
  /// Bytes of documents after which one read of rows stops.
  private let maximumBytes: Int
  private var hasBegun = false
  private var isPaused = false
  private var readAhead: [ReadAhead] = []
  private var position = 0
  private var batchSize: Int
  /// The rest of the range; nil at the end of the scan.
  private var rest: KeyRange?
  private var names: ArraySlice<ResourcePath> = []
  private var ids: IDUnion
  private var idBounds: [KeyRange?] = []
  private var composite: CompositeUnion?
  private var walkedPath: ResourcePath?
  private var isWalkDone = false
  /// The document rows that were read, if they are recorded.
  private(set) var keys: [Key] = []

  /// - Parameters:
  ///   - expected: the number of candidates that are likely to be needed.
  ///   - maximumBytes: bytes of documents after which one read of rows stops.
  init(
    _ plan: QueryPlan, _ database: DatabaseName, _ view: any ReadView, from position: ScanPosition = .start,
    expecting expected: Int, maximumBytes: Int = EngineLimits.maximumPageBytes, recordsKeys: Bool = false,
    budget: ScanBudget = ScanBudget(rows: EngineLimits.maximumScanRows)
  ) {
    self.budget = budget
    self.maximumBytes = maximumBytes
    // The batch has one more row, since a page that starts after a document reads that document first.
    batchSize = min(max(expected + 1, 16), 256)
    self.plan = plan
    self.database = database
    self.view = view
    self.recordsKeys = recordsKeys
    ids = IDUnion([], reverse: plan.reverse)
    var last: StoredDocument?
    if case .after(let document) = position { last = document }
    switch plan.source {
    case .nothing: break
    case .names(let paths):
      names = paths[...]
      if let last, let index = paths.firstIndex(of: last.name.path) { names = paths[(index + 1)...] }
    case .entries(_, let prefixes, var bounds):
      if let last {
        let id = FirestoreKeyLayout.segment(last.name.id)
        bounds =
          plan.reverse
          ? KeyRange(start: bounds.start, end: id) : KeyRange(start: id.successor, end: bounds.end)
      }
      idBounds = prefixes.map { _ in bounds }
      if case .ids(let ranges) = position { idBounds = ranges }
      ids = IDUnion(
        zip(prefixes, idBounds).map { prefixes, bounds in
          IndexIntersection(
            view, budget, prefixes: bounds == nil ? [] : prefixes,
            ids: bounds ?? KeyRange(start: [], end: []),
            reverse: plan.reverse)
        }, reverse: plan.reverse)
    case .index(_, _, let range):
      rest = range
      if case .range(let range) = position { rest = range }
    case .composite(let scan):
      var ranges = scan.streams.map(\.range)
      if case .ranges(let rest) = position { ranges = rest }
      composite = CompositeUnion(scan, ranges, view, budget, reverse: plan.reverse)
    case .rows(let range):
      rest = range
      if case .range(let range) = position { rest = range }
      if let last {
        rest = range.remainder(after: FirestoreKeyLayout.document(last.name.path), reverse: plan.reverse)
      }
    case .group(let range):
      rest = range
      if case .range(let range) = position { rest = range }
      if let last {
        rest = range.remainder(after: FirestoreKeyLayout.group(last.name.path), reverse: plan.reverse)
      }
    case .subtree:
      walkedPath = last?.name.path
      if case .path(let path) = position { walkedPath = path }
    }
  }

  /// The part of the plan's range that was not read; nil at the end.
  var unread: KeyRange? { rest }

  /// Where the next scan continues if this one paused because the budget was exhausted; nil if it did not
  /// pause.
  var pausePosition: ScanPosition? {
    guard isPaused else { return nil }
    return switch plan.source {
    case .nothing, .names: nil
    case .entries: .ids(ids.remainingRanges(within: idBounds))
    case .index, .rows, .group: rest.map { .range($0) }
    case .composite: composite.map { .ranges($0.remainders) }
    case .subtree: walkedPath.map { .path($0) }
    }
  }

  /// Whether the scan must pause, because its budget is exhausted and rows remain.
  private var mustPause: Bool {
    guard hasBegun, budget.isExhausted else { return false }
    return switch plan.source {
    case .nothing, .names: false
    case .entries: true
    case .index, .rows, .group: hasRest
    case .composite: composite?.remainders.contains { !$0.isEmpty } ?? false
    case .subtree: !isWalkDone && walkedPath != nil
    }
  }

  /// The next candidate; nil at the end, or at a pause.
  mutating func next() throws -> Candidate? {
    while true {
      while position >= readAhead.count {
        readAhead.removeAll(keepingCapacity: true)
        position = 0
        guard try fill() else { return nil }
      }
      defer { position += 1 }
      switch readAhead[position] {
      case .document(let document): return Candidate(document: document)
      case .row(let name, let key, let value, let entry):
        if recordsKeys { keys.append(key) }
        guard let row = try view.get(key) else { continue }
        budget.consume(1, bytes: row.value.count)
        return Candidate(document: try DocumentRow.decode(row.value, name), value: value, entry: entry)
      }
    }
  }

  /// Reads the next batch. Returns false at the end, or at a pause.
  private mutating func fill() throws -> Bool {
    if mustPause { isPaused = true }
    if isPaused { return false }
    hasBegun = true
    defer { batchSize = min(batchSize * 2, 256) }
    switch plan.source {
    case .nothing: return false
    case .names:
      guard let path = names.popFirst() else { return false }
      appendReadAhead(path)
      return true
    case .entries(let collection, _, _): return try fillFromEntries(collection)
    case .index(let collection, let prefix, _): return try fillFromIndex(collection, prefix)
    case .composite(let scan): return try fillFromComposite(scan)
    case .rows: return try fillFromRows()
    case .group: return try fillFromGroup()
    case .subtree(let parent, let bounds): return try fillFromSubtree(parent, bounds)
    }
  }

  private mutating func appendReadAhead(_ path: ResourcePath) {
    guard let name = DocumentName(database: database, path: path) else { return }
    readAhead.append(.row(name, FirestoreKeyLayout.document(path), value: [], entry: []))
  }

  private mutating func fillFromEntries(_ collection: ResourcePath) throws -> Bool {
    let prefix = FirestoreKeyLayout.collection(collection)
    var count = 0
    while count < batchSize {
      let step = try ids.next()
      if case .paused = step { isPaused = true }
      guard case .id(let id) = step else { break }
      count += 1
      var decoder = IndexKeyDecoder(id)
      guard let idString = decoder.segment(),
        let name = DocumentName(database: database, path: collection.appending(idString))
      else { continue }
      readAhead.append(.row(name, prefix + id, value: [], entry: []))
    }
    return count > 0
  }

  private mutating func fillFromIndex(_ collection: ResourcePath, _ prefix: Key) throws -> Bool {
    let entries = try nextKeys()
    let rows = FirestoreKeyLayout.collection(collection)
    for key in entries {
      guard let end = IndexValue.end(in: key, from: prefix.count) else { continue }
      var decoder = IndexKeyDecoder(key, from: end)
      guard let id = decoder.segment(),
        let name = DocumentName(database: database, path: collection.appending(id))
      else { continue }
      readAhead.append(.row(name, rows + key[end...], value: key[prefix.count..<end], entry: key))
    }
    return !entries.isEmpty || hasRest
  }

  private mutating func fillFromComposite(_ scan: CompositeScan) throws -> Bool {
    var count = 0
    while count < batchSize {
      let step = try composite?.next()
      if case .paused? = step { isPaused = true }
      guard case .entry(let next)? = step else { break }
      count += 1
      guard let path = scan.index.path(of: next.row, in: scan.collection),
        let name = DocumentName(database: database, path: path)
      else { continue }
      let runValue = next.row.truncatedValueEnd(from: scan.fixed).map { next.row.key[next.start..<$0] }
      readAhead.append(
        .row(
          name, FirestoreKeyLayout.document(path), value: runValue ?? [],
          entry: Array(next.row.key[next.start...])
        ))
    }
    return count > 0
  }

  private mutating func fillFromGroup() throws -> Bool {
    let entries = try nextKeys()
    for key in entries {
      guard let path = FirestoreKeyLayout.documentPath(ofGroupRow: key) else { continue }
      appendReadAhead(path)
    }
    return !entries.isEmpty || hasRest
  }

  private mutating func fillFromSubtree(_ parent: ResourcePath, _ bounds: NameBounds) throws -> Bool {
    guard !isWalkDone else { return false }
    var paths: [ResourcePath] = []
    let last = walkedPath
    let limit = batchSize
    let walk = SubtreeWalk(view: view, database: database)
    try walk.documents(below: parent, from: last ?? bounds.lower) { path in
      if path == last { return true }
      if let upper = bounds.upper, ResourcePath.compare(path, upper) == .descending { return false }
      paths.append(path)
      return paths.count < limit
    }
    budget.consume(paths.count + 1)
    isWalkDone = paths.count < limit
    walkedPath = paths.last ?? last
    for path in paths { appendReadAhead(path) }
    return !paths.isEmpty
  }

  /// The next keys of the range.
  private mutating func nextKeys() throws -> [Key] {
    guard let range = rest, !range.isEmpty else { return [] }
    var found: [Key] = []
    let limit = batchSize
    let skipped = try view.scan(range, reverse: plan.reverse, maximumHidden: budget.maximumHiddenKeys) {
      key, _, _ in
      found.append(Array(key))
      return found.count < limit
    }
    budget.consume(found.count + skipped.count + 1)
    let last = skipped.last ?? (found.count == limit ? found.last : nil)
    rest = last.map { range.remainder(after: $0, reverse: plan.reverse) }
    return found
  }

  private mutating func fillFromRows() throws -> Bool {
    guard let range = rest, !range.isEmpty else { return false }
    var found: [ReadAhead] = []
    var last: Key = []
    var bytes = 0
    let limit = batchSize
    let maximumBytes = maximumBytes
    let database = database
    let skipped = try view.scan(range, reverse: plan.reverse, maximumHidden: budget.maximumHiddenKeys) {
      key, value, _ in
      last = Array(key)
      guard let path = FirestoreKeyLayout.documentPath(ofRow: last),
        let name = DocumentName(database: database, path: path)
      else { return true }
      found.append(.document(try DocumentRow.decode(value, name)))
      bytes += value.count
      return found.count < limit && bytes < maximumBytes
    }
    budget.consume(found.count + skipped.count + 1, bytes: bytes)
    let stopped = found.count >= limit || bytes >= maximumBytes
    rest = (skipped.last ?? (stopped ? last : nil)).map { range.remainder(after: $0, reverse: plan.reverse) }
    readAhead = found
    return !found.isEmpty || hasRest
  }

  /// Whether a part of the range remains.
  private var hasRest: Bool { rest.map { !$0.isEmpty } ?? false }
}

extension KeyRange {
  /// Whether the range contains no key.
  var isEmpty: Bool { end.map { !start.lexicographicallyPrecedes($0) } ?? false }
}
