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
  mutating func configure(_ indexes: Set<FieldIndex>) {
    transaction { store in
      store.configuredIndexes = indexes
      store.automaticIndexes.subtract(indexes)
      store.persistence.setFieldIndexes(indexes.union(store.automaticIndexes))
    }
  }

  mutating func deleteAllIndexes() {
    transaction { store in
      store.configuredIndexes = []
      store.automaticIndexes = []
      store.persistence.setFieldIndexes([])
    }
  }

  /// Makes the indexes that would have spared a search, where it was wasteful.
  mutating func learn(from query: ClientQuery, searched: Int, found: Int) {
    guard createsIndexes, searched >= LocalStore.leastDocumentsToIndex,
      Double(searched) > LocalStore.costRatio * Double(found), let normal = query.normal,
      let collectionID = normal.selector?.collectionID
    else { return }
    let useful = Set(
      normal.disjunctions.compactMap { terms -> FieldIndex? in
        FieldIndex.serving(terms, of: collectionID).flatMap {
          $0.range(for: terms, orders: normal.orders) == nil ? nil : $0
        }
      })
    let new = useful.subtracting(persistence.fieldIndexes)
    guard !new.isEmpty, automaticIndexes.count + new.count <= LocalStore.automaticIndexLimit else { return }
    transaction { store in
      store.automaticIndexes.formUnion(new)
      store.persistence.setFieldIndexes(store.configuredIndexes.union(store.automaticIndexes))
    }
  }
}
