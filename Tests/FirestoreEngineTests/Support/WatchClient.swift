// A Listen client's view: applies responses as a genuine client does and checks the protocol on the way.

import FirestoreModel
import Locking
import OrderedStore
import Testing

@testable import FirestoreEngine

/// What a client knows after the responses so far.
final class WatchClient: WatchOutput {
  struct View: Sendable {
    /// By target: the documents in it.
    var documents: [Int32: [ResourcePath: StoredDocument]] = [:]
    /// Targets that had their ADD, and those that had their CURRENT.
    var added: Set<Int32> = []
    var current: Set<Int32> = []
    var removed: [Int32: FirestoreError?] = [:]
    var removals: [Int32] = []
    var filters: [Int32: (count: Int, names: BloomFilter?)] = [:]
    /// The global snapshots: time, and all targets' documents at it.
    var snapshots: [(time: Timestamp, documents: [Int32: [ResourcePath: StoredDocument]])] = []
    var token: [UInt8] = []
    var responses: [WatchResponse] = []
    var failure: FirestoreError?
    var violations: [String] = []
    var isBlocked = false
    /// The most bytes of documents that came at once.
    var largestBatch = 0
    var resets = 0
  }

  private let state = Guarded(View())

  var view: View { state.withLock { $0 } }

  /// Keeps `send` from returning, as a connection that takes nothing more.
  func block(_ blocked: Bool) { state.withLock { $0.isBlocked = blocked } }

  func send(_ responses: [WatchResponse]) async throws {
    while state.withLock({ $0.isBlocked }) { try await Task.sleep(nanoseconds: 1_000_000) }
    var bytes = 0
    for case .documentChange(let document, _, _) in responses { bytes += document.encoded.count }
    state.withLock { [bytes] view in
      view.largestBatch = max(view.largestBatch, bytes)
      for response in responses { view.apply(response) }
    }
  }

  func fail(_ error: FirestoreError) async { state.withLock { $0.failure = error } }

  /// Starts from what an earlier stream knew of targets.
  func assume(_ documents: [Int32: [ResourcePath: StoredDocument]]) {
    state.withLock { $0.documents = documents }
  }

  /// Waits for the first global snapshot at or after a time.
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
        if let held = documents[id]?[document.name.path], held.updateTime == document.updateTime,
          held.createTime == document.createTime
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

  private mutating func apply(_ change: TargetChange) {
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
      // What a target held on an earlier stream is of an earlier time until it is current.
      snapshots.append((time, documents.filter { current.contains($0.key) }))
    }
  }
}
