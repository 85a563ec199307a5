// Applies a loaded bundle to views and listeners: like documents from watch, except that no target becomes current.

import FirestoreModel

extension SyncEngine {
  mutating func load(_ bundle: Bundle) throws(PersistenceFailure) {
    raise(try store.apply(bundle))
  }
}
