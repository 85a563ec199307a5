// Persistence in memory. With the eager policy it removes a document as soon as no target, no pending write and no view
// refers to it. Otherwise documents and targets stay until garbage collection.

import FirestoreModel

/// Keeps everything in dictionaries, documents grouped by collection so that a query costs its
/// collection and not the cache.
struct MemoryPersistence: Persistence {
  private struct UserState {
    var batches: [MutationBatch] = []
    var overlays: [ResourcePath: [DocumentName: Overlay]] = [:]
    var nextBatch: BatchID = 1
  }

  private let isEager: Bool
  private var users: [UserID: UserState] = [:]
  private var user: UserID = nil
  private var nextBatch: BatchID = 1
  private var documents: [ResourcePath: [DocumentName: CachedDocument]] = [:]
  private var targets: [Target: TargetData] = [:]
  private var keys: [TargetID: Set<DocumentName>] = [:]
  private var targetsOfKey: [DocumentName: Set<TargetID>] = [:]
  private var orphans: Set<DocumentName> = []
  /// When each cached document was last touched, in the count of `sequence`; empty with the eager policy.
  private var lastUse: [DocumentName: Int] = [:]
  private var bundles: [String: BundleMetadata] = [:]
  private var namedQueries: [String: NamedQuery] = [:]
  private var indexes = MemoryIndexes()
  private var lastTarget: TargetID = 0
  private var sequence = 0

  var lastRemoteVersion: ModelTimestamp = .epoch

  /// - Parameter isEager: whether documents go at once when nothing refers to them.
  init(isEager: Bool) { self.isEager = isEager }

  mutating func begin() {
    orphans = []
    sequence += 1
  }

  mutating func commit(isPinned: (DocumentName) -> Bool) {
    guard isEager else { return }
    for name in orphans where !isPinned(name) && !isReferenced(name) { removeDocument(name) }
    orphans = []
  }

  private func isReferenced(_ name: DocumentName) -> Bool {
    targetsOfKey[name] != nil
      || users.values.contains { $0.batches.contains { $0.writes.contains { $0.document == name } } }
  }

  mutating func noteOrphan(_ name: DocumentName) {
    if isEager { orphans.insert(name) } else { touch(name) }
  }

  private mutating func touch(_ name: DocumentName) {
    if documents[name.collectionPath]?[name] != nil { lastUse[name] = sequence }
  }

  // MARK: The user's mutation queue

  private var current: UserState {
    get { users[user] ?? UserState() }
    _modify { yield &users[user, default: UserState()] }
  }

  mutating func become(user: UserID) { self.user = user }

  mutating func addBatch(at time: ModelTimestamp, base: [Write], writes: [Write]) -> MutationBatch {
    let batch = MutationBatch(id: nextBatch, localWriteTime: time, baseWrites: base, writes: writes)
    nextBatch += 1
    current.batches.append(batch)
    return batch
  }

  mutating func removeBatch(_ batch: MutationBatch) {
    current.batches.removeAll { $0.id == batch.id }
    for write in batch.writes { noteOrphan(write.document) }
  }

  func batch(_ id: BatchID) -> MutationBatch? { users[user]?.batches.first { $0.id == id } }

  func batch(after id: BatchID?) -> MutationBatch? {
    users[user]?.batches.first { batch in id.map { batch.id > $0 } ?? true }
  }

  var lastBatch: BatchID? { users[user]?.batches.last?.id }
  var allBatches: [MutationBatch] { users[user]?.batches ?? [] }

  func batches(touching document: DocumentName) -> [MutationBatch] {
    allBatches.filter { $0.writes.contains { $0.document == document } }
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
    current.overlays[document.collectionPath, default: [:]][document] = overlay
  }

  mutating func removeOverlay(of document: DocumentName, ifFrom batch: BatchID) {
    guard overlay(of: document)?.batch == batch else { return }
    let path = document.collectionPath
    current.overlays[path]?[document] = nil
    if current.overlays[path]?.isEmpty == true { current.overlays[path] = nil }
  }

  // MARK: Documents

  func document(_ name: DocumentName) -> CachedDocument {
    documents[name.collectionPath]?[name] ?? CachedDocument(name: name)
  }

  func documents(in collection: ResourcePath, readAfter: ModelTimestamp) -> [CachedDocument] {
    (documents[collection] ?? [:]).values.filter { $0.readTime > readAfter || readAfter == .epoch }
  }

  func documents(inGroup collectionID: String, readAfter: ModelTimestamp) -> [CachedDocument] {
    documents.keys.filter { $0.id == collectionID }.flatMap { documents(in: $0, readAfter: readAfter) }
  }

  mutating func setDocument(_ document: CachedDocument) {
    let path = document.name.collectionPath
    let old = documents[path, default: [:]].updateValue(document, forKey: document.name)
    indexes.replace(old, by: document, in: path)
    noteOrphan(document.name)
  }

  mutating func removeDocument(_ name: DocumentName) {
    let path = name.collectionPath
    let old = documents[path]?.removeValue(forKey: name)
    indexes.replace(old, by: nil, in: path)
    lastUse[name] = nil
    if documents[path]?.isEmpty == true { documents[path] = nil }
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
    forget(data)
  }

  private mutating func forget(_ data: TargetData) {
    // Their last use is unchanged: removing a target is not a use.
    orphans.formUnion(keys[data.id] ?? [])
    unmatch(keys[data.id] ?? [], from: data.id)
    keys[data.id] = nil
    targets[data.target] = nil
  }

  func matchingKeys(of id: TargetID) -> Set<DocumentName> { keys[id] ?? [] }

  mutating func addMatchingKeys(_ added: Set<DocumentName>, to id: TargetID) {
    guard !added.isEmpty else { return }
    keys[id, default: []].formUnion(added)
    for name in added {
      targetsOfKey[name, default: []].insert(id)
      if !isEager { touch(name) }
    }
  }

  mutating func removeMatchingKeys(_ removed: Set<DocumentName>, from id: TargetID) {
    unmatch(removed, from: id)
    for name in removed { noteOrphan(name) }
  }

  private mutating func unmatch(_ removed: Set<DocumentName>, from id: TargetID) {
    guard !removed.isEmpty else { return }
    keys[id]?.subtract(removed)
    for name in removed {
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

  func candidates(for query: NormalizedQuery) -> Set<DocumentName>? { indexes.candidates(for: query) }

  /// The size of a target without its documents: its query, twice, and the resume token.
  private static let targetSize = 512
  /// The size of a document's membership in a target: a name in two sets.
  private static let membershipSize = 64

  var approximateSize: Int {
    let inDocuments = documents.values.reduce(0) { sum, collection in
      collection.values.reduce(sum) { $0 + $1.fields.approximateSize + 128 }
    }
    let inTargets = targets.count * MemoryPersistence.targetSize
    return keys.values.reduce(inDocuments + inTargets) { $0 + $1.count * MemoryPersistence.membershipSize }
  }

  mutating func collectGarbage(
    active: Set<TargetID>, share: Double, most: Int, isPinned: (DocumentName) -> Bool
  ) {
    let written = Set(users.values.flatMap(\.batches).flatMap(\.writes).map(\.document))
    let unused = targets.values.filter { !active.contains($0.id) }
    let uses = (unused.map(\.sequence) + lastUse.filter { targetsOfKey[$0.key] == nil }.map(\.value)).sorted()
    let count = min(Int((Double(uses.count) * share).rounded(.up)), most)
    guard count > 0, count <= uses.count else { return }
    let newest = uses[count - 1]
    for data in unused where data.sequence <= newest { forget(data) }
    for (name, use) in lastUse where use <= newest {
      if targetsOfKey[name] == nil, !written.contains(name), !isPinned(name) { removeDocument(name) }
    }
    orphans = []
  }
}

extension DocumentName {
  /// The path of the collection that holds the document.
  var collectionPath: ResourcePath { path.parent ?? .root }
}
