// Running queries on the cache.
//
// A query whose target was once in sync is answered from the documents the server counted to it
// plus those that changed since; every other query looks at its whole collection.

import FirestoreModel

extension LocalStore {
  /// What a query finds among the local views of all cached documents.
  ///
  /// - Parameter usePreviousResults: whether what the server last counted to the target may shorten
  ///   the search; not so when a limit has to be filled again.
  func execute(_ query: ClientQuery, usePreviousResults: Bool) -> QueryResult {
    let data = persistence.target(query.target).flatMap { targets[$0.id] ?? $0 }
    let keys = data.map { persistence.matchingKeys(of: $0.id) } ?? []
    if usePreviousResults, let data,
      let documents = previousResults(query, keys: keys, inSyncAt: data.lastLimboFreeVersion)
    {
      return QueryResult(documents: documents, remoteKeys: keys)
    }
    return QueryResult(documents: matches(of: query, readAfter: .epoch), remoteKeys: keys)
  }

  private func previousResults(
    _ query: ClientQuery, keys: Set<DocumentName>, inSyncAt version: ModelTimestamp
  ) -> [CachedDocument]? {
    guard version != .epoch, !query.matchesAllDocuments else { return nil }
    var previous = keys.map { read($0) }.filter { query.matches($0) }
    if query.limit != nil {
      guard previous.count == keys.count else { return nil }
      previous.sort { query.compare($0, $1) == .ascending }
      let edge = query.isLimitToLast ? previous.first : previous.last
      if let edge, edge.hasPendingWrites || edge.version > version { return nil }
    }
    var found = Set(previous.map(\.name))
    for document in matches(of: query, readAfter: version) {
      if found.insert(document.name).inserted {
        previous.append(document)
      }
    }
    return previous
  }

  private func matches(of query: ClientQuery, readAfter version: ModelTimestamp) -> [CachedDocument] {
    switch query.scope {
    case .document(let name):
      let document = read(name)
      return document.isFound ? [document] : []
    case .query(let model):
      let selector = model.structured.from.first
      let id = selector?.collectionID ?? ""
      var cached: [CachedDocument]
      var overlays: [DocumentName: Overlay]
      if selector?.allDescendants == true {
        cached = persistence.documents(inGroup: id, readAfter: version)
        overlays = persistence.overlays(inGroup: id)
      } else {
        let path = model.parent.path.appending(id)
        cached = persistence.documents(in: path, readAfter: version)
        overlays = persistence.overlays(in: path)
      }
      for document in cached { overlays[document.name] = nil }
      // Documents that only local writes show, or that changed locally since.
      cached += overlays.keys.map { persistence.document($0) }
      return cached.compactMap { document in
        let view = read(document.name)
        return query.matches(view) ? view : nil
      }
    }
  }
}
