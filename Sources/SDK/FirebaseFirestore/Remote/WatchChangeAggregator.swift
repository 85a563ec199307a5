// The watch change aggregator: combines the messages of the watch stream into consistent snapshots.
//
// Invariant: each request for a target has exactly one response. Messages about a target that arrive between
// a request and its response belong to an older request, and are ignored.

import FirestoreModel

struct WatchChangeAggregator {
  private struct TargetState {
    enum Change { case added, modified, removed }

    /// The number of requests to which the server has not responded.
    var outstanding = 0
    var changes: [DocumentName: Change] = [:]
    var resumeToken: [UInt8] = []
    var isCurrent = false
    // True, so that the next snapshot includes a new target even if it is empty.
    var hasChanges = true

    var isPending: Bool { outstanding != 0 }

    mutating func recordToken(_ token: [UInt8]) {
      guard !token.isEmpty else { return }
      hasChanges = true
      resumeToken = token
    }

    mutating func record(_ change: Change?, _ name: DocumentName) {
      hasChanges = true
      changes[name] = change
    }

    func change() -> TargetChange {
      var result = TargetChange(resumeToken: resumeToken, isCurrent: isCurrent)
      for (name, change) in changes {
        switch change {
        case .added: result.added.insert(name)
        case .modified: result.modified.insert(name)
        case .removed: result.removed.insert(name)
        }
      }
      return result
    }

    mutating func clear() {
      hasChanges = false
      changes = [:]
    }
  }

  private var states: [TargetID: TargetState] = [:]
  private var documents: [DocumentName: CachedDocument] = [:]
  private var targetsOfDocument: [DocumentName: Set<TargetID>] = [:]
  /// The targets for which the server sent a document's contents and not only its removal.
  private var targetsWithContents: [DocumentName: Set<TargetID>] = [:]
  private var resets: [TargetID: TargetPurpose] = [:]

  /// Returns the documents that belong to a target on the server.
  typealias Keys = (TargetID) -> Set<DocumentName>

  /// The maximum number of hashes of a bloom filter. With 64 hashes, the best filter has one false positive
  /// in 2 to the power of 64 tests.
  private static let maximumHashCount = 100

  /// Called when a request for a target was sent.
  mutating func recordRequest(_ id: TargetID) { states[id, default: TargetState()].outstanding += 1 }

  mutating func remove(_ id: TargetID) { states[id] = nil }

  private func isActive(_ id: TargetID, _ targets: [TargetID: TargetData]) -> Bool {
    targets[id] != nil && states[id]?.isPending != true
  }

  // MARK: Messages

  mutating func handle(_ change: WatchChange, targets: [TargetID: TargetData], keys: Keys) {
    switch change {
    case .document(let name, let document, let updated, let removed):
      for id in updated {
        if let document, document.isFound {
          add(document, to: id, targets, keys)
        } else {
          remove(name, from: id, document, targets, keys)
        }
      }
      for id in removed { remove(name, from: id, document, targets, keys) }
    case .target(let update): handle(update, targets, keys)
    case .filter(let id, let count, let names): handleFilter(id, count, names, targets, keys)
    }
  }

  private mutating func handle(
    _ update: WatchChange.TargetUpdate, _ targets: [TargetID: TargetData], _ keys: Keys
  ) {
    let affected =
      update.targets.isEmpty ? states.keys.filter { isActive($0, targets) }.sorted() : update.targets
    for id in affected {
      switch update.kind {
      case .noChange:
        if isActive(id, targets) { states[id, default: TargetState()].recordToken(update.resumeToken) }
      case .add:
        recordResponse(for: id)
        if states[id]?.isPending != true { states[id]?.clear() }
        states[id]?.recordToken(update.resumeToken)
      case .remove:
        recordResponse(for: id)
        if states[id]?.isPending != true { states[id] = nil }
      case .current:
        guard isActive(id, targets) else { continue }
        states[id, default: TargetState()].hasChanges = true
        states[id]?.isCurrent = true
        states[id]?.recordToken(update.resumeToken)
      case .reset:
        guard isActive(id, targets) else { continue }
        reset(id, targets, keys)
        states[id]?.recordToken(update.resumeToken)
      }
    }
  }

  /// Counts a response to a request for a target. A response without a request is ignored.
  private mutating func recordResponse(for id: TargetID) {
    var state = states[id] ?? TargetState()
    if state.outstanding > 0 { state.outstanding -= 1 }
    states[id] = state
  }

  private mutating func reset(_ id: TargetID, _ targets: [TargetID: TargetData], _ keys: Keys) {
    states[id] = TargetState()
    for name in keys(id) { remove(name, from: id, nil, targets, keys) }
  }

  // MARK: Documents

  private mutating func add(
    _ document: CachedDocument, to id: TargetID, _ targets: [TargetID: TargetData], _ keys: Keys
  ) {
    guard isActive(id, targets) else { return }
    let change: TargetState.Change = keys(id).contains(document.name) ? .modified : .added
    states[id, default: TargetState()].record(change, document.name)
    setIfNewer(document)
    targetsOfDocument[document.name, default: []].insert(id)
    targetsWithContents[document.name, default: []].insert(id)
  }

  private mutating func remove(
    _ name: DocumentName, from id: TargetID, _ document: CachedDocument?,
    _ targets: [TargetID: TargetData], _ keys: Keys
  ) {
    guard isActive(id, targets) else { return }
    // A document that was never reported for the target need not be reported as removed.
    states[id, default: TargetState()].record(keys(id).contains(name) ? .removed : nil, name)
    targetsOfDocument[name, default: []].insert(id)
    if let document {
      setIfNewer(document)
      targetsWithContents[name, default: []].insert(id)
    }
  }

  /// Stores the document if it is newer than the recorded state. Before a snapshot is complete, targets may be
  /// at different times, so the newest state applies. Version zero always applies: it means that the document
  /// is missing and that the server sent no time.
  private mutating func setIfNewer(_ document: CachedDocument) {
    if let recorded = documents[document.name], recorded.version > document.version,
      document.version != .epoch
    {
      return
    }
    documents[document.name] = document
  }

  // MARK: Existence filters

  private mutating func handleFilter(
    _ id: TargetID, _ count: Int, _ names: BloomFilter?, _ targets: [TargetID: TargetData], _ keys: Keys
  ) {
    guard isActive(id, targets), let data = targets[id] else { return }
    if let name = data.target.documentName {
      if count == 0 { remove(name, from: id, CachedDocument(missing: name, version: .epoch), targets, keys) }
      return
    }
    let present = currentCount(of: id, keys)
    guard present != count else { return }
    var purpose = TargetPurpose.existenceFilterMismatch
    // A filter without bits excludes every name, so it is ignored. A filter with too many hashes is also
    // ignored, because testing the names would take long.
    if let names, names.bitCount > 0, names.hashCount <= WatchChangeAggregator.maximumHashCount {
      let gone = keys(id).filter { !names.mightContain($0.description) }
      for name in gone { remove(name, from: id, nil, targets, keys) }
      if present - gone.count == count { return }
      purpose = .existenceFilterMismatchBloom
    }
    reset(id, targets, keys)
    resets[id] = purpose
  }

  private func currentCount(of id: TargetID, _ keys: Keys) -> Int {
    let change = states[id]?.change() ?? TargetChange()
    return keys(id).count + change.added.count - change.removed.count
  }

  // MARK: Snapshots

  /// Makes a snapshot of the accumulated changes and resets them.
  mutating func takeEvent(
    at version: ModelTimestamp, targets: [TargetID: TargetData], keys: Keys
  ) -> RemoteEvent {
    var event = RemoteEvent(version: version)
    for id in states.keys.sorted() {
      guard isActive(id, targets), let data = targets[id] else { continue }
      if states[id]?.isCurrent == true, let name = data.target.documentName,
        targetsWithContents[name]?.contains(id) != true, !keys(id).contains(name)
      {
        // A document target that is current but did not report its document shows that the document does not
        // exist, even if other targets reported it earlier.
        remove(name, from: id, CachedDocument(missing: name, version: version), targets, keys)
      }
      guard let state = states[id], state.hasChanges else { continue }
      event.targetChanges[id] = state.change()
      states[id]?.clear()
    }
    for (name, ids) in targetsOfDocument {
      let isForLimboOnly = ids.allSatisfy { id in
        guard isActive(id, targets), let data = targets[id] else { return true }
        return data.purpose == .limboResolution
      }
      if isForLimboOnly { event.resolvedLimbo.insert(name) }
    }
    event.targetMismatches = resets
    event.documents = documents.mapValues { document in
      var document = document
      document.readTime = version
      return document
    }
    documents = [:]
    targetsOfDocument = [:]
    targetsWithContents = [:]
    resets = [:]
    return event
  }
}
