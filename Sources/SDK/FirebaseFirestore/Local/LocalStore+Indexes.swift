// The indexes of the cache: those that the app configured, and those that slow queries caused.
//
// Invariant: indexes change the time of a query on the cache, never its results.

import FirestoreModel

extension LocalStore {
  /// Collections smaller than this are searched whole.
  static let leastDocumentsToIndex = 100
  /// How many documents a search must look at for each that it finds before an index pays.
  static let costRatio = 3.4
  /// Most indexes that are made unasked; each holds an entry for every document of its collections.
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

  /// Makes the indexes that would have spared a search, where it was wasteful. A limit ends the reading of an index, so
  /// that the documents beyond it count as spared.
  mutating func learn(from query: ClientQuery, searched: Int, found: Int) {
    let found = min(found, query.limit ?? .max)
    guard createsIndexes, searched >= LocalStore.leastDocumentsToIndex,
      Double(searched) > LocalStore.costRatio * Double(found), let normal = query.normal
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
