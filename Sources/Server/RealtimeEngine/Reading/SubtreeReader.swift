// Reads the rows of a location piece by piece, all of one state, on threads that block nobody: between two pieces other
// reads have their turn, and whoever no longer wants the value stops it.

import Locking
import OrderedStore
import RealtimeModel

/// A location on its way into memory.
struct SubtreeReader: Sendable {
  let path: Path
  let held: any PinnedView
  let limits: RealtimeLimits
  let staging: StagingLimits
  /// Where nodes are put together.
  let threads: ThreadPool

  /// The value.
  ///
  /// - Parameter check: called between pieces; what it throws ends the reading.
  /// - Throws: ``RealtimeError/tooBig`` above the limit of a response; what the store or `check` throw.
  func read(_ check: @Sendable () throws -> Void) async throws -> Node {
    let generations = try await held.read { try GenerationRows.load($0) }
    let assembler = Guarded(NodeAssembler())
    let prefix = RowKeys.row(of: path)
    var next: [UInt8]? = prefix
    while let start = next {
      try check()
      let piece = try await held.read { [staging] base in
        try Piece(from: start, of: prefix, in: GenerationView(base: base, generations: generations), staging)
      }
      next = piece.next
      let size = await threads.run {
        assembler.withLock { assembler in
          for (keys, node) in piece.rows { assembler.add(keys, node) }
          return assembler.estimatedSize
        }
      }
      guard size <= limits.responseBytes else { throw RealtimeError.tooBig }
    }
    try check()
    return await threads.run { assembler.withLock { $0.finish() } }
  }
}

/// Some rows of a location.
private struct Piece: Sendable {
  var rows: [(keys: [ChildKey], node: Node)] = []
  /// Where the next piece begins; nil behind the last.
  var next: [UInt8]?

  init(
    from start: [UInt8], of prefix: [UInt8], in view: GenerationView, _ staging: StagingLimits
  ) throws {
    var bytes = 0
    try view.scan(
      KeyRange(start: start, end: KeyRange.successor(ofPrefix: prefix)), reverse: false
    ) { key, value, _ in
      var decoder = NodeDecoder(value)
      let suffix = UnsafeRawBufferPointer(rebasing: key[prefix.count...])
      rows.append((RowKeys.keys(in: suffix), try decoder.node()))
      bytes += key.count + value.count
      guard rows.count >= staging.pieceRows || bytes >= staging.pieceBytes else { return true }
      next = Array(key) + [0]
      return false
    }
  }
}

extension ThreadPool {
  /// Runs work that takes long on one of the threads.
  func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
      // A pool that is closed has nobody waiting for it but whoever is in its last calls.
      if !submit({ continuation.resume(returning: work()) }) { continuation.resume(returning: work()) }
    }
  }
}
