// A failing persistence for tests of failures: the operations that a test chooses throw before they begin.

import FirestoreModel

@testable import FirebaseFirestore

struct FailingPersistence: Persistence {
  /// The persistence to which all calls are forwarded.
  var inner: any Persistence
  /// Whether an operation fails.
  var fails: @Sendable (StoreOperation) -> Bool = { _ in false }

  init(_ inner: any Persistence) { self.inner = inner }

  mutating func begin(_ operation: StoreOperation) throws(PersistenceFailure) {
    if fails(operation) { throw PersistenceFailure(operation: operation, reason: "chosen by the test") }
    try inner.begin(operation)
  }

  mutating func commit(isPinned: (DocumentName) -> Bool) throws(PersistenceFailure) {
    try inner.commit(isPinned: isPinned)
  }
  mutating func repair() throws(PersistenceFailure) { try inner.repair() }
  mutating func close() { inner.close() }

  mutating func switchUser(to user: UserID) { inner.switchUser(to: user) }
  mutating func addBatch(at time: ModelTimestamp, base: [Write], writes: [Write]) -> MutationBatch {
    inner.addBatch(at: time, base: base, writes: writes)
  }
  mutating func removeBatch(_ batch: MutationBatch) { inner.removeBatch(batch) }
  func batch(after id: BatchID?) -> MutationBatch? { inner.batch(after: id) }
  var lastBatch: BatchID? { inner.lastBatch }
  var allBatches: [MutationBatch] { inner.allBatches }
  func batches(touching document: DocumentName) -> [MutationBatch] { inner.batches(touching: document) }

  func overlay(of document: DocumentName) -> Overlay? { inner.overlay(of: document) }
  func overlays(in collection: ResourcePath) -> [DocumentName: Overlay] { inner.overlays(in: collection) }
  func overlays(inGroup collectionID: String) -> [DocumentName: Overlay] {
    inner.overlays(inGroup: collectionID)
  }
  mutating func setOverlay(_ overlay: Overlay, of document: DocumentName) {
    inner.setOverlay(overlay, of: document)
  }
  mutating func removeOverlay(of document: DocumentName, ifFrom batch: BatchID) {
    inner.removeOverlay(of: document, ifFrom: batch)
  }

  func document(_ name: DocumentName) -> CachedDocument { inner.document(name) }
  func documents(in collection: ResourcePath, readAfter: ModelTimestamp) -> [CachedDocument] {
    inner.documents(in: collection, readAfter: readAfter)
  }
  func collections(inGroup collectionID: String) -> [ResourcePath] {
    inner.collections(inGroup: collectionID)
  }
  mutating func setDocument(_ document: CachedDocument) { inner.setDocument(document) }
  mutating func removeDocument(_ name: DocumentName) { inner.removeDocument(name) }
  mutating func recordOrphan(_ name: DocumentName) { inner.recordOrphan(name) }

  func target(_ target: Target) -> TargetData? { inner.target(target) }
  mutating func allocateTarget(_ target: Target) -> TargetData { inner.allocateTarget(target) }
  mutating func setTarget(_ data: TargetData) { inner.setTarget(data) }
  mutating func releaseTarget(_ data: TargetData) { inner.releaseTarget(data) }
  func matchingKeys(of id: TargetID) -> Set<DocumentName> { inner.matchingKeys(of: id) }
  mutating func addMatchingKeys(_ keys: Set<DocumentName>, to id: TargetID) {
    inner.addMatchingKeys(keys, to: id)
  }
  mutating func removeMatchingKeys(_ keys: Set<DocumentName>, from id: TargetID) {
    inner.removeMatchingKeys(keys, from: id)
  }
  var lastRemoteVersion: ModelTimestamp {
    get { inner.lastRemoteVersion }
    set { inner.lastRemoteVersion = newValue }
  }

  func bundle(_ id: String) -> BundleMetadata? { inner.bundle(id) }
  mutating func setBundle(_ metadata: BundleMetadata) { inner.setBundle(metadata) }
  func namedQuery(_ name: String) -> NamedQuery? { inner.namedQuery(name) }
  mutating func setNamedQuery(_ query: NamedQuery) { inner.setNamedQuery(query) }

  var fieldIndexes: Set<FieldIndex> { inner.fieldIndexes }
  mutating func setFieldIndexes(_ indexes: Set<FieldIndex>) { inner.setFieldIndexes(indexes) }
  func scan(
    _ index: FieldIndex, in collection: ResourcePath, _ range: IndexRange, reversed: Bool,
    _ visit: (_ key: [UInt8], _ document: CachedDocument) -> Bool
  ) {
    inner.scan(index, in: collection, range, reversed: reversed, visit)
  }

  var approximateSize: Int { inner.approximateSize }
  mutating func collectGarbage(
    active: Set<TargetID>, share: Double, maximumCount: Int, isPinned: (DocumentName) -> Bool
  ) {
    inner.collectGarbage(active: active, share: share, maximumCount: maximumCount, isPinned: isPinned)
  }
}
