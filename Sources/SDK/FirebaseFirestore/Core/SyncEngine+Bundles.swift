// Applies a loaded bundle to views and listeners. The engine handles the bundle's documents like documents from
// watch, but no target becomes current.

import FirestoreModel

extension SyncEngine {
  mutating func load(_ bundle: Bundle) throws(PersistenceFailure) {
    raise(try store.apply(bundle))
  }
}
