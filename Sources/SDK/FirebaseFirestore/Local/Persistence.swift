// The persistence: the storage that the local store requires, in memory or on disk.
//
// Invariant: the changes of the local store between `begin` and `commit` are one atomic group. If `begin` or
// `commit` throws, the storage is as it was before `begin`.

import FirestoreModel

/// The user whose writes are queued; nil if no user is signed in.
typealias UserID = String?

/// Stores mutation queues, overlays, cached documents, targets, bundles and indexes.
///
/// Only `begin` and `commit` report failures. A read that fails between them returns nothing, and `commit`
/// then throws.
protocol Persistence: Sendable {
  /// Starts a group of changes or reads.
  mutating func begin(_ operation: StoreOperation) throws(PersistenceFailure)
  /// Ends a group of changes. `isPinned` returns whether a view or a limbo resolution uses a document.
  mutating func commit(isPinned: (DocumentName) -> Bool) throws(PersistenceFailure)
  /// Moves the cache to a new file after a failed sync. It is called outside of groups. Without a failed sync
  /// it does nothing.
  mutating func repair() throws(PersistenceFailure)
  /// Releases the storage. No calls follow.
  mutating func close()

  // MARK: The user's mutation queue

  /// Switches to the queue and the overlays of a user.
  mutating func switchUser(to user: UserID)
  mutating func addBatch(at time: ModelTimestamp, base: [Write], writes: [Write]) -> MutationBatch
  mutating func removeBatch(_ batch: MutationBatch)
  func batch(after id: BatchID?) -> MutationBatch?
  var lastBatch: BatchID? { get }
  var allBatches: [MutationBatch] { get }
  /// The batches that change a document, oldest first.
  func batches(touching document: DocumentName) -> [MutationBatch]

  // MARK: The user's overlays

  func overlay(of document: DocumentName) -> Overlay?
  func overlays(in collection: ResourcePath) -> [DocumentName: Overlay]
  func overlays(inGroup collectionID: String) -> [DocumentName: Overlay]
  mutating func setOverlay(_ overlay: Overlay, of document: DocumentName)
  mutating func removeOverlay(of document: DocumentName, ifFrom batch: BatchID)

  // MARK: Documents in the state that the server last sent

  func document(_ name: DocumentName) -> CachedDocument
  func documents(in collection: ResourcePath, readAfter: ModelTimestamp) -> [CachedDocument]
  /// The collections that have this ID and may contain cached documents.
  func collections(inGroup collectionID: String) -> [ResourcePath]
  mutating func setDocument(_ document: CachedDocument)
  mutating func removeDocument(_ name: DocumentName)
  /// Records an orphan: a document that a target, write or view no longer uses. `commit` may remove it.
  mutating func recordOrphan(_ name: DocumentName)

  // MARK: Targets

  func target(_ target: Target) -> TargetData?
  mutating func allocateTarget(_ target: Target) -> TargetData
  mutating func setTarget(_ data: TargetData)
  /// Ends the use of a target. The garbage collection policy decides whether its data stays.
  mutating func releaseTarget(_ data: TargetData)
  func matchingKeys(of id: TargetID) -> Set<DocumentName>
  mutating func addMatchingKeys(_ keys: Set<DocumentName>, to id: TargetID)
  mutating func removeMatchingKeys(_ keys: Set<DocumentName>, from id: TargetID)
  /// The newest global snapshot that has been applied.
  var lastRemoteVersion: ModelTimestamp { get set }

  // MARK: Bundles

  func bundle(_ id: String) -> BundleMetadata?
  mutating func setBundle(_ metadata: BundleMetadata)
  func namedQuery(_ name: String) -> NamedQuery?
  mutating func setNamedQuery(_ query: NamedQuery)

  // MARK: Indexes

  /// The indexes. `setFieldIndexes` builds new indexes, and removes indexes that are not in the set.
  var fieldIndexes: Set<FieldIndex> { get }
  mutating func setFieldIndexes(_ indexes: Set<FieldIndex>)
  /// Visits the documents of one collection in a range of an index until `visit` returns false. The order is
  /// that of the keys, and of the names for equal keys. A document may occur several times, with different
  /// keys.
  func scan(
    _ index: FieldIndex, in collection: ResourcePath, _ range: IndexRange, reversed: Bool,
    _ visit: (_ key: [UInt8], _ document: CachedDocument) -> Bool)

  // MARK: Garbage

  /// The approximate size of the cache in bytes.
  var approximateSize: Int { get }
  /// Removes a share of the unused targets, and of the documents that nothing uses. The least recently used
  /// are removed first. `maximumCount` is the maximum number of targets and documents.
  mutating func collectGarbage(
    active: Set<TargetID>, share: Double, maximumCount: Int, isPinned: (DocumentName) -> Bool)
}
