// Queries over a database: pages of results at one version, with locks for transactions that want them.

import FirestoreModel
import OrderedStore

extension FirestoreDatabase {
  /// Answers a query in pages.
  func run(
    _ query: PreparedQuery, _ consistency: ReadConsistency, as caller: Caller,
    deliver: (QueryPage) async throws -> Void
  ) async throws {
    var session = try await beginRead(consistency, as: caller)
    do {
      let keys = try await run(query, &session, as: caller, deliver: deliver)
      endRead(session, keys: keys.0, ranges: keys.1)
    } catch {
      failRead(session)
      throw error
    }
  }

  private func run(
    _ query: PreparedQuery, _ session: inout ReadSession, as caller: Caller,
    deliver: (QueryPage) async throws -> Void
  ) async throws -> ([Key], [KeyRange]) {
    var run = QueryRun(query, recordsKeys: session.transaction != nil)
    var ranges: [KeyRange] = []
    if session.transaction != nil {
      // What is scanned is locked before it is looked at.
      let (planned, plan) = try await rows.read(at: session.version) { [run] view in
        var run = run
        let plan = try run.makePlan(view)
        return (run, plan)
      }
      run = planned
      ranges = plan.ranges
      try await lock(&session, keys: plan.keys, ranges: ranges)
    }
    var isFirst = true
    var skipped = 0
    while true {
      let (next, page) = try await nextPage(run, &session, isFirst ? caller : nil)
      run = next
      skipped += page.skipped
      if page.documents.isEmpty, !page.isLast { continue }
      let time = session.version?.timestamp ?? .epoch
      try await deliver(
        QueryPage(
          transaction: isFirst ? session.newToken : nil, skippedResults: skipped, documents: page.documents,
          readTime: time, isLast: page.isLast))
      isFirst = false
      skipped = 0
      if page.isLast {
        // A limit leaves the rest of the range to others.
        let scanned = run.scanned
        if let owner = session.transaction?.owner {
          for (range, part) in zip(ranges, scanned) { locks.narrow(range, to: part, for: owner) }
        }
        return (run.keys, session.transaction == nil ? [] : scanned)
      }
    }
  }

  private func nextPage(
    _ run: QueryRun, _ session: inout ReadSession, _ caller: Caller?
  ) async throws -> (QueryRun, QueryRun.Page) {
    let name = name
    return try await read(&session) { view in
      if let caller { _ = try self.authorise(caller, .query(run.query.query), in: view) }
      var run = run
      let page = try run.nextPage(view, name)
      return (run, page)
    }
  }

  /// A query's whole result at a version, for listeners. Handed over page by page.
  func results(
    of query: PreparedQuery, at version: Version, _ page: ([StoredDocument]) async throws -> Void
  ) async throws {
    var run = QueryRun(query)
    var session = ReadSession(version: version)
    while true {
      let (next, found) = try await nextPage(run, &session, nil)
      run = next
      if !found.documents.isEmpty { try await page(found.documents) }
      if found.isLast { return }
    }
  }

  /// The first of some documents at a version, at most `limit` bytes of them but at least one; nil where there is none.
  func documents(
    _ names: ArraySlice<DocumentName>, at version: Version, upTo limit: Int
  ) async throws -> [StoredDocument?] {
    try await rows.read(at: version) { view in
      var documents: [StoredDocument?] = []
      var bytes = 0
      for name in names {
        let document = try view.document(name)?.decodedOnce()
        documents.append(document)
        bytes += document?.encoded.count ?? 0
        if documents.count >= EngineLimits.pageDocuments || bytes >= limit { break }
      }
      return documents
    }
  }
}
