// Executes nearest-neighbor queries. Scans all documents that match the query's other conditions, then reads
// the nearest documents again at the same version.

import FirestoreModel
import OrderedStore

extension FirestoreDatabase {
  /// Executes a nearest-neighbor query and delivers pages. `session` is a read that has begun.
  /// - Parameter memory: the account from which memory for the result pages is reserved; nil if `deliver` retains no page.
  func findNearest(
    _ query: PreparedQuery, _ explain: ExplainMode, _ session: inout ReadSession,
    _ authorised: AuthorizedOperation, _ memory: (any ResultMemory)?,
    deliver: (QueryPage) async throws -> Void
  ) async throws -> QueryReads {
    guard let nearest = query.normalized.findNearest else { return QueryReads() }
    let started = options.clock.now()
    var candidates = query.unprojected
    candidates.needsOrder = query.isWindow
    var found = NearestMatches(nearest, orders: query.orders)
    var skipped = 0
    var explanation: QueryExplanation?
    let reads = try await run(candidates, explain, &session, authorised, nil) { input in
      for document in input.documents { try found.add(document) }
      skipped += input.skippedResults
      explanation = input.explanation
    }
    let matches = found.takeSorted()
    var page = QueryPage(
      transaction: session.newToken, skippedResults: skipped, documents: [],
      readTime: session.version?.timestamp ?? .epoch, isLast: matches.isEmpty)
    var rest = matches[...]
    let pages = ResultPages(memory, documentBytes: options.limits.data.documentBytes)
    while !rest.isEmpty {
      try await pages.reserve()
      let names = rest.prefix(EngineLimits.maximumPageDocuments).map(\.name)
      let documents = try await documents(
        names[...], at: session.version, upTo: pages.maximumBytes)
      pages.hold(documents.reduce(0) { $0 + ($1?.encoded.count ?? 0) }, count: documents.count)
      page.documents = try zip(rest, documents).compactMap { match, document in
        try document?.addingDistance(match.distance, at: nearest.distanceResultField).masked(query.projection)
      }
      rest = rest.dropFirst(documents.count)
      if rest.isEmpty { break }
      try await deliver(page)
      pages.markAccepted()
      page.transaction = nil
      page.skippedResults = 0
    }
    page.isLast = true
    if var statistics = explanation?.statistics {
      statistics.resultsReturned = matches.count
      statistics.documentsScanned += matches.count
      statistics.microseconds = max(Int(clamping: options.clock.now() - started), 1)
      explanation?.statistics = statistics
    }
    page.explanation = explanation
    try await deliver(page)
    return reads
  }
}

extension StoredDocument {
  /// The document with its distance added as `field`; the document itself if `field` is nil.
  fileprivate func addingDistance(_ distance: Double, at field: FieldPath?) throws(FirestoreError)
    -> StoredDocument
  {
    guard let field else { return self }
    var fields = try fields()
    fields.set(.double(distance), at: field)
    return StoredDocument(name: name, createTime: createTime, updateTime: updateTime, fields: fields)
  }
}
