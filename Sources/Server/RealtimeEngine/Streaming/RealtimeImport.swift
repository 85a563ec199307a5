// Imports a value that is too large for memory: converts JSON to rows of a staged generation while it
// arrives. One small commit then replaces the existing value.
//
// Invariants
//   1. Memory holds one chunk with its rows, and the rows of a few commits in flight.
//   2. The value is invisible until the end of the import, and is discarded if that does not come.
//   3. Listeners are then notified like for any other write.

import OrderedStore
public import RealtimeModel

/// A value that is written while it arrives, in chunks, one after the other.
public actor RealtimeImport {
  private let path: Path
  private let caller: Caller
  private let database: RealtimeDatabase
  private let generation: StagedGeneration
  private let maximumBytes: Int
  private var reader: NodeStreamReader
  private var tree = ImportedTree.Summary()
  private var bytes = 0
  private var isOver = false

  /// Maximum number of server values in one import: the final commit writes them.
  static let maximumDeferred = 10_000

  init(
    _ path: Path, _ caller: Caller, _ database: RealtimeDatabase, _ generation: StagedGeneration,
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
  public var values: Int { tree.values }

  /// The bytes kept because their token is incomplete.
  public var pendingBytes: Int { reader.pendingBytes }

  /// Adds the next chunk of JSON. Returns when more may be added: all rows except those of the last few
  /// commits are on disk.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError`` for values that cannot be stored. Nothing is then written,
  ///   also not by later calls.
  public func add(_ chunk: [UInt8]) async throws(RealtimeError) {
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
  public func finish() async throws(RealtimeError) {
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
    // Rejects concurrent calls until this one returns.
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
    /// Priorities with server values, of objects that may be empty.
    fileprivate var conditionalPriorities: [(path: [ChildKey], value: Node)] = []
    /// Whether a key was repeated, so that fewer values may remain than were counted.
    fileprivate var hasRepeats = false

    /// Records a parser event and appends its steps.
    mutating func apply(_ event: NodeStreamReader.Event, _ steps: inout [StagedStep]) {
      switch event {
      case .row(let keys, let node):
        values += 1
        size += node.estimatedSize + (keys.last?.text.utf8.count ?? 0) + 4
        if node.containsDeferred { return deferred.append((keys, node)) }
        steps.append(.add(StagedRow(path: ImportedTree.row(keys), value: NodeEncoder.encode(node))))
      case .again(let keys):
        hasRepeats = true
        deferred.removeAll { $0.path.starts(with: keys) }
        conditionalPriorities.removeAll { $0.path.starts(with: keys) }
        steps.append(.remove(ImportedTree.row(keys)))
      case .priority(let keys, let node):
        let path = keys + [.priority]
        // A server value is not a row yet. The last recorded one may be within the object that ends here.
        if deferred.last?.path.starts(with: keys) == true { return apply(.row(path, node), &steps) }
        if node.containsDeferred { return conditionalPriorities.append((path, node)) }
        let row = StagedRow(path: ImportedTree.row(path), value: NodeEncoder.encode(node))
        steps.append(.addPriority(row, of: ImportedTree.row(keys)))
      }
    }

    /// The properties after repeated keys were removed, according to the remaining rows.
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
  var known = ImportedValues()

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
  /// Starts writing a value that arrives in chunks. Only for callers with full access: rules cannot be
  /// evaluated on a value that is never complete in memory.
  ///
  /// - Parameter maximumBytes: the maximum bytes of its JSON.
  /// - Throws: ``RealtimeModel/RealtimeError`` with status `permission_denied` for all other callers.
  public func beginImport(
    at path: Path, maximumBytes: Int, as caller: Caller
  ) async throws(RealtimeError) -> RealtimeImport {
    guard allowsEverything(caller) else { throw .permissionDenied }
    guard !path.isPriority else { throw .invalidPath }
    do {
      let generation = try await StagedGeneration.begin(in: try await runner.create(), cleaner)
      return RealtimeImport(path, caller, self, generation, limits: limits, maximumBytes: maximumBytes)
    } catch { throw RealtimeError(storeError: error) }
  }
}
