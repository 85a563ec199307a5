// Buffers changes for one Listen stream whose client reads slowly.
//
// The buffer degrades instead of growing. It holds full changes first. Over that budget it keeps only the
// names of changed documents, which are re-read when the client catches up. If the names exceed their budget
// too, it keeps only a marker that forces a RESET of the stream's targets.
//
// Invariant: `bytes` never exceeds the stream's limits.

import FirestoreModel

/// Memory limits of one Listen stream.
struct WatchBufferLimits: Sendable {
  /// Maximum number of changes held with their documents.
  var maximumChanges = EngineLimits.maximumStreamChanges
  /// Maximum bytes of those documents.
  var maximumChangeBytes = EngineLimits.maximumStreamChangeBytes
  /// Maximum number of names of changed documents.
  var maximumNames = EngineLimits.maximumStreamChangedNames
  /// Maximum bytes of those names.
  var maximumNameBytes = EngineLimits.maximumStreamChangedNameBytes
  /// Bytes of responses after which a batch is handed to the output.
  var maximumBatchBytes = EngineLimits.maximumWatchBatchBytes
  /// Bytes of documents after which one read of named documents stops.
  var maximumReadBytes = EngineLimits.maximumPageBytes
}

/// The buffered changes of one stream.
struct BufferedChanges: Sendable {
  /// The buffered changes, with decreasing detail.
  enum Content: Sendable {
    /// All changes, in order.
    case changes([WatchMatch])
    /// The names of changed documents.
    case names(Set<ResourcePath>)
    /// Any document may have changed.
    case reset
  }

  private(set) var content = Content.changes([])
  /// The buffered bytes.
  private(set) var bytes = 0
  private let limits: WatchBufferLimits

  init(_ limits: WatchBufferLimits) { self.limits = limits }

  var isEmpty: Bool {
    if case .changes(let matches) = content { return matches.isEmpty }
    return false
  }

  /// Adds one commit's changes. Drops details if a limit is exceeded.
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
    precondition(isWithinLimits, "invariant: buffered bytes never exceed the stream's limits")
  }

  /// Drops all details, so that the stream's targets are reset.
  mutating func reset() {
    content = .reset
    bytes = 0
  }

  private var isWithinLimits: Bool {
    switch content {
    case .changes: bytes <= limits.maximumChangeBytes
    case .names: bytes <= limits.maximumNameBytes
    case .reset: bytes == 0
    }
  }

  /// Returns and removes the buffered changes.
  mutating func take() -> Content {
    defer {
      content = .changes([])
      bytes = 0
    }
    return content
  }

  private mutating func degradeToNames(of matches: [WatchMatch], and existing: consuming Set<ResourcePath>) {
    var paths = existing
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

  /// The memory of a match. The matches of one change are adjacent and share its documents.
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

  /// The approximate memory of a match and a path, without the objects they refer to.
  private static let matchBytes = MemoryLayout<WatchMatch>.stride
  private static let pathBytes = 64
}
