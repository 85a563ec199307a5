// Runs queries on the cache.
//
// If a query's target was in sync before, the store reads the documents that the server reported for it, and
// those that changed since. If an index helps, it reads the documents that the index finds. If the index has
// the query's order, the scan ends at the query's limit. For every other query it reads the complete
// collection.

import FirestoreModel

extension LocalStore {
  /// The results of a query in the local views of all cached documents.
  ///
  /// - Parameter usePreviousResults: whether the search may start from the documents that the server last
  ///   reported for the target. False if a document has left the result of a query with a limit.
  mutating func execute(
    _ query: ClientQuery, usePreviousResults: Bool
  ) throws(PersistenceFailure) -> QueryResult {
    try transaction(.executeQuery) { $0.find(query, usePreviousResults) }
  }

  private mutating func find(_ query: ClientQuery, _ usePreviousResults: Bool) -> QueryResult {
    let data = persistence.target(query.target).flatMap { targets[$0.id] ?? $0 }
    let keys = data.map { persistence.matchingKeys(of: $0.id) } ?? []
    // With an ordered index the store reads no more documents than the limit, so it is preferred to the
    // previous results.
    if let documents = limited(query) { return QueryResult(documents: documents, remoteKeys: keys) }
    if usePreviousResults, let data,
      let documents = previousResults(query, keys: keys, inSyncAt: data.lastLimboFreeVersion)
    {
      return QueryResult(documents: documents, remoteKeys: keys)
    }
    let (documents, searched) = search(query, readAfter: .epoch)
    if let searched { createIndexes(from: query, searched: searched, found: documents.count) }
    return QueryResult(documents: documents, remoteKeys: keys)
  }

  private func previousResults(
    _ query: ClientQuery, keys: Set<DocumentName>, inSyncAt version: ModelTimestamp
  ) -> [CachedDocument]? {
    guard version != .epoch, !query.matchesAllDocuments else { return nil }
    var previous = keys.map { view(of: $0) }.filter { query.matches($0) }
    if query.limit != nil {
      guard previous.count == keys.count else { return nil }
      previous.sort { query.compare($0, $1) == .ascending }
      let boundary = query.isLimitToLast ? previous.first : previous.last
      if let boundary, boundary.hasPendingWrites || boundary.version > version { return nil }
    }
    var found = Set(previous.map(\.name))
    for document in search(query, readAfter: version).documents {
      if found.insert(document.name).inserted {
        previous.append(document)
      }
    }
    return previous
  }

  /// The matching documents that were read after a version, and the number of documents that the search read
  /// without an index.
  private func search(
    _ query: ClientQuery, readAfter version: ModelTimestamp
  ) -> (documents: [CachedDocument], searched: Int?) {
    switch query.scope {
    case .document(let name):
      let document = view(of: name)
      return (document.isFound ? [document] : [], nil)
    case .query(let model):
      let scope = QueryScope(model)
      let overlays = self.overlays(in: scope)
      // Documents that were read after a version are found by their read times.
      let candidates = version == .epoch ? candidates(for: query) : nil
      let cached =
        candidates
        ?? collections(in: scope).flatMap { persistence.documents(in: $0, readAfter: version) }
      var found: [CachedDocument] = []
      for document in cached {
        let view = overlays[document.name] == nil ? document : localView(of: document).document
        if query.matches(view) { found.append(view) }
      }
      // Adds documents with local writes: they may match only with these writes, or may have changed since.
      let cachedNames = Set(overlays.isEmpty ? [] : cached.map(\.name))
      for name in overlays.keys where !cachedNames.contains(name) {
        let view = view(of: name)
        if query.matches(view) { found.append(view) }
      }
      return (found, candidates == nil ? cached.count + overlays.count : nil)
    }
  }

  /// The collections in which a query searches.
  private struct QueryScope {
    let id: String
    /// The only collection; nil for a collection group.
    let path: ResourcePath?

    init(_ model: ModelQuery) {
      let selector = model.structured.from.first
      id = selector?.collectionID ?? ""
      path = selector?.allDescendants == true ? nil : model.parent.path.appending(id)
    }
  }

  private func collections(in scope: QueryScope) -> [ResourcePath] {
    scope.path.map { [$0] } ?? persistence.collections(inGroup: scope.id)
  }

  private func overlays(in scope: QueryScope) -> [DocumentName: Overlay] {
    scope.path.map { persistence.overlays(in: $0) } ?? persistence.overlays(inGroup: scope.id)
  }

  // MARK: Indexes

  private func plans(for query: ClientQuery) -> (plans: [IndexPlan], collections: [ResourcePath])? {
    guard case .query(let model) = query.scope, let normalizedQuery = query.normalizedQuery,
      let plans = IndexPlan.plans(for: normalizedQuery, among: persistence.fieldIndexes)
    else { return nil }
    return (plans, collections(in: QueryScope(model)))
  }

  /// A superset of the cached documents that a query matches. An index provides it; nil if no index helps.
  func candidates(for query: ClientQuery) -> [CachedDocument]? {
    guard let (plans, collections) = plans(for: query), plans.allSatisfy({ $0.range.rank > 0 }) else {
      return nil
    }
    var found: [DocumentName: CachedDocument] = [:]
    for plan in plans {
      for path in collections {
        persistence.scan(plan.index, in: path, plan.range, reversed: false) { _, document in
          found[document.name] = document
          return true
        }
      }
    }
    return Array(found.values)
  }

  /// A superset of the results of a query with a limit. It contains every document with local writes, and the
  /// first documents of each alternative in each collection, up to the limit. It is nil if no index has the
  /// query's order.
  func limited(_ query: ClientQuery) -> [CachedDocument]? {
    guard let limit = query.limit, limit > 0, case .query(let model) = query.scope,
      let (plans, collections) = plans(for: query), plans.allSatisfy(\.isOrdered)
    else { return nil }
    let overlays = overlays(in: QueryScope(model))
    var found: [DocumentName: CachedDocument] = [:]
    for name in overlays.keys {
      let view = view(of: name)
      if query.matches(view) { found[name] = view }
    }
    for plan in plans {
      for path in collections {
        guard let first = first(limit, of: query, by: plan, in: path, without: overlays) else { return nil }
        for document in first { found[document.name] = document }
      }
    }
    return Array(found.values)
  }

  /// The first matching documents of a collection in the order of an index. All documents with the same key
  /// as the last one are included. The result is nil if truncated values do not determine the order.
  private func first(
    _ limit: Int, of query: ClientQuery, by plan: IndexPlan, in path: ResourcePath,
    without overlays: [DocumentName: Overlay]
  ) -> [CachedDocument]? {
    var found: [CachedDocument] = []
    var names: Set<DocumentName> = []
    var last: [UInt8]?
    var isInOrder = true
    let reversed = plan.isDescending != query.isLimitToLast
    persistence.scan(plan.index, in: path, plan.range, reversed: reversed) { key, document in
      if let last, !key.starts(with: last) { return false }
      isInOrder = IndexPlan.isExact(key)
      guard isInOrder else { return false }
      guard overlays[document.name] == nil, query.matches(document), names.insert(document.name).inserted
      else {
        return true
      }
      found.append(document)
      guard found.count >= limit else { return true }
      if plan.isTotalOrder { return false }
      last = last ?? plan.orderedPrefix(of: key) ?? []
      return true
    }
    return isInOrder ? found : nil
  }
}
