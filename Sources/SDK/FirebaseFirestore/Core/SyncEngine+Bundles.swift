// What a loaded bundle means for views and listeners: the same as documents that watch delivered,
// except that no target becomes current by it.

import FirestoreModel

extension SyncEngine {
  mutating func load(_ bundle: Bundle) {
    let changes = store.apply(bundle)
    raise(changes)
  }
}
