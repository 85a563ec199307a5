// A Listen client that applies responses as official SDKs do, and checks the protocol.

import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

/// Records the client's state after the responses received so far.
final class WatchClient: WatchOutput {
  struct View: Sendable {
    /// Documents by target.
    var documents: [Int32: [ResourcePath: StoredDocument]] = [:]
    /// The targets that have received ADD, and those that have received CURRENT.
    var added: Set<Int32> = []
    var current: Set<Int32> = []
    var removed: [Int32: FirestoreError?] = [:]
    var removals: [Int32] = []
    var filters: [Int32: (count: Int, names: BloomFilter?)] = [:]
    /// The snapshots: time, and the documents of all targets.
    var snapshots: [(time: Timestamp, documents: [Int32: [ResourcePath: StoredDocument]])] = []
    var token: [UInt8] = []
    var responses: [WatchResponse] = []
    var failure: FirestoreError?
    var violations: [String] = []
    var isBlocked = false
    /// The calls of `send` that have begun.
    var sendCount = 0
    /// The largest number of document bytes in one call of `send` so far.
    var largestBatch = 0
    var resets = 0
  }

  private let state = Guarded(View())

  var view: View { state.withLock { $0 } }

  /// Blocks `send`, as a connection without receive capacity does.
  func block(_ blocked: Bool) { state.withLock { $0.isBlocked = blocked } }

  func send(_ responses: [WatchResponse]) async throws {
    state.withLock { $0.sendCount += 1 }
    while state.withLock({ $0.isBlocked }) { try await Task.sleep(nanoseconds: 1_000_000) }
    var bytes = 0
    for case .documentChange(let document, _, _) in responses { bytes += document.encoded.count }
    state.withLock { [bytes] view in
      view.largestBatch = max(view.largestBatch, bytes)
      for response in responses { view.apply(response) }
    }
  }

  func fail(_ error: FirestoreError) async { state.withLock { $0.failure = error } }

  /// Sets the documents that an earlier stream delivered.
  func setCachedDocuments(_ documents: [Int32: [ResourcePath: StoredDocument]]) {
    state.withLock { $0.documents = documents }
  }

  /// Waits for the first snapshot at or after a time and returns its documents.
  func snapshot(
    at time: Timestamp, _ location: SourceLocation = #_sourceLocation
  ) async throws -> [Int32: [ResourcePath: StoredDocument]] {
    try await eventually("a snapshot at \(time.microseconds)", location) {
      (view.snapshots.last?.time ?? .epoch) >= time
    }
    return view.snapshots.first { $0.time >= time }?.documents ?? [:]
  }
}

extension WatchClient.View {
  mutating func apply(_ response: WatchResponse) {
    responses.append(response)
    switch response {
    case .targetChange(let change): apply(change)
    case .documentChange(let document, let targets, let removedTargets):
      for id in targets {
        if !added.contains(id) { violations.append("a document before ADD of \(id)") }
        if let cached = documents[id]?[document.name.path], cached.updateTime == document.updateTime,
          cached.createTime == document.createTime
        {
          violations.append("\(document.name.path) twice in \(id)")
        }
        documents[id, default: [:]][document.name.path] = document
      }
      for id in removedTargets { documents[id]?[document.name.path] = nil }
    case .documentDelete(let name, _, let removedTargets), .documentRemove(let name, _, let removedTargets):
      for id in removedTargets { documents[id]?[name.path] = nil }
    case .existenceFilter(let id, let count, let names): filters[id] = (count, names)
    }
  }

  private mutating func apply(_ change: WatchTargetChange) {
    switch change.kind {
    case .add:
      for id in change.targetIDs {
        added.insert(id)
        removed[id] = nil
        documents[id] = documents[id] ?? [:]
      }
    case .remove:
      for id in change.targetIDs {
        added.remove(id)
        current.remove(id)
        documents[id] = nil
        removed[id] = .some(change.cause)
        removals.append(id)
      }
    case .reset:
      for id in change.targetIDs {
        if !added.contains(id) { violations.append("RESET before ADD of \(id)") }
        resets += 1
        documents[id] = [:]
        current.remove(id)
      }
    case .current: for id in change.targetIDs { current.insert(id) }
    case .noChange:
      guard change.targetIDs.isEmpty, let time = change.readTime else { return }
      if added != current { violations.append("a global snapshot while a target loads") }
      if change.resumeToken.isEmpty { violations.append("a global snapshot without a token") }
      if let last = snapshots.last?.time, time < last { violations.append("time went back") }
      token = change.resumeToken
      // Until a target is current, its documents may be of an earlier stream's time.
      snapshots.append((time, documents.filter { current.contains($0.key) }))
    }
  }
}
