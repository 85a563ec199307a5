// A value that is too large for memory on its way in: JSON becomes rows of a generation of its own while it arrives, and
// one small commit puts them into the place of what was there.
//
// Invariants: what is held is a piece of the text and its rows, and those of the few commits under way; nobody sees anything before the end, nor ever if there is
// none; whoever listens is told then, as of any other write.

import OrderedStore
public import RealtimeModel

/// A value that is being written while it arrives. Pieces are added one after the other.
public actor RealtimeImport {
  private let path: Path
  private let caller: Caller
  private let database: RealtimeDatabase
  private let generation: StagedGeneration
  private let mostBytes: Int
  private var reader: NodeStreamReader
  private var tree = ImportedTree.Summary()
  private var bytes = 0
  private var isOver = false

  /// The most values in one import that the server computes: they are written by the one commit at its end.
  static let mostDeferred = 10_000

  init(
    _ path: Path, _ caller: Caller, _ database: RealtimeDatabase, _ generation: StagedGeneration,
    limits: RealtimeLimits, mostBytes: Int
  ) {
    self.path = path
    self.caller = caller
    self.database = database
    self.generation = generation
    self.mostBytes = mostBytes
    reader = NodeStreamReader(limits: limits, at: path)
  }

  /// How many values have come.
  public var values: Int { tree.values }

  /// The bytes of the text that are kept until what they begin has come whole.
  public var pendingBytes: Int { reader.pendingBytes }

  /// Adds the next piece of the JSON text; returns once there is room for more: all rows but those of the last few commits
  /// are on disk.
  /// - Throws: ``RealtimeModel/RealtimeError`` for what cannot be stored; nothing is written then, nor by later calls.
  public func add(_ piece: [UInt8]) async throws(RealtimeError) {
    bytes += piece.count
    guard bytes <= mostBytes else { throw fail(.writeTooBig) }
    try await read { (reader, tell) throws(RealtimeError) in
      try piece.withUnsafeBytes { raw in
        Result { () throws(RealtimeError) in try reader.read(raw, tell) }
      }.get()
    }
  }

  /// Ends the text and puts the value into its place. Returns once that is durable and listeners have been told.
  /// - Throws: ``RealtimeModel/RealtimeError`` if the text is not whole, or the write is refused.
  public func finish() async throws(RealtimeError) {
    try await read { (reader, tell) throws(RealtimeError) in try reader.finish(tell) }
    isOver = true
    do {
      try await generation.settle()
      if tree.hasRepeats {
        tree = try await generation.read(as: RowKeys.row(of: path)) { [tree, path] view in
          try tree.withoutRepeats(in: view, at: path)
        }
      }
    } catch { throw RealtimeError(storeError: error) }
    _ = try await database.call(.place(path, ImportedTree(generation, tree)), as: caller)
  }

  /// Reads some of the text, and writes its rows.
  private func read(
    _ read: (inout NodeStreamReader, (NodeStreamReader.Event) -> Void) throws(RealtimeError) -> Void
  ) async throws(RealtimeError) {
    guard !isOver else { throw RealtimeError(.failure, "the import has ended") }
    // One piece after the other, also if callers do not wait.
    isOver = true
    var steps: [StagedStep] = []
    var summary = tree
    do {
      try read(&reader) { summary.take($0, &steps) }
      guard summary.deferred.count + summary.unsure.count <= RealtimeImport.mostDeferred else {
        throw RealtimeError(
          .failure, "an import may hold \(RealtimeImport.mostDeferred) values that the server computes")
      }
      tree = summary
      try await generation.carryOut(steps)
    } catch { throw RealtimeError(storeError: error) }
    isOver = false
  }

  private func fail(_ error: RealtimeError) -> RealtimeError {
    isOver = true
    return error
  }
}

/// A value whose rows lie in a generation, to be put into its place.
struct ImportedTree: Sendable {
  /// What is known of it.
  struct Summary: Sendable {
    /// An estimate of its JSON, in bytes.
    var size = 0
    var values = 0
    var isEmpty: Bool { values == 0 }
    /// Values that the server computes, and where.
    var deferred: [(path: [ChildKey], value: Node)] = []
    /// Priorities that the server computes, of objects that may hold nothing.
    fileprivate var unsure: [(path: [ChildKey], value: Node)] = []
    /// Whether anything came again, so that less may be left than has come.
    fileprivate var hasRepeats = false

    /// Takes note of what the text says, and of what is to be done for it.
    mutating func take(_ event: NodeStreamReader.Event, _ steps: inout [StagedStep]) {
      switch event {
      case .row(let keys, let node):
        values += 1
        size += node.estimatedSize + (keys.last?.text.utf8.count ?? 0) + 4
        if node.containsDeferred { return deferred.append((keys, node)) }
        steps.append(.add(StagedRow(path: ImportedTree.row(keys), value: NodeEncoder.encode(node))))
      case .again(let keys):
        hasRepeats = true
        deferred.removeAll { $0.path.starts(with: keys) }
        unsure.removeAll { $0.path.starts(with: keys) }
        steps.append(.remove(ImportedTree.row(keys)))
      case .priority(let keys, let node):
        let path = keys + [.priority]
        // What the server computes is no row yet. Of what stands in an object that ends here some came last.
        if deferred.last?.path.starts(with: keys) == true { return take(.row(path, node), &steps) }
        if node.containsDeferred { return unsure.append((path, node)) }
        let row = StagedRow(path: ImportedTree.row(path), value: NodeEncoder.encode(node))
        steps.append(.addPriority(row, of: ImportedTree.row(keys)))
      }
    }

    /// What is left of it, by the rows that are.
    fileprivate func withoutRepeats(in view: any ReadView, at path: Path) throws -> Summary {
      func holds(_ keys: ArraySlice<ChildKey>) throws -> Bool {
        if deferred.contains(where: { $0.path.starts(with: keys) }) { return true }
        var holds = false
        let row = RowKeys.row(of: path.appending(Path(keys: Array(keys))))
        try view.scan(KeyRange(prefix: row), reverse: false) { _, _, _ in
          holds = true
          return false
        }
        return holds
      }
      var left = self
      left.deferred += try unsure.filter { try holds($0.path.dropLast()) }
      if try !holds([]) { left.values = 0 }
      return left
    }
  }

  let generation: StagedGeneration
  let summary: Summary
  /// What it holds where somebody listens, as far as it was read beforehand.
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
  /// Begins to write a value that arrives piece by piece. For callers whom nothing is forbidden: rules could not look at
  /// a value that is never whole in memory.
  ///
  /// - Parameter mostBytes: the most bytes that its text may have.
  /// - Throws: ``RealtimeModel/RealtimeError`` with status `permission_denied` for all others.
  public func beginImport(
    at path: Path, mostBytes: Int, as caller: Caller
  ) async throws(RealtimeError) -> RealtimeImport {
    guard allowsEverything(caller) else { throw .permissionDenied }
    guard !path.isPriority else { throw .invalidPath }
    do {
      let generation = try await StagedGeneration.begin(in: try await runner.create(), cleaner)
      return RealtimeImport(path, caller, self, generation, limits: limits, mostBytes: mostBytes)
    } catch { throw RealtimeError(storeError: error) }
  }
}
