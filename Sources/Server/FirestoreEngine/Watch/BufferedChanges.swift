// What waits for a stream whose reader is slower than its targets change.
//
// Invariant: what waits is bounded in bytes. Within the budget it is every change with its documents; beyond it only
// the names of the documents that changed, read again when the reader has caught up; beyond that only that everything
// may have changed.

import FirestoreModel

/// How much one Listen stream may hold.
struct WatchBufferLimits: Sendable {
  /// Changes kept in full: how many, and the bytes of their documents.
  var maximumChanges = EngineLimits.maximumStreamChanges
  var maximumChangeBytes = EngineLimits.maximumStreamChangeBytes
  /// Changes kept as names: how many, and their bytes.
  var maximumNames = EngineLimits.maximumStreamChangedNames
  var maximumNameBytes = EngineLimits.maximumStreamChangedNameBytes
  /// Bytes of answers handed to the output at once, after which no more are added.
  var maximumBatchBytes = EngineLimits.maximumWatchBatchBytes
  /// Bytes of documents read at once to tell what became of names.
  var maximumReadBytes = EngineLimits.maximumPageBytes
}

/// The changes that wait for one stream.
struct BufferedChanges: Sendable {
  /// In how much detail they are kept.
  enum Content: Sendable {
    /// All of them, in order.
    case changes([WatchMatch])
    /// Only which documents changed.
    case names(Set<ResourcePath>)
    /// Too much to tell.
    case reset
  }

  private(set) var content = Content.changes([])
  /// What is held, in bytes.
  private(set) var bytes = 0
  private let limits: WatchBufferLimits

  init(_ limits: WatchBufferLimits) { self.limits = limits }

  var isEmpty: Bool {
    if case .changes(let matches) = content { return matches.isEmpty }
    return false
  }

  /// Adds one commit's changes, and keeps less of all of them where they are too many.
  mutating func add(_ matches: [WatchMatch]) {
    switch content {
    case .changes(var pending):
      content = .changes([])
      for match in matches {
        bytes += BufferedChanges.size(of: match, after: pending.last)
        pending.append(match)
      }
      if bytes <= limits.maximumChangeBytes, pending.count <= limits.maximumChanges {
        content = .changes(pending)
      } else {
        bytes = 0
        degradeToNames(of: pending, and: [])
      }
    case .names(let paths):
      content = .reset
      degradeToNames(of: matches, and: paths)
    case .reset: break
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

  private mutating func degradeToNames(of matches: [WatchMatch], and known: consuming Set<ResourcePath>) {
    var paths = known
    for match in matches {
      let path = match.change.name.path
      if paths.insert(path).inserted { bytes += BufferedChanges.size(of: path) }
      if paths.count > limits.maximumNames || bytes > limits.maximumNameBytes {
        content = .reset
        bytes = 0
        return
      }
    }
    content = .names(paths)
  }

  /// What a hit holds in memory. The hits of one change are neighbours, and share its documents.
  private static func size(of match: WatchMatch, after previous: WatchMatch?) -> Int {
    let isShared = previous.map {
      $0.change.after === match.change.after && $0.change.before === match.change.before
    }
    if isShared == true { return matchBytes }
    return matchBytes + (match.change.before?.encoded.count ?? 0) + (match.change.after?.encoded.count ?? 0)
  }

  private static func size(of path: ResourcePath) -> Int {
    path.segments.reduce(pathBytes) { $0 + $1.utf8.count + MemoryLayout<String>.stride }
  }

  /// About what a hit and a path take beside what they refer to.
  private static let matchBytes = MemoryLayout<WatchMatch>.stride
  private static let pathBytes = 64
}
