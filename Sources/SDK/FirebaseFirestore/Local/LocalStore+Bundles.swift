// Stores bundles in the cache: their documents, their named queries, and the list of loaded bundles.

import FirestoreModel

extension LocalStore {
  /// Whether the same version of the bundle or a newer one has been loaded.
  mutating func hasBundle(asNewAs metadata: BundleMetadata) throws(PersistenceFailure) -> Bool {
    try transaction(.useBundle) { store in
      store.persistence.bundle(metadata.id).map { $0.createTime >= metadata.createTime } ?? false
    }
  }

  mutating func namedQuery(_ name: String) throws(PersistenceFailure) -> NamedQuery? {
    try transaction(.useBundle) { $0.persistence.namedQuery(name) }
  }

  /// Stores a bundle's documents and queries in the cache.
  mutating func apply(_ bundle: Bundle) throws(PersistenceFailure) -> DocumentChanges {
    let before = targets
    do throws(PersistenceFailure) {
      // A separate target protects the bundle's documents from garbage collection.
      let bundleTarget: TargetData? =
        if let target = LocalStore.bundleTarget(of: bundle) { try allocate(target) } else { nil }
      var targets: [TargetData] = []
      for query in bundle.queries { targets.append(try allocate(query.clientQuery.target)) }
      return try store(bundle, bundleTarget: bundleTarget, targets: targets)
    } catch {
      restore(before)
      throw error
    }
  }

  private mutating func store(
    _ bundle: Bundle, bundleTarget: TargetData?, targets: [TargetData]
  ) throws(PersistenceFailure) -> DocumentChanges {
    try transaction(.useBundle) { store in
      if let bundleTarget {
        let found = Set(bundle.documents.values.filter(\.isFound).map(\.name))
        store.persistence.removeMatchingKeys(
          store.persistence.matchingKeys(of: bundleTarget.id), from: bundleTarget.id)
        store.persistence.addMatchingKeys(found, to: bundleTarget.id)
      }
      let changes = store.storeIfNewer(bundle.documents)
      for (query, data) in zip(bundle.queries, targets) {
        store.save(query, target: data, keys: bundle.documentsOfQuery[query.name] ?? [])
      }
      store.persistence.setBundle(bundle.metadata)
      return changes
    }
  }

  private static func bundleTarget(of bundle: Bundle) -> Target? {
    guard let database = bundle.documents.keys.first?.database else { return nil }
    // No document of the database has this name, because the ID of its collection is reserved.
    let path = ResourcePath(["__bundle__", bundle.metadata.id])
    return DocumentName(database: database, path: path).map { .document($0) }
  }

  /// Stores a named query. A listener to it resumes at the version at which the bundle read the result.
  private mutating func save(_ query: NamedQuery, target: TargetData, keys: Set<DocumentName>) {
    if query.readTime > target.snapshotVersion {
      let data = target.resuming(with: [], at: query.readTime)
      setTarget(data)
      persistence.removeMatchingKeys(persistence.matchingKeys(of: target.id), from: target.id)
      persistence.addMatchingKeys(keys, to: target.id)
    }
    persistence.setNamedQuery(query)
  }
}
