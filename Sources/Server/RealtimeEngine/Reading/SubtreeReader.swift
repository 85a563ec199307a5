// Reads a subtree in chunks from one pinned state, a version that the store keeps during the read. Between two chunks
// other reads run, and the caller can stop the read.

import Locking
import OrderedStore
import RealtimeModel

/// Reads the rows of a location and assembles its value.
struct SubtreeReader: Sendable {
  let path: Path
  let pinned: any PinnedView
  let limits: RealtimeLimits
  let staging: StagingLimits
  /// The threads that assemble nodes.
  let threads: ThreadPool

  /// Reads the value.
  ///
  /// - Parameter check: called between chunks; its error stops the read.
  /// - Throws: ``RealtimeError/tooBig`` above the size limit of an answer; errors of the store and of
  ///   `check`.
  func read(_ check: @Sendable () throws -> Void) async throws -> Node {
    let generations = try await pinned.read { try GenerationRows.load($0) }
    let assembler = Guarded(NodeAssembler())
    let prefix = RowKeys.row(of: path)
    var next: [UInt8]? = prefix
    while let start = next {
      try check()
      let chunk = try await pinned.read { [staging] base in
        try Chunk(from: start, of: prefix, in: GenerationView(base: base, generations: generations), staging)
      }
      next = chunk.next
      let size = await threads.run {
        assembler.withLock { assembler in
          for (keys, node) in chunk.rows { assembler.add(keys, node) }
          return assembler.estimatedSize
        }
      }
      guard size <= limits.responseBytes else { throw RealtimeError.tooBig }
    }
    try check()
    return await threads.run { assembler.withLock { $0.finish() } }
  }
}

/// Consecutive rows of a location.
private struct Chunk: Sendable {
  var rows: [(keys: [ChildKey], node: Node)] = []
  /// The first key of the next chunk; nil after the last.
  var next: [UInt8]?

  init(
    from start: [UInt8], of prefix: [UInt8], in view: GenerationView, _ staging: StagingLimits
  ) throws {
    var bytes = 0
    try view.scan(
      KeyRange(start: start, end: KeyRange.successor(ofPrefix: prefix)), reverse: false
    ) { key, value, _ in
      precondition(key.starts(with: prefix), "invariant: a scan stays inside its range")
      var decoder = NodeDecoder(value)
      let suffix = UnsafeRawBufferPointer(rebasing: key[prefix.count...])
      rows.append((RowKeys.keys(in: suffix), try decoder.node()))
      bytes += key.count + value.count
      guard rows.count >= staging.chunkRows || bytes >= staging.chunkBytes else { return true }
      next = Array(key) + [0]
      return false
    }
  }
}

extension ThreadPool {
  /// Runs slow work on one of the threads.
  func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
      // The pool is closed only during shutdown. The caller then runs the work itself.
      if !submit({ continuation.resume(returning: work()) }) { continuation.resume(returning: work()) }
    }
  }
}
