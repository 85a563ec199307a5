// A query being answered, page by page, all pages at one version.
//
// Invariant: the concatenated pages are the query's result: all matching documents in its order, then offset, then
// limit. A page holds a bounded number of documents and bytes. Results that no index orders are held if their order is
// needed, up to `EngineLimits.maximumSortBytes`: all of them, or, where an index gives the first order field, those that have
// one value of it. What was read once is not read again for the next page. A page may be empty and not the last: one
// look at the store goes over a bounded number of rows, whether they match or not.

import FirestoreModel
import OrderedStore

/// A query's answer under way.
struct QueryRun: Sendable {
  /// What one look at the store gave.
  struct Page: Sendable {
    var documents: [StoredDocument] = []
    /// Results passed over for the offset in this page.
    var skipped = 0
    var isLast = false
    fileprivate var bytes = 0

    /// Whether nothing more is to be added.
    fileprivate var isFull: Bool {
      documents.count >= EngineLimits.maximumPageDocuments || bytes >= EngineLimits.maximumPageBytes
    }
  }

  let query: PreparedQuery
  private let indexes: IndexMaintainer
  private let maximumSortBytes: Int
  private let recordsKeys: Bool
  private let counts: Bool
  private let maximumScanRows: Int
  private var plan: QueryPlan?
  /// Where reading goes on.
  private var position = ScanPosition.start
  private var isExhausted = false
  private var remainingOffset: Int
  private var remaining: Int
  /// Results that were read and wait to be sorted, and the value of the first order field that they have in common.
  private var unsorted: SortedMatches?
  private var runValue: ArraySlice<UInt8> = []
  /// Sorted results that are yet to be delivered.
  private var sorted: ArraySlice<StoredDocument> = []
  private var sortedBytes = 0
  /// The rows that were read and not yet taken, for validation.
  private var keys: [Key] = []
  /// What was read so far, if it is counted.
  private(set) var cost = ReadCost()
  /// The rows and index entries gone over so far, and the results among them, skipped ones too.
  private(set) var rowsRead = 0
  private(set) var resultsFound = 0
  /// What has not been read of the plan's range.
  private var unread: KeyRange?

  /// - Parameters:
  ///   - recordsKeys: whether the rows that are read are of use.
  ///   - counts: whether `cost` is of use.
  ///   - sortBytes: bytes of results that may be held to sort them.
  ///   - scanRows: rows that one page goes over.
  init(
    _ query: PreparedQuery, _ indexes: IndexMaintainer, recordsKeys: Bool = false, counts: Bool = false,
    maximumSortBytes: Int = EngineLimits.maximumSortBytes, maximumScanRows: Int = EngineLimits.maximumScanRows
  ) {
    self.query = query
    self.indexes = indexes
    self.maximumScanRows = maximumScanRows
    self.recordsKeys = recordsKeys
    self.counts = counts
    self.maximumSortBytes = maximumSortBytes
    remainingOffset = query.normalized.offset
    remaining = query.limit ?? .max
  }

  /// The bytes of results that are held because no index orders them.
  var reservedBytes: Int { (unsorted?.bytes ?? 0) + sortedBytes }

  /// Hands over the rows that were read since the last call.
  mutating func takeKeys() -> [Key] {
    defer { keys = [] }
    return keys
  }

  /// Makes the plan, if there is none yet.
  mutating func makePlan(_ view: any ReadView) throws -> QueryPlan {
    if let plan { return plan }
    // Looked at after the view was made: the set is that of its version, or a later one that knows of it.
    let planner = Planner(query, indexes.current, at: view.version)
    var plan = try planner.plan { prefix in
      var count = 0
      try view.scan(KeyRange(prefix: prefix), reverse: false) { _, _, _ in
        count += 1
        return count < QueryRun.commonEntries
      }
      return count >= QueryRun.commonEntries
    }
    if !query.needsOrder { plan.arrangement = .exact }
    self.plan = plan
    used = planner.indexes(of: plan)
    return plan
  }

  /// The ranges of the plan as far as they were read.
  var scanned: [KeyRange] {
    guard let plan else { return [] }
    // A limit spares reading the rest.
    guard remaining == 0, plan.arrangement != .unordered, let unread, let range = plan.ranges.first,
      plan.ranges.count == 1
    else { return plan.ranges }
    return plan.reverse
      ? [KeyRange(start: unread.end ?? range.start, end: range.end)]
      : [KeyRange(start: range.start, end: unread.start)]
  }

  /// From this many entries on, an index prefix is not worth sorting if there is a limit.
  private static let commonEntries = 1_000

  /// The next page.
  mutating func nextPage(_ view: any ReadView, _ database: DatabaseName) throws -> Page {
    guard counts else { return try readPage(view, database) }
    let counting = CountingView(view)
    let page = try readPage(counting, database)
    cost += counting.cost
    return page
  }

  /// The indexes that the plan reads, once there is one.
  private(set) var used: [QueryExplanation.Index] = []

  private mutating func readPage(_ view: any ReadView, _ database: DatabaseName) throws -> Page {
    let plan = try makePlan(view)
    var page = Page()
    if remaining > 0, !(try deliverHeld(&page)), !isExhausted {
      let budget = ScanBudget(rows: maximumScanRows)
      var candidates = Candidates(
        plan, database, view, from: position,
        expecting: min(remainingOffset, EngineLimits.maximumPageDocuments)
          + min(remaining, EngineLimits.maximumPageDocuments),
        recordsKeys: recordsKeys, budget: budget)
      defer {
        keys += candidates.keys
        rowsRead += budget.consumedRows
      }
      if plan.arrangement == .unordered {
        try sortAll(&candidates)
        _ = try deliverHeld(&page)
      } else {
        try readInOrder(&candidates, plan, &page)
      }
    }
    page.isLast = remaining == 0 || (isExhausted && sorted.isEmpty)
    return page
  }

  // MARK: Reading

  /// Reads on in the order of the source; neighbours that it does not order are sorted in memory.
  private mutating func readInOrder(_ candidates: inout Candidates, _ plan: QueryPlan, _ page: inout Page)
    throws
  {
    var run = unsorted ?? sorter
    unsorted = nil
    while let candidate = try candidates.next() {
      let isRun =
        plan.arrangement == .runs
        || (query.needsOrder && candidate.value.count >= IndexValue.truncationLength)
      if !run.isEmpty, !isRun || candidate.value != runValue {
        queueSorted(&run)
        if try deliverHeld(&page) { return resumeLater(at: candidate, including: true, candidates, plan) }
        run = sorter
      }
      let fields = try candidate.document.fields()
      guard query.matches(candidate.document.name, fields) else { continue }
      if isRun {
        runValue = candidate.value
        try run.append(candidate.document, fields)
      } else {
        if try deliver(candidate.document, &page) {
          return resumeLater(at: candidate, including: false, candidates, plan)
        }
      }
    }
    if let pause = candidates.pause {
      position = pause
      unread = candidates.unread
      unsorted = run
      return
    }
    isExhausted = true
    unread = nil
    queueSorted(&run)
    _ = try deliverHeld(&page)
  }

  /// Notes where the next page begins to read.
  private mutating func resumeLater(
    at candidate: Candidate, including: Bool, _ candidates: Candidates, _ plan: QueryPlan
  ) {
    if case .composite(let scan) = plan.source {
      let ranges = scan.remainder(after: candidate.entry, including: including, reverse: plan.reverse)
      position = .ranges(ranges)
      unread = ranges.count == 1 ? ranges.first : nil
      return
    }
    guard case .index(_, _, let range) = plan.source else {
      position = .after(candidate.document)
      unread = candidates.unread
      return
    }
    var rest = range.remainder(after: candidate.entry, reverse: plan.reverse)
    if including {
      if plan.reverse { rest.end = candidate.entry.successor } else { rest.start = candidate.entry }
    }
    position = .range(rest)
    unread = rest
  }

  /// Reads and sorts everything.
  private mutating func sortAll(_ candidates: inout Candidates) throws {
    var matches = unsorted ?? sorter
    unsorted = nil
    while let candidate = try candidates.next() {
      let fields = try candidate.document.fields()
      guard query.matches(candidate.document.name, fields) else { continue }
      try matches.append(candidate.document, fields)
    }
    if let pause = candidates.pause {
      position = pause
      unsorted = matches
      return
    }
    isExhausted = true
    queueSorted(&matches)
  }

  private var sorter: SortedMatches {
    let (maximumCount, overflow) = remainingOffset.addingReportingOverflow(remaining)
    return SortedMatches(query, maximumCount: overflow ? .max : maximumCount, limit: maximumSortBytes)
  }

  // MARK: Delivering

  /// Keeps sorted results until they are delivered, all of them until the last is.
  private mutating func queueSorted(_ matches: inout SortedMatches) {
    sortedBytes = matches.bytes
    sorted = matches.take()
  }

  /// Moves held results into a page. True if it is full, or the last.
  private mutating func deliverHeld(_ page: inout Page) throws -> Bool {
    while let document = sorted.popFirst() {
      if try deliver(document, &page) { return true }
    }
    sorted = []
    sortedBytes = 0
    return false
  }

  /// Moves a result into a page, or passes it over. True if the page is full, or the last.
  private mutating func deliver(_ document: StoredDocument, _ page: inout Page) throws -> Bool {
    resultsFound += 1
    if remainingOffset > 0 {
      remainingOffset -= 1
      page.skipped += 1
      return false
    }
    page.documents.append(try document.masked(query.projection))
    page.bytes += document.encoded.count
    remaining -= 1
    return remaining == 0 || page.isFull
  }
}
