// The local store: the client's database of documents from the server, pending writes of the user, and the
// local views that result from both.
//
// local view of a document = cached server document + overlay
// overlay = all pending batches of the document, combined into one write
//
// Invariant: after every operation, each document's overlay equals the effect of its pending batches on the cached
// document. Every operation is one group of changes to the persistence, and returns the local view of each document
// that may have changed.

import FirestoreModel

/// Local views of documents that may have changed.
typealias DocumentChanges = [DocumentName: CachedDocument]

/// The results of a query in the cache.
struct QueryResult {
  let documents: [CachedDocument]
  /// The documents that belonged to the target on the server when it was last in sync.
  let remoteKeys: Set<DocumentName>
}

struct LocalStore {
  var persistence: any Persistence
  private(set) var targets: [TargetID: TargetData] = [:]
  /// The documents that each target's view contains. They are not garbage.
  private var viewDocuments: [TargetID: Set<DocumentName>] = [:]
  private var viewCount: [DocumentName: Int] = [:]
  /// Documents that limbo resolutions protect from garbage collection.
  var limboPins: Set<DocumentName> = []
  var configuredIndexes: Set<FieldIndex> = []
  var automaticIndexes: Set<FieldIndex> = []
  /// Whether indexes may be created for queries that are slow on the cache.
  var createsIndexes = true

  init(persistence: any Persistence) {
    self.persistence = persistence
    automaticIndexes = persistence.fieldIndexes
  }

  /// Runs an operation as one group of changes. If it throws, the persistence is unchanged, but changes that
  /// `body` made to other properties remain.
  mutating func transaction<T>(
    _ operation: StoreOperation, _ body: (inout LocalStore) -> T
  ) throws(PersistenceFailure) -> T {
    try persistence.begin(operation)
    let result = body(&self)
    let (counts, limbo) = (viewCount, limboPins)
    try persistence.commit { counts[$0] != nil || limbo.contains($0) }
    return result
  }

  // MARK: Writes

  /// Queues writes and returns the resulting local view.
  mutating func write(
    _ writes: [Write], at time: ModelTimestamp
  ) throws(PersistenceFailure) -> (batch: BatchID, changes: DocumentChanges) {
    try transaction(.writeLocally) { store in
      var documents: [DocumentName: CachedDocument] = [:]
      var touched: [DocumentName: TouchedFields] = [:]
      var uncached: Set<DocumentName> = []
      for name in Set(writes.map(\.document)) {
        let view = store.localView(of: store.persistence.document(name))
        if !store.persistence.document(name).isKnown { uncached.insert(name) }
        documents[name] = view.document
        touched[name] = view.touched
      }
      let base = writes.compactMap { write in documents[write.document].flatMap { write.baseWrite(over: $0) }
      }
      let batch = store.persistence.addBatch(at: time, base: base, writes: writes)
      for name in batch.documents {
        guard var document = documents[name] else { continue }
        var fields = batch.applyLocally(to: &document, touched: touched[name] ?? [])
        // The overlay of a document that is not in the cache replaces the complete document.
        if uncached.contains(name) { fields = nil }
        if let overlay = Write.overlay(for: document, touched: fields) {
          store.persistence.setOverlay(Overlay(batch: batch.id, write: overlay), of: name)
        }
        if !document.isKnown { document.setMissing(version: .epoch, changes: .none) }
        documents[name] = document
      }
      return (batch.id, documents)
    }
  }

  /// Applies the server's acknowledgement of a batch to the cache, and removes the batch from the queue.
  mutating func acknowledge(
    _ batch: MutationBatch, results: [WriteResult], commitTime: ModelTimestamp
  ) throws(PersistenceFailure) -> DocumentChanges {
    try transaction(.acknowledge) { store in
      for name in batch.documents {
        var document = store.persistence.document(name)
        let version =
          zip(batch.writes, results).reversed().first { $0.0.document == name }?.1.updateTime ?? commitTime
        // Watch may already have delivered the result.
        guard document.version < version else { continue }
        batch.applyAcknowledged(to: &document, results: results, commitTime: commitTime)
        if document.isKnown {
          document.readTime = commitTime
          store.persistence.setDocument(document)
        }
      }
      store.persistence.removeBatch(batch)
      for name in batch.documents { store.persistence.removeOverlay(of: name, ifFrom: batch.id) }
      let transformed = zip(batch.writes, results).filter { !$0.1.transformResults.isEmpty }.map(\.0.document)
      store.recalculateOverlays(of: transformed)
      return store.views(of: batch.documents)
    }
  }

  /// Removes a batch that the server rejected from the queue.
  mutating func reject(_ batch: MutationBatch) throws(PersistenceFailure) -> DocumentChanges {
    try transaction(.reject) { store in
      store.persistence.removeBatch(batch)
      for name in batch.documents { store.persistence.removeOverlay(of: name, ifFrom: batch.id) }
      store.recalculateOverlays(of: batch.documents)
      return store.views(of: batch.documents)
    }
  }

  /// Switches to another user's queue. Returns every document with writes of either user.
  mutating func switchUser(to user: UserID) throws(PersistenceFailure) -> DocumentChanges {
    try transaction(.changeUser) { store in
      let old = store.persistence.allBatches
      store.persistence.switchUser(to: user)
      let new = store.persistence.allBatches
      return store.views(of: Set((old + new).flatMap(\.documents)))
    }
  }

  /// The first queued batch, or the first batch after another one.
  mutating func nextBatch(after id: BatchID?) throws(PersistenceFailure) -> MutationBatch? {
    try transaction(.nextBatch) { $0.persistence.batch(after: id) }
  }

  /// The newest global snapshot that has been applied.
  mutating func lastRemoteVersion() throws(PersistenceFailure) -> ModelTimestamp {
    try transaction(.readRemoteVersion) { $0.persistence.lastRemoteVersion }
  }

  // MARK: Updates from watch

  /// Applies a consistent snapshot of the server.
  mutating func apply(_ event: RemoteEvent) throws(PersistenceFailure) -> DocumentChanges {
    let before = targets
    do throws(PersistenceFailure) {
      return try transaction(.applyRemoteEvent) { $0.store(event) }
    } catch {
      targets = before
      throw error
    }
  }

  private mutating func store(_ event: RemoteEvent) -> DocumentChanges {
    for (id, change) in event.targetChanges {
      guard let old = targets[id] else { continue }
      persistence.removeMatchingKeys(change.removed, from: id)
      persistence.addMatchingKeys(change.added, to: id)
      var new = old
      if event.targetMismatches[id] != nil {
        new = new.resuming(with: [], at: .epoch)
        new.lastLimboFreeVersion = .epoch
      } else if !change.resumeToken.isEmpty {
        new = new.resuming(with: change.resumeToken, at: event.version)
      }
      targets[id] = new
      if LocalStore.mustStore(old, new, change) { persistence.setTarget(new) }
    }
    for name in event.resolvedLimbo { persistence.recordOrphan(name) }
    let changes = storeIfNewer(event.documents)
    if event.version != .epoch, event.version > persistence.lastRemoteVersion {
      persistence.lastRemoteVersion = event.version
    }
    return changes
  }

  /// Stores documents from the server in the cache if they are newer than the cached documents.
  mutating func storeIfNewer(_ documents: [DocumentName: CachedDocument]) -> DocumentChanges {
    var changed: [DocumentName: CachedDocument] = [:]
    var existenceChanged: Set<DocumentName> = []
    for (name, document) in documents {
      let cached = persistence.document(name)
      if cached.isFound != document.isFound { existenceChanged.insert(name) }
      if document.isMissing, document.version == .epoch {
        // The server denies access to the limbo document, so its state is unknown.
        persistence.removeDocument(name)
        changed[name] = document
      } else if !cached.isKnown || document.version > cached.version
        || (document.version == cached.version && cached.hasPendingWrites)
      {
        persistence.setDocument(document)
        changed[name] = document
      }
    }
    return views(of: changed, existenceChanged: existenceChanged)
  }

  /// Whether a target's progress is stored: at its first token, with new contents, or five minutes after it
  /// was last stored.
  private static func mustStore(_ old: TargetData, _ new: TargetData, _ change: TargetChange) -> Bool {
    if old.resumeToken.isEmpty { return true }
    // A time from a damaged row or from a server may be so extreme that the subtraction overflows.
    let (age, isExtreme) = new.snapshotVersion.seconds.subtractingReportingOverflow(
      old.snapshotVersion.seconds)
    if isExtreme || age >= 5 * 60 { return true }
    return !change.added.isEmpty || !change.modified.isEmpty || !change.removed.isEmpty
  }

  // MARK: Targets

  mutating func allocate(_ target: Target) throws(PersistenceFailure) -> TargetData {
    let data = try transaction(.allocateTarget) { store in
      store.persistence.target(target) ?? store.persistence.allocateTarget(target)
    }
    let current = targets[data.id] ?? data
    targets[data.id] = current
    return current
  }

  /// Resets the progress of all targets, because the cache has lost their documents.
  mutating func restartTargets() {
    targets = targets.mapValues { data in
      var data = data.resuming(with: [], at: .epoch)
      data.lastLimboFreeVersion = .epoch
      return data
    }
  }

  /// Stores the progress of a target.
  mutating func setTarget(_ data: TargetData) {
    targets[data.id] = data
    persistence.setTarget(data)
  }

  /// Ends the use of a target. If it fails, the stored state is unchanged.
  mutating func release(_ id: TargetID) throws(PersistenceFailure) {
    guard let data = targets.removeValue(forKey: id) else { return }
    let names = viewDocuments.removeValue(forKey: id) ?? []
    for name in names { decrementViewCount(of: name) }
    try transaction(.releaseTarget) { store in
      for name in names { store.persistence.recordOrphan(name) }
      store.persistence.releaseTarget(data)
    }
  }

  /// Restores the targets from before a failed operation, and ends the use of those that the operation
  /// allocated.
  mutating func restore(_ before: [TargetID: TargetData]) {
    let allocated = Set(targets.keys).subtracting(before.keys)
    targets.merge(before) { $1 }
    // A target that cannot be released counts as unused at the next start.
    for id in allocated { try? release(id) }
  }

  /// Records which documents a view contains, and whether none of them was in limbo. After a failure, a later
  /// query searches the cache again.
  mutating func recordView(
    target id: TargetID, shows added: [DocumentName], hides removed: [DocumentName], fromCache: Bool
  ) throws(PersistenceFailure) {
    for name in added where viewDocuments[id, default: []].insert(name).inserted {
      viewCount[name, default: 0] += 1
    }
    var orphans: [DocumentName] = []
    for name in removed where viewDocuments[id]?.remove(name) != nil {
      decrementViewCount(of: name)
      orphans.append(name)
    }
    var inSync: TargetData?
    if !fromCache, var data = targets[id] {
      let isFirst = data.lastLimboFreeVersion == .epoch
      data.lastLimboFreeVersion = data.snapshotVersion
      targets[id] = data
      if isFirst { inSync = data }
    }
    guard !orphans.isEmpty || inSync != nil else { return }
    try transaction(.noteViews) { store in
      for name in orphans { store.persistence.recordOrphan(name) }
      if let inSync { store.persistence.setTarget(inSync) }
    }
  }

  private mutating func decrementViewCount(of name: DocumentName) {
    guard let count = viewCount[name] else { return }
    viewCount[name] = count > 1 ? count - 1 : nil
  }

  /// Evicts the least recently used documents if the cache exceeds a size in bytes.
  ///
  /// - Parameters:
  ///   - share: the share of the unused documents to evict. The least recently used are evicted first.
  ///   - maximumCount: the maximum number of documents to evict.
  mutating func collectGarbage(
    above size: Int, share: Double, maximumCount: Int = 1_000
  ) throws(PersistenceFailure) {
    try transaction(.collectGarbage) { store in
      guard store.persistence.approximateSize >= size else { return }
      let (counts, limbo, active) = (store.viewCount, store.limboPins, Set(store.targets.keys))
      store.persistence.collectGarbage(active: active, share: share, maximumCount: maximumCount) {
        counts[$0] != nil || limbo.contains($0)
      }
    }
  }

  // MARK: Local views

  /// The local view of one document.
  mutating func read(_ name: DocumentName) throws(PersistenceFailure) -> CachedDocument {
    try transaction(.readDocument) { $0.view(of: name) }
  }

  /// The local view of one document, inside an operation.
  func view(of name: DocumentName) -> CachedDocument { localView(of: persistence.document(name)).document }

  func localView(of cached: CachedDocument) -> (document: CachedDocument, touched: TouchedFields) {
    guard let overlay = persistence.overlay(of: cached.name) else { return (cached, []) }
    var document = overlay.write.isPatch ? cached : CachedDocument(name: cached.name)
    let touched = overlay.write.touchedFields
    _ = overlay.write.applyLocally(to: &document, touched: touched, at: .epoch)
    return (document, touched)
  }

  private func views(of names: some Sequence<DocumentName>) -> DocumentChanges {
    var result: DocumentChanges = [:]
    for name in names { result[name] = view(of: name) }
    return result
  }

  private mutating func views(
    of documents: [DocumentName: CachedDocument], existenceChanged: Set<DocumentName>
  ) -> DocumentChanges {
    // If a document is created or deleted, the effect of a patch on it changes.
    let stale = documents.keys.filter { name in
      existenceChanged.contains(name) && (persistence.overlay(of: name)?.write.isPatch ?? true)
    }
    recalculateOverlays(of: stale)
    var result: DocumentChanges = [:]
    for (name, document) in documents { result[name] = localView(of: document).document }
    return result
  }

  private mutating func recalculateOverlays(of names: some Sequence<DocumentName>) {
    for name in Set(names) {
      var document = persistence.document(name)
      var touched: TouchedFields = []
      var newest: BatchID?
      for batch in persistence.batches(touching: name) {
        touched = batch.applyLocally(to: &document, touched: touched)
        newest = batch.id
      }
      guard let newest else { continue }
      if let overlay = Write.overlay(for: document, touched: touched) {
        persistence.setOverlay(Overlay(batch: newest, write: overlay), of: name)
      } else if let old = persistence.overlay(of: name) {
        persistence.removeOverlay(of: name, ifFrom: old.batch)
      }
    }
  }
}

extension Write {
  /// Whether the write changes only named fields.
  var isPatch: Bool {
    if case .update = operation { return mask != nil }
    return false
  }
}
