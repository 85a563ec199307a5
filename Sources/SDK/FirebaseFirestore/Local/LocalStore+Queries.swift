// Runs queries on the cache.
//
// A query whose target was in sync before reads the documents that the server reported for it, plus those that changed
// since. A query with an index reads the documents in the index. Every other query reads its whole collection.

import FirestoreModel

extension LocalStore {
  /// The results of a query among the local views of all cached documents.
  ///
  /// - Parameter usePreviousResults: whether the documents that the server last reported for the target may shorten the
  ///   search. They may not if a limit has to be refilled.
  mutating func execute(_ query: ClientQuery, usePreviousResults: Bool) -> QueryResult {
    let data = persistence.target(query.target).flatMap { targets[$0.id] ?? $0 }
    let keys = data.map { persistence.matchingKeys(of: $0.id) } ?? []
    if usePreviousResults, let data,
      let documents = previousResults(query, keys: keys, inSyncAt: data.lastLimboFreeVersion)
    {
      return QueryResult(documents: documents, remoteKeys: keys)
    }
    let (documents, searched) = search(query, readAfter: .epoch)
    if let searched { learn(from: query, searched: searched, found: documents.count) }
    return QueryResult(documents: documents, remoteKeys: keys)
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
    for document in search(query, readAfter: version).documents {
      if found.insert(document.name).inserted {
        previous.append(document)
      }
    }
    return previous
  }

  /// The matching documents that were read after a version, and how many were looked at where no
  /// index helped.
  private func search(
    _ query: ClientQuery, readAfter version: ModelTimestamp
  ) -> (documents: [CachedDocument], searched: Int?) {
    switch query.scope {
    case .document(let name):
      let document = read(name)
      return (document.isFound ? [document] : [], nil)
    case .query(let model):
      let selector = model.structured.from.first
      let id = selector?.collectionID ?? ""
      let isGroup = selector?.allDescendants == true
      let path = model.parent.path.appending(id)
      let overlays = isGroup ? persistence.overlays(inGroup: id) : persistence.overlays(in: path)
      let candidates = query.normal.flatMap { persistence.candidates(for: $0) }
      let cached: [CachedDocument] =
        if let candidates {
          candidates.map { persistence.document($0) }.filter { version == .epoch || $0.readTime > version }
        } else if isGroup {
          persistence.documents(inGroup: id, readAfter: version)
        } else {
          persistence.documents(in: path, readAfter: version)
        }
      var found: [CachedDocument] = []
      for document in cached {
        let view = overlays[document.name] == nil ? document : localView(of: document).document
        if query.matches(view) { found.append(view) }
      }
      // Documents that only local writes show, or that changed locally since.
      let known = Set(overlays.isEmpty ? [] : cached.map(\.name))
      for name in overlays.keys where !known.contains(name) {
        let view = read(name)
        if query.matches(view) { found.append(view) }
      }
      return (found, candidates == nil ? cached.count + overlays.count : nil)
    }
  }
}
