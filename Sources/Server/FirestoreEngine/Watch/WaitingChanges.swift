// What waits for a stream whose reader is slower than its targets change.
//
// Invariant: what waits is bounded in bytes. Within the budget it is every change with its documents; beyond it only
// the names of the documents that changed, read again when the reader has caught up; beyond that only that everything
// may have changed.

import FirestoreModel

/// How much one Listen stream may hold.
struct WatchBudget: Sendable {
  /// Changes kept in full: how many, and the bytes of their documents.
  var changes = EngineLimits.streamChanges
  var changeBytes = EngineLimits.streamChangeBytes
  /// Changes kept as names: how many, and their bytes.
  var dirtyDocuments = EngineLimits.streamDirtyDocuments
  var dirtyBytes = EngineLimits.streamDirtyBytes
  /// Bytes of answers handed to the output at once, after which no more are added.
  var batchBytes = EngineLimits.watchBatchBytes
  /// Bytes of documents read at once to tell what became of names.
  var pieceBytes = EngineLimits.pageBytes
}

/// The changes that wait for one stream.
struct WaitingChanges: Sendable {
  /// In how much detail they are kept.
  enum Content: Sendable {
    /// All of them, in order.
    case changes([WatchHit])
    /// Only which documents changed.
    case dirty(Set<ResourcePath>)
    /// Too much to tell.
    case everything
  }

  private(set) var content = Content.changes([])
  /// What is held, in bytes.
  private(set) var bytes = 0
  private let budget: WatchBudget

  init(_ budget: WatchBudget) { self.budget = budget }

  var isEmpty: Bool {
    if case .changes(let hits) = content { return hits.isEmpty }
    return false
  }

  /// Adds one commit's changes, and keeps less of all of them where they are too many.
  mutating func add(_ hits: [WatchHit]) {
    switch content {
    case .changes(var waiting):
      content = .changes([])
      for hit in hits {
        bytes += WaitingChanges.size(of: hit, after: waiting.last)
        waiting.append(hit)
      }
      if bytes <= budget.changeBytes, waiting.count <= budget.changes {
        content = .changes(waiting)
      } else {
        bytes = 0
        keepNames(of: waiting, and: [])
      }
    case .dirty(let paths):
      content = .everything
      keepNames(of: hits, and: paths)
    case .everything: break
    }
  }

  /// Hands over what waits.
  mutating func take() -> Content {
    defer {
      content = .changes([])
      bytes = 0
    }
    return content
  }

  private mutating func keepNames(of hits: [WatchHit], and known: consuming Set<ResourcePath>) {
    var paths = known
    for hit in hits {
      let path = hit.change.name.path
      if paths.insert(path).inserted { bytes += WaitingChanges.size(of: path) }
      if paths.count > budget.dirtyDocuments || bytes > budget.dirtyBytes {
        content = .everything
        bytes = 0
        return
      }
    }
    content = .dirty(paths)
  }

  /// What a hit holds in memory. The hits of one change are neighbours, and share its documents.
  private static func size(of hit: WatchHit, after previous: WatchHit?) -> Int {
    let isShared = previous.map {
      $0.change.after === hit.change.after && $0.change.before === hit.change.before
    }
    if isShared == true { return hitBytes }
    return hitBytes + (hit.change.before?.encoded.count ?? 0) + (hit.change.after?.encoded.count ?? 0)
  }

  private static func size(of path: ResourcePath) -> Int {
    path.segments.reduce(pathBytes) { $0 + $1.utf8.count + MemoryLayout<String>.stride }
  }

  /// About what a hit and a path take beside what they refer to.
  private static let hitBytes = MemoryLayout<WatchHit>.stride
  private static let pathBytes = 64
}
