// Executes queries against a database. All pages of results show one version. For a transaction that may
// write, the scanned ranges are locked or recorded.

import Access
import FirestoreModel
import OrderedStore

extension FirestoreDatabase {
  /// Executes a query and delivers pages.
  func run(
    _ query: PreparedQuery, deciding operation: FirestoreOperation, _ consistency: ReadConsistency,
    explain: ExplainMode = .none, as caller: Principal, memory: (any ResultMemory)? = nil,
    deliver: (QueryPage) async throws -> Void
  ) async throws {
    let authorised = self.operation(operation, of: caller)
    var session = try await beginRead(consistency, [authorised], as: caller)
    do {
      try await requireIndex(for: query, session, authorised)
      if explain != .none { try await authoriseExplanation(of: query, session, authorised) }
      let read: QueryReads
      if explain == .plan {
        read = try await plan(query, &session, authorised, deliver: deliver)
      } else if query.normalized.findNearest != nil {
        read = try await findNearest(query, explain, &session, authorised, memory, deliver: deliver)
      } else {
        read = try await run(query, explain, &session, authorised, memory, deliver: deliver)
      }
      endRead(session, ranges: read.ranges)
    } catch {
      failRead(session, error)
      throw error
    }
  }

  /// Authorizes the query first, and then the return of its plan.
  private func authoriseExplanation(
    of query: PreparedQuery, _ session: ReadSession, _ authorised: AuthorizedOperation
  ) async throws {
    if !isAllowed(authorised) {
      try await rows.read(at: session.version) { view in _ = try self.authorise(authorised, in: view) }
    }
    try await authoriseWithoutData(authorised.caller, .explain(query.query))
  }

  /// In strict mode (`Options.requiresIndexes`), rejects a query that lacks a required index. The policy decides about the
  /// query first.
  private func requireIndex(
    for query: PreparedQuery, _ session: ReadSession, _ authorised: AuthorizedOperation
  ) async throws {
    guard options.requiresIndexes else { return }
    try await rows.read(at: session.version) { view in
      try self.authorise(authorised, in: view)
      try self.requireIndex(for: query, as: authorised.caller)
    }
  }

  /// Delivers only the plan of a query.
  private func plan(
    _ query: PreparedQuery, _ session: inout ReadSession, _ authorised: AuthorizedOperation,
    deliver: (QueryPage) async throws -> Void
  ) async throws -> QueryReads {
    let indexes = try await read(&session) { view in
      try self.authorise(authorised, in: view)
      var run = QueryRun(query, self.indexes)
      _ = try run.makePlan(view)
      return run.usedIndexes
    }
    try await deliver(
      QueryPage(
        transaction: session.newToken, skippedResults: 0, documents: [],
        readTime: session.version?.timestamp ?? .epoch, isLast: true,
        explanation: QueryExplanation(indexesUsed: indexes)))
    return QueryReads()
  }

  /// Executes a query and delivers pages. `session` is a read that has begun.
  /// - Parameter memory: the account from which memory for the result pages is reserved; nil if `deliver` retains no page.
  func run(
    _ query: PreparedQuery, _ explain: ExplainMode, _ session: inout ReadSession,
    _ authorised: AuthorizedOperation, _ memory: (any ResultMemory)?,
    deliver: (QueryPage) async throws -> Void
  ) async throws -> QueryReads {
    let started = options.clock.now()
    var (run, ranges) = try await begin(query, counts: explain == .analyze, &session)
    let sortMemory = SortMemoryBudget.Reservation(sortMemory)
    let pages = ResultPages(memory, documentBytes: options.limits.data.documentBytes)
    var isFirst = true
    var skipped = 0
    var tally = ResultTally()
    while true {
      // Many reads may find no match, and deliver nothing. The client may disconnect during these reads, or its deadline
      // may pass.
      try Task.checkCancellation()
      try await pages.reserve()
      run.maximumPageBytes = pages.maximumBytes
      let (next, page) = try await nextPage(run, &session, isFirst ? authorised : nil, sortMemory)
      run = next
      pages.hold(page.bytes, count: page.documents.count)
      skipped += page.skipped
      if page.documents.isEmpty, !page.isLast { continue }
      tally.skipped += skipped
      tally.returned += page.documents.count
      var result = QueryPage(
        transaction: isFirst ? session.newToken : nil, skippedResults: skipped, documents: page.documents,
        readTime: session.version?.timestamp ?? .epoch, isLast: page.isLast)
      if page.isLast, explain == .analyze {
        result.explanation = tally.explanation(run, microseconds: options.clock.now() - started)
      }
      try await deliver(result)
      pages.markAccepted()
      isFirst = false
      skipped = 0
      if page.isLast {
        advise(on: run)
        // A limit may have ended the scan early. Locks on the unscanned parts of the ranges are released.
        let scanned = run.scanned
        if let owner = session.transaction?.owner {
          for (range, part) in zip(ranges, scanned) { locks.narrow(range, to: part, for: owner) }
        }
        return QueryReads(ranges: session.recordsReads ? scanned : [])
      }
    }
  }

  /// Starts a query; `session` is a read that has begun. For a transaction that may write, locks the ranges
  /// that the query may scan before it reads them. Returns these ranges.
  func begin(
    _ query: PreparedQuery, counts: Bool = false, _ session: inout ReadSession
  ) async throws -> (run: QueryRun, ranges: [KeyRange]) {
    let run = QueryRun(
      query, indexes, recordsKeys: session.recordsReads, counts: counts,
      maximumSortBytes: options.maximumSortBytes,
      maximumScanRows: options.maximumScanRows)
    guard session.recordsReads else { return (run, []) }
    let (planned, plan) = try await rows.read(at: session.version) { view in
      var run = run
      let plan = try run.makePlan(view)
      return (run, plan)
    }
    try await lock(&session, keys: plan.keys, ranges: plan.ranges)
    return (planned, plan.ranges)
  }

  /// Reads a query's next page, records its reads with the transaction, and reserves memory for sorting.
  /// - Parameter authorised: the operation to authorize, for the first page; nil for later pages.
  func nextPage(
    _ run: QueryRun, _ session: inout ReadSession, _ authorised: AuthorizedOperation?,
    _ memory: SortMemoryBudget.Reservation?
  ) async throws -> (QueryRun, QueryRun.Page) {
    let name = name
    let (advanced, page) = try await read(&session) { view in
      if let authorised { try self.authorise(authorised, in: view) }
      var run = run
      let page = try run.nextPage(view, name)
      return (run, page)
    }
    var next = advanced
    guard memory?.resize(to: next.reservedBytes) ?? true else { throw sortMemory.memoryError(of: run.query) }
    let keys = next.takeKeys()
    if let owner = session.transaction?.owner, let version = session.version, !keys.isEmpty {
      try transactions.add(owner, ReadSet(version: version, keys: keys))
    }
    return (next, page)
  }

  /// Delivers a query's complete result at a version, for listeners. Only the limit of one query applies to
  /// the memory for sorting. The shared budget does not, since a Listen stream must not fail because of other
  /// queries. A page may be empty.
  /// - Parameter memory: the account from which memory for the result pages is reserved; nil if `page` retains no page.
  func deliverResults(
    of query: PreparedQuery, at version: Version, _ memory: (any ResultMemory)? = nil,
    _ page: ([StoredDocument]) async throws -> Void
  ) async throws {
    var run = QueryRun(
      query, indexes, maximumSortBytes: options.maximumSortBytes, maximumScanRows: options.maximumScanRows)
    var session = ReadSession(version: version)
    let pages = ResultPages(memory, documentBytes: options.limits.data.documentBytes)
    while true {
      try await pages.reserve()
      run.maximumPageBytes = pages.maximumBytes
      let (next, found) = try await nextPage(run, &session, nil, nil)
      run = next
      pages.hold(found.bytes, count: found.documents.count, otherBytes: run.reservedBytes)
      try await page(found.documents)
      if !found.documents.isEmpty { pages.markAccepted() }
      if found.isLast { return advise(on: run) }
    }
  }

  /// Reads documents at a version, in the order of `names`; nil for a missing document. Stops at the document
  /// with which `limit` bytes are reached, so that at least one document is read.
  func documents(
    _ names: ArraySlice<DocumentName>, at version: Version?, upTo limit: Int
  ) async throws -> [StoredDocument?] {
    try await rows.read(at: version) { view in
      var documents: [StoredDocument?] = []
      var bytes = 0
      for name in names {
        let document = try view.document(name)?.withCachedFields()
        documents.append(document)
        bytes += document?.encoded.count ?? 0
        if documents.count >= EngineLimits.maximumPageDocuments || bytes >= limit { break }
      }
      return documents
    }
  }
}

/// The ranges that a query scanned, to be validated at the transaction's commit. `nextPage` has already recorded
/// the document rows.
struct QueryReads {
  var ranges: [KeyRange] = []
}

extension SortMemoryBudget {
  /// The error of a query when the memory for sorting is exhausted.
  fileprivate func memoryError(of query: PreparedQuery) -> FirestoreError {
    .resourceExhausted(
      "The server's memory for sorting query results is exhausted: \(limit) bytes for all queries. Try again later. With an "
        + "index of \(query.indexDescription) the query needs no sorting.")
  }
}

/// The number of results so far.
private struct ResultTally {
  var returned = 0
  var skipped = 0

  func explanation(_ run: QueryRun, microseconds: UInt64) -> QueryExplanation {
    let billable = returned + skipped
    return QueryExplanation(
      indexesUsed: run.usedIndexes,
      statistics: .init(
        resultsReturned: returned, microseconds: max(Int(clamping: microseconds), 1),
        readOperations: max(billable, 1), entriesScanned: run.cost.entries,
        documentsScanned: run.cost.documents, documentsBillable: billable,
        minimumCost: billable == 0 ? 1 : 0))
  }
}
