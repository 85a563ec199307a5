// Manages the indexes of the cache: indexes that the app configured, and indexes that were created for slow
// queries.
//
// Invariant: indexes make queries on the cache faster, and never change their results.

import FirestoreModel

extension LocalStore {
  /// The minimum number of documents in a collection for which an index is created.
  static let minimumDocumentsToIndex = 100
  /// An index is created if a search reads more than this number of documents for each document that it
  /// finds.
  static let maximumReadsPerResult = 3.4
  /// The maximum number of automatic indexes. Each has an entry for every document of its collections.
  static let automaticIndexLimit = 32

  /// Replaces the configured indexes. The automatic indexes stay.
  mutating func configure(_ indexes: Set<FieldIndex>) throws(PersistenceFailure) {
    let automatic = automaticIndexes.subtracting(indexes)
    try transaction(.configureIndexes) { $0.persistence.setFieldIndexes(indexes.union(automatic)) }
    (configuredIndexes, automaticIndexes) = (indexes, automatic)
  }

  mutating func deleteAllIndexes() throws(PersistenceFailure) {
    try transaction(.configureIndexes) { $0.persistence.setFieldIndexes([]) }
    (configuredIndexes, automaticIndexes) = ([], [])
  }

  /// Creates the indexes with which a search would have read few documents. A scan of an index ends at the
  /// query's limit, so documents beyond the limit count as not found.
  mutating func createIndexes(from query: ClientQuery, searched: Int, found: Int) {
    let found = min(found, query.limit ?? .max)
    guard createsIndexes, searched >= LocalStore.minimumDocumentsToIndex,
      Double(searched) > LocalStore.maximumReadsPerResult * Double(found),
      let normalizedQuery = query.normalizedQuery
    else { return }
    let useful = Set(
      normalizedQuery.disjunctions.compactMap { terms in
        FieldIndex.serving(terms, of: normalizedQuery).flatMap {
          IndexPlan($0, for: terms, of: normalizedQuery)?.index
        }
      })
    let existing = persistence.fieldIndexes
    let new = useful.subtracting(existing)
    guard !new.isEmpty, automaticIndexes.count + new.count <= LocalStore.automaticIndexLimit else { return }
    automaticIndexes.formUnion(new)
    persistence.setFieldIndexes(existing.union(new))
  }
}
