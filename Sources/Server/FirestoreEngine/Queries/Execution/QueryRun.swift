// The state of one execution of a query, which reads page by page. All pages show one version.
//
// If no index has the query's order, results are held in memory and sorted, up to
// `EngineLimits.maximumSortBytes`. If an index has only the order of the first order field, adjacent results
// with the same value of this field form a *run*. Then only one run at a time is held and sorted. Rows that
// were read are not read again for the next page.
//
// Invariant: the concatenated pages are the query's result, which is all matching documents in order, reduced
// by offset and then by limit. A page is bounded in documents, in bytes and in scanned rows, including rows
// that do not match. Therefore a page may be empty without being the last.

import FirestoreModel
import OrderedStore

/// The state of a query's execution.
struct QueryRun: Sendable {
  /// The results that one call of `nextPage` found.
  struct Page: Sendable {
    var documents: [StoredDocument] = []
    /// Results that the offset skipped in this page.
    var skipped = 0
    var isLast = false
    /// Bytes of the documents.
    fileprivate(set) var bytes = 0
    /// Bytes of documents after which no more are added.
    fileprivate let maximumBytes: Int

    fileprivate init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    /// Whether the page has reached its limits.
    fileprivate var isFull: Bool {
      documents.count >= EngineLimits.maximumPageDocuments || bytes >= maximumBytes
    }
  }

  let query: PreparedQuery
  private let indexes: IndexMaintainer
  private let maximumSortBytes: Int
  private let recordsKeys: Bool
  private let counts: Bool
  private let maximumScanRows: Int
  /// Bytes of documents on the next page after which no more are added.
  var maximumPageBytes = EngineLimits.maximumPageBytes
  private var plan: QueryPlan?
  /// Where the next page continues to scan.
  private var position = ScanPosition.start
  private var isExhausted = false
  private var remainingOffset: Int
  private var remaining: Int
  /// The unsorted results of the run that is being read, or all results so far if no index has the query's order. The
  /// results of a run share `runValue`, the encoded value of the first order field.
  private var unsorted: SortedMatches?
  private var runValue: ArraySlice<UInt8> = []
  /// Sorted results to deliver.
  private var sorted: ArraySlice<StoredDocument> = []
  private var sortedBytes = 0
  /// Rows read since the last `takeKeys`, which the transaction's commit validates.
  private var keys: [Key] = []
  /// The cost so far; 0 unless `counts` is set.
  private(set) var cost = ReadCost()
  /// Rows and index entries scanned so far, and results found, including skipped ones.
  private(set) var rowsRead = 0
  private(set) var resultsFound = 0
  /// The part of the plan's range that was not read.
  private var unread: KeyRange?

  /// - Parameters:
  ///   - recordsKeys: whether to record the rows that are read.
  ///   - counts: whether to count `cost`.
  ///   - maximumSortBytes: maximum bytes of results held for sorting.
  ///   - maximumScanRows: maximum rows that one page scans.
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

  /// The bytes of results that are held in memory for sorting.
  var reservedBytes: Int { (unsorted?.bytes ?? 0) + sortedBytes }

  /// Returns the rows that were read since the last call.
  mutating func takeKeys() -> [Key] {
    defer { keys = [] }
    return keys
  }

  /// Makes the plan, on the first call.
  mutating func makePlan(_ view: any ReadView) throws -> QueryPlan {
    if let plan { return plan }
    // The index set is read after the view was made, so it may be newer than the view. The planner uses only
    // indexes that were complete at the view's version.
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
    usedIndexes = planner.indexes(of: plan)
    return plan
  }

  /// The parts of the plan's ranges that were scanned.
  var scanned: [KeyRange] {
    guard let plan else { return [] }
    // With a limit, the rest of the range was not read.
    guard remaining == 0, plan.arrangement != .unordered, let unread, let range = plan.ranges.first,
      plan.ranges.count == 1
    else { return plan.ranges }
    return plan.reverse
      ? [KeyRange(start: unread.end ?? range.start, end: range.end)]
      : [KeyRange(start: range.start, end: unread.start)]
  }

  /// If a query has a limit and an index prefix has at least this many entries, reading and sorting them all
  /// costs more than scanning in the query's order.
  private static let commonEntries = 1_000

  /// Reads the next page.
  mutating func nextPage(_ view: any ReadView, _ database: DatabaseName) throws -> Page {
    guard counts else { return try readPage(view, database) }
    let counting = CountingView(view)
    let page = try readPage(counting, database)
    cost += counting.cost
    return page
  }

  /// The indexes that the plan reads; empty before there is a plan.
  private(set) var usedIndexes: [QueryExplanation.Index] = []

  private mutating func readPage(_ view: any ReadView, _ database: DatabaseName) throws -> Page {
    let plan = try makePlan(view)
    var page = Page(maximumBytes: maximumPageBytes)
    if remaining > 0, !(try deliverSorted(&page)), !isExhausted {
      let budget = ScanBudget(rows: maximumScanRows)
      var candidates = Candidates(
        plan, database, view, from: position,
        expecting: min(remainingOffset, EngineLimits.maximumPageDocuments)
          + min(remaining, EngineLimits.maximumPageDocuments),
        maximumBytes: maximumPageBytes, recordsKeys: recordsKeys, budget: budget)
      defer {
        keys += candidates.keys
        rowsRead += budget.consumedRows
      }
      if plan.arrangement == .unordered {
        try sortAll(&candidates)
        _ = try deliverSorted(&page)
      } else {
        try readInOrder(&candidates, plan, &page)
      }
    }
    page.isLast = remaining == 0 || (isExhausted && sorted.isEmpty)
    return page
  }

  // MARK: Reading

  /// Reads in the order of the plan's source. If the source gives only the order of runs, each run is sorted
  /// in memory.
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
        if try deliverSorted(&page) {
          return recordPosition(at: candidate, including: true, candidates, plan)
        }
        run = sorter
      }
      let fields = try candidate.document.fields()
      guard query.matches(candidate.document.name, fields) else { continue }
      if isRun {
        runValue = candidate.value
        try run.append(candidate.document, fields)
      } else {
        if try deliver(candidate.document, &page) {
          return recordPosition(at: candidate, including: false, candidates, plan)
        }
      }
    }
    if let pausePosition = candidates.pausePosition {
      position = pausePosition
      unread = candidates.unread
      unsorted = run
      return
    }
    isExhausted = true
    unread = nil
    queueSorted(&run)
    _ = try deliverSorted(&page)
  }

  /// Records where the next page continues: after a candidate or, with `including`, at the candidate itself.
  private mutating func recordPosition(
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

  /// Reads all matches and sorts them.
  private mutating func sortAll(_ candidates: inout Candidates) throws {
    var matches = unsorted ?? sorter
    unsorted = nil
    while let candidate = try candidates.next() {
      let fields = try candidate.document.fields()
      guard query.matches(candidate.document.name, fields) else { continue }
      try matches.append(candidate.document, fields)
    }
    if let pausePosition = candidates.pausePosition {
      position = pausePosition
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

  /// Queues sorted results for delivery.
  private mutating func queueSorted(_ matches: inout SortedMatches) {
    sortedBytes = matches.bytes
    sorted = matches.takeSorted()
  }

  /// Moves queued results into a page. Returns whether the page is full or the last.
  private mutating func deliverSorted(_ page: inout Page) throws -> Bool {
    while let document = sorted.popFirst() {
      if try deliver(document, &page) { return true }
    }
    sorted = []
    sortedBytes = 0
    return false
  }

  /// Moves a result into a page, or skips it. Returns whether the page is full or the last.
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
