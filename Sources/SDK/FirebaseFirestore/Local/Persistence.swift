// The storage that the local store requires, in memory or on disk.
//
// Invariant: the changes of the local store between `begin` and `commit` are one atomic group. When either throws, the
// storage is as it was before `begin`.

import FirestoreModel

/// The user whose writes are queued; nil if nobody is signed in.
typealias UserID = String?

/// Keeps mutation queues, overlays, cached documents, targets, bundles and indexes.
///
/// Only `begin` and `commit` report failures. A read that fails in between returns nothing, and `commit` then throws.
protocol Persistence: Sendable {
  /// Starts a group of changes or reads.
  mutating func begin(_ operation: StoreOperation) throws(PersistenceFailure)
  /// Ends a group of changes. `isPinned` returns whether a view or limbo resolution shows a document.
  mutating func commit(isPinned: (DocumentName) -> Bool) throws(PersistenceFailure)
  /// Restores the durability that a failed sync has ended, outside of a group. Without such a failure it does nothing.
  mutating func repair() throws(PersistenceFailure)
  /// Releases the storage; no other call follows.
  mutating func close()

  // MARK: The user's mutation queue

  /// Switches to the queue and the overlays of a user.
  mutating func become(user: UserID)
  mutating func addBatch(at time: ModelTimestamp, base: [Write], writes: [Write]) -> MutationBatch
  mutating func removeBatch(_ batch: MutationBatch)
  func batch(after id: BatchID?) -> MutationBatch?
  var lastBatch: BatchID? { get }
  var allBatches: [MutationBatch] { get }
  /// The batches that touch a document, oldest first.
  func batches(touching document: DocumentName) -> [MutationBatch]

  // MARK: The user's overlays

  func overlay(of document: DocumentName) -> Overlay?
  func overlays(in collection: ResourcePath) -> [DocumentName: Overlay]
  func overlays(inGroup collectionID: String) -> [DocumentName: Overlay]
  mutating func setOverlay(_ overlay: Overlay, of document: DocumentName)
  mutating func removeOverlay(of document: DocumentName, ifFrom batch: BatchID)

  // MARK: Documents as the server last showed them

  func document(_ name: DocumentName) -> CachedDocument
  func documents(in collection: ResourcePath, readAfter: ModelTimestamp) -> [CachedDocument]
  /// The collections with an ID that may hold documents.
  func collections(inGroup collectionID: String) -> [ResourcePath]
  mutating func setDocument(_ document: CachedDocument)
  mutating func removeDocument(_ name: DocumentName)
  /// Records an orphan: a document that a target, write or view no longer refers to. `commit` may remove it.
  mutating func noteOrphan(_ name: DocumentName)

  // MARK: Targets

  func target(_ target: Target) -> TargetData?
  mutating func allocateTarget(_ target: Target) -> TargetData
  mutating func setTarget(_ data: TargetData)
  /// Ends the use of a target. The garbage collection policy decides whether its data is kept.
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

  /// The indexes. Setting them builds the new ones and drops those that are missing from the set.
  var fieldIndexes: Set<FieldIndex> { get }
  mutating func setFieldIndexes(_ indexes: Set<FieldIndex>)
  /// Visits the documents of one collection in a range of an index, in the order of their keys, ties by name, until
  /// `visit` returns false. A document may occur several times, with different keys.
  func scan(
    _ index: FieldIndex, in collection: ResourcePath, _ range: IndexRange, reversed: Bool,
    _ visit: (_ key: [UInt8], _ document: CachedDocument) -> Bool)

  // MARK: Garbage

  /// The size of the cache, roughly, in bytes.
  var approximateSize: Int { get }
  /// Removes a share of the unused targets and of the documents that nothing refers to, the least recently used
  /// first. `most` limits the number of targets and of documents.
  mutating func collectGarbage(
    active: Set<TargetID>, share: Double, most: Int, isPinned: (DocumentName) -> Bool)
}
