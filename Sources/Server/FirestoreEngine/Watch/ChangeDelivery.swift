// Delivers changes to targets: updates their windows (the visible results of queries with limit or offset), then sends one
// response per document.
//
// Invariant: before anything is sent, the caller has checked every permission that depends on a changed
// document, and all window boundaries are adjusted (see `ResultWindow`). Therefore one response per document
// can serve all targets.

import Access
import FirestoreModel
import OrderedStore

extension WatchWorker {
  /// Thrown when a snapshot has more changes in targets with limit or offset than
  /// `EngineLimits.maximumWindowChanges`.
  struct TooManyWindowChanges: Error {}

  /// Sends changes to targets, which are keyed by their registration numbers. Returns whether a global NO_CHANGE (without
  /// target ids) must follow, at which the client shows the new snapshot.
  ///
  /// NO_CHANGE must also follow if a document matched a target only between the version that the client has and `version`:
  /// a client that wrote the document shows it until a snapshot without it arrives.
  func deliver(
    _ changes: PendingChanges, to targets: inout [Int: ActiveTarget], _ version: Version,
    _ stream: WatchStream
  ) async throws -> Bool {
    let windows = try await windows(after: changes, of: targets, version, stream)
    for (registration, update) in windows { targets[registration]?.window = update.window }
    var crossed = windows.mapValues(\.crossed)
    var needsSnapshot = false
    // The names of changed documents do not show whether a document matched only between these versions.
    if case .names = changes { needsSnapshot = true }
    let pages = stream.makeResultPages()
    var batches = ChangeBatches(changes, for: Array(targets.values), to: version, pages, stream.database)
    while let batch = try await batches.next() {
      var snapshot = SnapshotResponses()
      for entry in batch.entries {
        for effect in entry.effects {
          guard let target = targets[effect.registration] else { continue }
          var wasIn = effect.wasIn
          var isIn = effect.isIn
          if !wasIn, !isIn { needsSnapshot = true }
          if let update = windows[effect.registration] {
            (wasIn, isIn) = update.membership(of: entry.name.path)
            crossed[effect.registration]?[entry.name.path] = nil
          }
          if isIn, let document = entry.after {
            snapshot.add(document, to: target)
          } else if wasIn {
            snapshot.remove(entry.name, now: entry.after, from: target)
          }
        }
      }
      if try await send(snapshot, version, stream) { needsSnapshot = true }
      try await flushPage(stream)
      pages.markAccepted()
    }
    if try await send(crossed: crossed, targets, version, stream) { needsSnapshot = true }
    return needsSnapshot
  }

  /// Computes how the changes move the windows of targets with limit or offset.
  private func windows(
    after changes: PendingChanges, of targets: [Int: ActiveTarget], _ version: Version, _ stream: WatchStream
  ) async throws -> [Int: WindowUpdate] {
    let limited = targets.filter { $0.value.window != nil }
    guard !limited.isEmpty else { return [:] }
    var windows: [Int: WindowUpdate] = [:]
    var count = 0
    var batches = ChangeBatches(
      changes, for: Array(limited.values), to: version, stream.makeResultPages(), stream.database)
    while let batch = try await batches.next() {
      for entry in batch.entries {
        for effect in entry.effects {
          guard let target = limited[effect.registration], let query = target.query,
            let window = target.window
          else { continue }
          try windows[effect.registration, default: WindowUpdate(window)].record(entry, effect, query)
          count += 1
        }
      }
      guard count <= EngineLimits.maximumWindowChanges else { throw TooManyWindowChanges() }
    }
    for registration in windows.keys {
      guard var update = windows[registration], let query = limited[registration]?.query else { continue }
      try await stream.database.adjust(&update, of: query, at: version)
      windows[registration] = update
    }
    return windows
  }

  /// Sends the documents that entered or left a window without having changed themselves.
  private func send(
    crossed: [Int: [ResourcePath: Bool]], _ targets: [Int: ActiveTarget], _ version: Version,
    _ stream: WatchStream
  ) async throws -> Bool {
    var byDocument: [ResourcePath: [(registration: Int, isIn: Bool)]] = [:]
    for (registration, paths) in crossed {
      for (path, isIn) in paths { byDocument[path, default: []].append((registration, isIn)) }
    }
    let database = stream.database
    let names = byDocument.keys.compactMap { DocumentName(database: database.name, path: $0) }.sorted()
    var rest = names[...]
    let pages = stream.makeResultPages()
    while !rest.isEmpty {
      try await pages.reserve()
      let found = try await database.documents(
        rest, at: version, upTo: min(database.options.watchBufferLimits.maximumReadBytes, pages.maximumBytes))
      pages.hold(found.reduce(0) { $0 + ($1?.encoded.count ?? 0) }, count: found.count)
      var snapshot = SnapshotResponses()
      for (name, document) in zip(rest, found) {
        for (registration, isIn) in byDocument[name.path] ?? [] {
          guard let target = targets[registration] else { continue }
          if isIn, let document {
            snapshot.add(document, to: target)
          } else {
            snapshot.remove(name, now: document, from: target)
          }
        }
      }
      rest = rest.dropFirst(found.count)
      _ = try await send(snapshot, version, stream)
      try await flushPage(stream)
      pages.markAccepted()
    }
    return !names.isEmpty
  }

  private func send(
    _ snapshot: consuming SnapshotResponses, _ version: Version, _ stream: WatchStream
  ) async throws -> Bool {
    guard !snapshot.isEmpty else { return false }
    let omitsRemovedContents = !stream.database.policies.current.allowsEverything(stream.caller)
    try await emit(
      try snapshot.responses(at: version.timestamp, omitsRemovedContents: omitsRemovedContents), stream)
    return true
  }
}
