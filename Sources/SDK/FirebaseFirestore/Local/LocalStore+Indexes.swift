// The indexes of the cache: those that the app configured, and those that slow queries caused.
//
// Invariant: indexes change the time of a query on the cache, never its results.

import FirestoreModel

extension LocalStore {
  /// Minimum number of documents in a collection for which an index is made.
  static let minimumDocumentsToIndex = 100
  /// An index is made if a search reads more than this number of documents for each that it finds.
  static let maximumReadsPerResult = 3.4
  /// Maximum number of automatic indexes. Each has an entry for every document of its collections.
  static let automaticIndexLimit = 32

  /// Keeps exactly these configured indexes, in addition to the automatic ones.
  mutating func configure(_ indexes: Set<FieldIndex>) throws(PersistenceFailure) {
    let automatic = automaticIndexes.subtracting(indexes)
    try transaction(.configureIndexes) { $0.persistence.setFieldIndexes(indexes.union(automatic)) }
    (configuredIndexes, automaticIndexes) = (indexes, automatic)
  }

  mutating func deleteAllIndexes() throws(PersistenceFailure) {
    try transaction(.configureIndexes) { $0.persistence.setFieldIndexes([]) }
    (configuredIndexes, automaticIndexes) = ([], [])
  }

  /// Makes the indexes that would have avoided a wasteful search. With an index, reading ends at the limit, so
  /// documents beyond the limit count as avoided.
  mutating func createIndexes(from query: ClientQuery, searched: Int, found: Int) {
    let found = min(found, query.limit ?? .max)
    guard createsIndexes, searched >= LocalStore.minimumDocumentsToIndex,
      Double(searched) > LocalStore.maximumReadsPerResult * Double(found), let normal = query.normal
    else { return }
    let useful = Set(
      normal.disjunctions.compactMap { terms in
        FieldIndex.serving(terms, of: normal).flatMap { IndexPlan($0, for: terms, of: normal)?.index }
      })
    let known = persistence.fieldIndexes
    let new = useful.subtracting(known)
    guard !new.isEmpty, automaticIndexes.count + new.count <= LocalStore.automaticIndexLimit else { return }
    automaticIndexes.formUnion(new)
    persistence.setFieldIndexes(known.union(new))
  }
}
