// The persistence in memory. With the eager policy it removes a document as soon as no target, pending write
// or view uses the document. Otherwise documents and targets stay until garbage collection.

import FirestoreModel

/// Stores everything in dictionaries. Documents are grouped by collection, so the cost of a query depends on
/// the size of its collection and not of the cache.
struct MemoryPersistence: Persistence {
  private struct UserState {
    var queue = MutationQueue()
    var overlays: [ResourcePath: [DocumentName: Overlay]] = [:]
  }

  private let isEager: Bool
  private var users: [UserID: UserState] = [:]
  private var user: UserID = nil
  private var nextBatch: BatchID = 1
  private var documents: [ResourcePath: [DocumentName: CachedDocument]] = [:]
  /// The documents of each collection in the order in which they were read.
  private var keysByReadTime: [ResourcePath: SortedKeys] = [:]
  /// The approximate size of all documents in bytes.
  private var documentBytes = 0
  /// The number of documents in targets. A document in several targets is counted for each of them.
  private var membershipCount = 0
  private var targets: [Target: TargetData] = [:]
  private var keys: [TargetID: Set<DocumentName>] = [:]
  private var targetsOfKey: [DocumentName: Set<TargetID>] = [:]
  private var orphans: Set<DocumentName> = []
  /// The sequence number of the last use of each cached document; empty with the eager policy.
  private var lastUse: [DocumentName: Int] = [:]
  private var bundles: [String: BundleMetadata] = [:]
  private var namedQueries: [String: NamedQuery] = [:]
  private var indexes = MemoryIndexes()
  private var lastTarget: TargetID = 0
  private var sequence = 0

  var lastRemoteVersion: ModelTimestamp = .epoch

  /// - Parameter isEager: whether a document is removed immediately when nothing uses it.
  init(isEager: Bool) { self.isEager = isEager }

  mutating func begin(_ operation: StoreOperation) {
    orphans = []
    sequence += 1
  }

  func repair() {}
  mutating func close() {}

  mutating func commit(isPinned: (DocumentName) -> Bool) {
    guard isEager else { return }
    for name in orphans where !isPinned(name) && !isReferenced(name) { removeDocument(name) }
    orphans = []
  }

  private func isReferenced(_ name: DocumentName) -> Bool {
    targetsOfKey[name] != nil || isQueued(name)
  }

  private func isQueued(_ name: DocumentName) -> Bool { users.values.contains { $0.queue.contains(name) } }

  mutating func recordOrphan(_ name: DocumentName) {
    if isEager { orphans.insert(name) } else { touch(name) }
  }

  private mutating func touch(_ name: DocumentName) {
    if documents[name.collectionPath]?[name] != nil { lastUse[name] = sequence }
  }

  // MARK: The user's mutation queue

  private var userState: UserState {
    get { users[user] ?? UserState() }
    _modify { yield &users[user, default: UserState()] }
  }

  mutating func switchUser(to user: UserID) { self.user = user }

  mutating func addBatch(at time: ModelTimestamp, base: [Write], writes: [Write]) -> MutationBatch {
    let batch = MutationBatch(id: nextBatch, localWriteTime: time, baseWrites: base, writes: writes)
    nextBatch += 1
    userState.queue.append(batch)
    return batch
  }

  mutating func removeBatch(_ batch: MutationBatch) {
    userState.queue.remove(batch)
    for name in batch.documents { recordOrphan(name) }
  }

  func batch(after id: BatchID?) -> MutationBatch? { users[user]?.queue.batch(after: id) }

  var lastBatch: BatchID? { users[user]?.queue.last }
  var allBatches: [MutationBatch] { users[user]?.queue.all ?? [] }

  func batches(touching document: DocumentName) -> [MutationBatch] {
    users[user]?.queue.batches(touching: document) ?? []
  }

  // MARK: The user's overlays

  func overlay(of document: DocumentName) -> Overlay? {
    users[user]?.overlays[document.collectionPath]?[document]
  }

  func overlays(in collection: ResourcePath) -> [DocumentName: Overlay] {
    users[user]?.overlays[collection] ?? [:]
  }

  func overlays(inGroup collectionID: String) -> [DocumentName: Overlay] {
    var result: [DocumentName: Overlay] = [:]
    for (path, overlays) in users[user]?.overlays ?? [:] where path.id == collectionID {
      result.merge(overlays) { first, _ in first }
    }
    return result
  }

  mutating func setOverlay(_ overlay: Overlay, of document: DocumentName) {
    userState.overlays[document.collectionPath, default: [:]][document] = overlay
  }

  mutating func removeOverlay(of document: DocumentName, ifFrom batch: BatchID) {
    guard overlay(of: document)?.batch == batch else { return }
    let path = document.collectionPath
    userState.overlays[path]?[document] = nil
    if userState.overlays[path]?.isEmpty == true { userState.overlays[path] = nil }
  }

  // MARK: Documents

  func document(_ name: DocumentName) -> CachedDocument {
    documents[name.collectionPath]?[name] ?? CachedDocument(name: name)
  }

  func documents(in collection: ResourcePath, readAfter: ModelTimestamp) -> [CachedDocument] {
    guard readAfter != .epoch else { return Array((documents[collection] ?? [:]).values) }
    var names: [DocumentName] = []
    let range = IndexRange(start: readAfter.sortedBytes)
    keysByReadTime[collection]?.visit(range, reversed: false) { entry in
      names.append(entry.name)
      return true
    }
    return names.lazy.map { document($0) }.filter { $0.readTime > readAfter }
  }

  func collections(inGroup collectionID: String) -> [ResourcePath] {
    documents.keys.filter { $0.id == collectionID }
  }

  mutating func setDocument(_ document: CachedDocument) {
    let path = document.name.collectionPath
    let old = documents[path, default: [:]].updateValue(document, forKey: document.name)
    recordReplacement(old, by: document, in: path)
    recordOrphan(document.name)
  }

  mutating func removeDocument(_ name: DocumentName) {
    let path = name.collectionPath
    let old = documents[path]?.removeValue(forKey: name)
    recordReplacement(old, by: nil, in: path)
    lastUse[name] = nil
    if documents[path]?.isEmpty == true {
      documents[path] = nil
      keysByReadTime[path] = nil
    }
  }

  private mutating func recordReplacement(
    _ old: CachedDocument?, by new: CachedDocument?, in path: ResourcePath
  ) {
    indexes.replace(old, by: new, in: path)
    documentBytes += (new?.approximateSize ?? 0) - (old?.approximateSize ?? 0)
    guard old?.readTime != new?.readTime else { return }
    if let old { keysByReadTime[path]?.remove(.init(key: old.readTime.sortedBytes, name: old.name)) }
    if let new {
      keysByReadTime[path, default: SortedKeys([])].insert(
        .init(key: new.readTime.sortedBytes, name: new.name))
    }
  }

  // MARK: Targets

  func target(_ target: Target) -> TargetData? { targets[target] }

  mutating func allocateTarget(_ target: Target) -> TargetData {
    sequence += 1
    lastTarget += 2
    let data = TargetData(target: target, id: lastTarget, sequence: sequence)
    targets[target] = data
    return data
  }

  mutating func setTarget(_ data: TargetData) { targets[data.target] = data }

  mutating func releaseTarget(_ data: TargetData) {
    guard isEager else {
      sequence += 1
      var data = data
      data.sequence = sequence
      targets[data.target] = data
      return
    }
    removeTarget(data)
  }

  private mutating func removeTarget(_ data: TargetData) {
    // The documents' last use is unchanged, because removing a target is not a use.
    orphans.formUnion(keys[data.id] ?? [])
    unmatch(keys[data.id] ?? [], from: data.id)
    keys[data.id] = nil
    targets[data.target] = nil
  }

  func matchingKeys(of id: TargetID) -> Set<DocumentName> { keys[id] ?? [] }

  mutating func addMatchingKeys(_ added: Set<DocumentName>, to id: TargetID) {
    guard !added.isEmpty else { return }
    for name in added {
      if keys[id, default: []].insert(name).inserted { membershipCount += 1 }
      targetsOfKey[name, default: []].insert(id)
      if !isEager { touch(name) }
    }
  }

  mutating func removeMatchingKeys(_ removed: Set<DocumentName>, from id: TargetID) {
    unmatch(removed, from: id)
    for name in removed { recordOrphan(name) }
  }

  private mutating func unmatch(_ removed: Set<DocumentName>, from id: TargetID) {
    guard !removed.isEmpty else { return }
    for name in removed {
      if keys[id]?.remove(name) != nil { membershipCount -= 1 }
      targetsOfKey[name]?.remove(id)
      if targetsOfKey[name]?.isEmpty == true { targetsOfKey[name] = nil }
    }
  }

  // MARK: Bundles

  func bundle(_ id: String) -> BundleMetadata? { bundles[id] }
  mutating func setBundle(_ metadata: BundleMetadata) { bundles[metadata.id] = metadata }
  func namedQuery(_ name: String) -> NamedQuery? { namedQueries[name] }
  mutating func setNamedQuery(_ query: NamedQuery) { namedQueries[query.name] = query }

  // MARK: Indexes

  var fieldIndexes: Set<FieldIndex> { indexes.definitions }

  mutating func setFieldIndexes(_ wanted: Set<FieldIndex>) {
    for index in indexes.definitions.subtracting(wanted) { indexes.remove(index) }
    for index in wanted.subtracting(indexes.definitions) { indexes.add(index, over: documents) }
  }

  func scan(
    _ index: FieldIndex, in collection: ResourcePath, _ range: IndexRange, reversed: Bool,
    _ visit: (_ key: [UInt8], _ document: CachedDocument) -> Bool
  ) {
    indexes.keys(of: index, in: collection)?.visit(range, reversed: reversed) { entry in
      visit(entry.key, document(entry.name))
    }
  }

  /// The approximate size in bytes of a target without its documents: its query, which is stored twice, and
  /// the resume token.
  private static let targetSize = 512
  /// The approximate size in bytes of a document's membership in a target: a name in two sets.
  private static let membershipSize = 64

  var approximateSize: Int {
    documentBytes + targets.count * MemoryPersistence.targetSize
      + membershipCount * MemoryPersistence.membershipSize
  }

  mutating func collectGarbage(
    active: Set<TargetID>, share: Double, maximumCount: Int, isPinned: (DocumentName) -> Bool
  ) {
    let unused = targets.values.filter { !active.contains($0.id) }
    let uses = (unused.map(\.sequence) + lastUse.filter { targetsOfKey[$0.key] == nil }.map(\.value)).sorted()
    let count = min(Int((Double(uses.count) * share).rounded(.up)), maximumCount)
    guard count > 0, count <= uses.count else { return }
    let newest = uses[count - 1]
    for data in unused where data.sequence <= newest { removeTarget(data) }
    for (name, use) in lastUse where use <= newest {
      if targetsOfKey[name] == nil, !isQueued(name), !isPinned(name) { removeDocument(name) }
    }
    orphans = []
  }
}

extension CachedDocument {
  /// The approximate size in memory in bytes.
  fileprivate var approximateSize: Int { fields.approximateSize + 128 }
}

extension ModelTimestamp {
  /// Twelve bytes that sort in the order of time.
  var sortedBytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(12)
    withUnsafeBytes(of: (UInt64(bitPattern: seconds) ^ (1 << 63)).bigEndian) { bytes.append(contentsOf: $0) }
    withUnsafeBytes(of: (UInt32(bitPattern: nanoseconds) ^ (1 << 31)).bigEndian) {
      bytes.append(contentsOf: $0)
    }
    return bytes
  }

  /// The time that these twelve bytes represent; nil for another number of bytes.
  init?(sortedBytes bytes: some Collection<UInt8>) {
    guard bytes.count == 12 else { return nil }
    let seconds = bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    let nanoseconds = bytes.dropFirst(8).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    self.init(
      seconds: Int64(bitPattern: seconds ^ (1 << 63)), nanoseconds: Int32(bitPattern: nanoseconds ^ (1 << 31))
    )
  }
}

extension DocumentName {
  /// The path of the document's collection.
  var collectionPath: ResourcePath { path.parent ?? .root }
}
