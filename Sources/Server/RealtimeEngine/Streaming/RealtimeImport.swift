// Imports a value that is too large for memory. It converts the JSON to rows while it arrives, and stages
// them as a generation (rows under a separate prefix). One small commit then replaces the existing value by
// this generation.
//
// Invariants
//   1. Memory holds one chunk with its rows, and the rows of a few commits in flight.
//   2. The value is invisible until the import has finished, and is discarded if the import does not finish.
//   3. When the import has finished, listeners are notified as for any other write.

package import Access
import OrderedStore
package import RealtimeModel

/// An import of a value that arrives in chunks. Chunks have to be added one after the other.
package actor RealtimeImport {
  private let path: Path
  private let caller: Principal
  private let database: RealtimeDatabase
  private let generation: StagedGeneration
  private let maximumBytes: Int
  private var reader: NodeStreamReader
  private var tree = ImportedTree.Summary()
  private var bytes = 0
  private var isOver = false

  /// Maximum number of server values in one import. The number is limited because the final commit writes all
  /// of them.
  static let maximumDeferred = 10_000

  init(
    _ path: Path, _ caller: Principal, _ database: RealtimeDatabase, _ generation: StagedGeneration,
    limits: RealtimeLimits, maximumBytes: Int
  ) {
    self.path = path
    self.caller = caller
    self.database = database
    self.generation = generation
    self.maximumBytes = maximumBytes
    reader = NodeStreamReader(limits: limits, at: path)
  }

  /// The number of values received.
  package var values: Int { tree.values }

  /// The number of bytes that are buffered because their JSON token is incomplete.
  package var pendingBytes: Int { reader.pendingBytes }

  /// Adds the next chunk of JSON. Returns when the next chunk may be added. All rows except those of the last
  /// few commits are then on disk.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError`` for values that cannot be stored. The import has then failed:
  ///   it writes nothing to its location, and later calls fail too.
  package func add(_ chunk: [UInt8]) async throws(RealtimeError) {
    bytes += chunk.count
    guard bytes <= maximumBytes else { throw fail(.writeTooBig) }
    try await read { (reader, emit) throws(RealtimeError) in
      try chunk.withUnsafeBytes { raw in
        Result { () throws(RealtimeError) in try reader.read(raw, emit) }
      }.get()
    }
  }

  /// Ends the JSON and installs the value. Returns after it is durable and listeners are notified.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError`` if the JSON is incomplete, or the write is rejected.
  package func finish() async throws(RealtimeError) {
    try await read { (reader, emit) throws(RealtimeError) in try reader.finish(emit) }
    isOver = true
    do {
      try await generation.waitUntilDurable()
      if tree.hasRepeats {
        tree = try await generation.read(as: RowKeys.row(of: path)) { [tree, path] view in
          try tree.withoutRepeats(in: view, at: path)
        }
      }
    } catch { throw RealtimeError(storeError: error) }
    _ = try await database.call(.installImport(path, ImportedTree(generation, tree)), as: caller)
  }

  /// Parses a chunk and stages its rows.
  private func read(
    _ read: (inout NodeStreamReader, (NodeStreamReader.Event) -> Void) throws(RealtimeError) -> Void
  ) async throws(RealtimeError) {
    guard !isOver else { throw RealtimeError(.failure, "the import has ended") }
    // Calls that arrive before this one returns are rejected.
    isOver = true
    var steps: [StagedStep] = []
    var summary = tree
    do {
      try read(&reader) { summary.apply($0, &steps) }
      guard summary.deferred.count + summary.conditionalPriorities.count <= RealtimeImport.maximumDeferred
      else {
        throw RealtimeError(
          .failure, "an import may hold \(RealtimeImport.maximumDeferred) values that the server computes")
      }
      tree = summary
      try await generation.apply(steps)
    } catch { throw RealtimeError(storeError: error) }
    isOver = false
  }

  private func fail(_ error: RealtimeError) -> RealtimeError {
    isOver = true
    return error
  }
}

/// An imported value with its rows in a generation, ready to be installed.
struct ImportedTree: Sendable {
  /// The properties of an imported value.
  struct Summary: Sendable {
    /// The estimated size in bytes of JSON.
    var size = 0
    var values = 0
    var isEmpty: Bool { values == 0 }
    /// The server values and their paths.
    var deferred: [(path: [ChildKey], value: Node)] = []
    /// Priorities that are server values. They are set only if their objects are not empty in the end.
    fileprivate var conditionalPriorities: [(path: [ChildKey], value: Node)] = []
    /// Whether an object repeated a key. The last value replaces earlier ones, so fewer values may remain
    /// than were counted.
    fileprivate var hasRepeats = false

    /// Records a parser event, and appends the staging steps that it requires.
    mutating func apply(_ event: NodeStreamReader.Event, _ steps: inout [StagedStep]) {
      switch event {
      case .row(let keys, let node):
        values += 1
        size += node.estimatedSize + (keys.last?.text.utf8.count ?? 0) + 4
        if node.containsDeferred { return deferred.append((keys, node)) }
        steps.append(.add(StagedRow(path: ImportedTree.row(keys), value: NodeEncoder.encode(node))))
      case .repeated(let keys):
        hasRepeats = true
        deferred.removeAll { $0.path.starts(with: keys) }
        conditionalPriorities.removeAll { $0.path.starts(with: keys) }
        steps.append(.remove(ImportedTree.row(keys)))
      case .priority(let keys, let node):
        let path = keys + [.priority]
        // A server value has no row yet. If the last recorded server value is within the object that ends here, the
        // object is not empty. Its priority then needs no check for rows.
        if deferred.last?.path.starts(with: keys) == true { return apply(.row(path, node), &steps) }
        if node.containsDeferred { return conditionalPriorities.append((path, node)) }
        let row = StagedRow(path: ImportedTree.row(path), value: NodeEncoder.encode(node))
        steps.append(.addPriority(row, of: ImportedTree.row(keys)))
      }
    }

    /// The properties without the effect of repeated keys, determined from the remaining rows.
    fileprivate func withoutRepeats(in view: any ReadView, at path: Path) throws -> Summary {
      func hasValue(_ keys: ArraySlice<ChildKey>) throws -> Bool {
        if deferred.contains(where: { $0.path.starts(with: keys) }) { return true }
        var hasValue = false
        let row = RowKeys.row(of: path.appending(Path(keys: Array(keys))))
        try view.scan(KeyRange(prefix: row), reverse: false) { _, _, _ in
          hasValue = true
          return false
        }
        return hasValue
      }
      var remaining = self
      remaining.deferred += try conditionalPriorities.filter { try hasValue($0.path.dropLast()) }
      if try !hasValue([]) { remaining.values = 0 }
      return remaining
    }
  }

  let generation: StagedGeneration
  let summary: Summary
  /// The values at listened locations that were read in advance.
  var listenedValues = ImportedValues()

  init(_ generation: StagedGeneration, _ summary: Summary) {
    self.generation = generation
    self.summary = summary
  }

  fileprivate static func row(_ keys: [ChildKey]) -> [UInt8] {
    var bytes: [UInt8] = []
    RowKeys.append(keys[...], to: &bytes)
    return bytes
  }
}

extension RealtimeDatabase {
  /// Starts the import of a value that arrives in chunks. Only callers with full access may import, because
  /// rules cannot be evaluated on a value that is never complete in memory.
  ///
  /// - Parameter maximumBytes: the maximum bytes of its JSON.
  /// - Throws: ``RealtimeModel/RealtimeError`` with status `permission_denied` for all other callers.
  package func beginImport(
    at path: Path, maximumBytes: Int, as caller: Principal
  ) async throws(RealtimeError) -> RealtimeImport {
    guard allowsEverything(caller) else { throw .permissionDenied }
    guard !path.isPriority else { throw .invalidPath }
    do {
      let generation = try await StagedGeneration.begin(in: try await runner.create(), cleaner)
      return RealtimeImport(path, caller, self, generation, limits: limits, maximumBytes: maximumBytes)
    } catch { throw RealtimeError(storeError: error) }
  }
}
