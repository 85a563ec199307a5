// Handles imports. It installs an imported value, whose rows are durable already, at its location. It
// notifies listeners of the parts that are small enough to be sent.

import Access
import OrderedStore
import RealtimeModel

/// Executes imports in a batch.
struct ImportHandler: BatchHandler {
  let batch: BatchExecution

  /// Installs an imported value at its location.
  func install(_ imported: ImportedTree, at path: Path, for operation: RealtimeOperation) throws {
    guard try batch.policy().policy.allowsEverything(operation.caller) else {
      throw RealtimeError.permissionDenied
    }
    var request = try WriteRequest(
      .update(path, imported.summary.deferred.map { (Path(keys: $0.path), $0.value) }),
      limits: limits, bytes: limits.socketWriteBytes, allowsEmptyPaths: true)
    if let failure = try request.resolve(in: tree, now: now) { throw failure }
    try batch.authorization.prepare(for: [(path: path, value: .empty)])
    if imported.summary.isEmpty {
      return try batch.writes.apply([(path: path, value: .empty)])
    }
    if let failure = imported.listenedValues.failure { throw failure }
    let audience = executor.openListens.audience(of: path)
    var locations = Set(audience.below.map(\.name.path)).sorted()
    if !audience.above.isEmpty, imported.summary.size <= limits.responseBytes {
      locations.insert(path, at: 0)
    }
    var listenedValues = imported.listenedValues
    if !listenedValues.containsAll(locations), batch.mayDefer,
      listenedValues.readCount < LocationRead.maximumAttempts
    {
      throw Deferral.importedValues(ImportedValueRead(imported: imported, path: path, locations: locations))
    }
    // Every step that may reject the import comes before the first write, so a rejected import changes
    // nothing.
    let writer = try batch.requireWriter()
    if !listenedValues.containsAll(locations) {
      try listenedValues.read(locations, in: imported.generation.view(writer, at: path), limits)
    }
    let notified = listenedValues.outermost(locations)
    let changes = notified.map { location in
      var value = listenedValues.values[location] ?? .empty
      for change in request.changes {
        if let relative = change.path.relative(to: location) {
          value = value.setting(relative, to: change.value)
        }
      }
      return Change(path: location, value: value, before: nil)
    }
    try batch.markIfEmpty()
    let indexed = try batch.indexes.indexes(around: path)
    try tree.install(imported.generation, at: path, in: writer)
    for (location, value) in request.changes {
      try writer.set(RowKeys.row(of: location), NodeEncoder.encode(value))
    }
    if let indexed { try batch.indexes.update(indexed, at: path, nil, hadChildren: true, in: writer) }
    if notified.first != path {
      for listen in audience.above { batch.listens.revoke(listen.name, of: listen.connection, .tooBig) }
    }
    for listen in audience.below where listenedValues.tooLarge.contains(listen.name.path) {
      batch.listens.revoke(listen.name, of: listen.connection, .tooBig)
    }
    batch.logChanges([(path, nil)])
    try batch.notify(changes, replaced: path)
  }
}

/// The parts of an imported value that clients listen to.
///
/// Invariant: the sum of all parts is within the size limit of an answer. Parts that exceed it are not sent:
/// their listens end with `too_big`, and listens on smaller parts inside them continue.
struct ImportedValues: Sendable {
  private(set) var values: [Path: Node] = [:]
  private(set) var tooLarge: Set<Path> = []
  private var size = 0
  /// Number of reads so far.
  private(set) var readCount = 0
  /// The error of the last read.
  var failure: RealtimeError?

  /// The locations whose values are sent, none inside another.
  ///
  /// - Parameter locations: in ascending order.
  func outermost(_ locations: [Path]) -> [Path] {
    var found: [Path] = []
    for location in locations where !tooLarge.contains(location) && found.last?.contains(location) != true {
      found.append(location)
    }
    return found
  }

  /// Whether the values of all locations are known.
  func containsAll(_ locations: [Path]) -> Bool { outermost(locations).allSatisfy { values[$0] != nil } }

  /// Reads the missing values of locations, which must be in ascending order.
  mutating func read(_ locations: [Path], in view: any ReadView, _ limits: RealtimeLimits) throws {
    readCount += 1
    var last: Path?
    for location in locations where !tooLarge.contains(location) && last?.contains(location) != true {
      if values[location] == nil {
        var limits = limits
        limits.responseBytes -= size
        do {
          let node = try Tree(view: view, cache: nil, limits: limits).node(at: location)
          size += node.estimatedSize
          values[location] = node
        } catch let error as RealtimeError where error == .tooBig {
          tooLarge.insert(location)
          continue
        }
      }
      last = location
    }
  }
}

extension ImportedTree {
  /// The import with the values that it has at the given listened locations, which are at or below its
  /// location.
  func reading(_ locations: [Path], of path: Path, _ limits: RealtimeLimits) async -> ImportedTree {
    var read = self
    do {
      read.listenedValues = try await generation.read(as: RowKeys.row(of: path)) { [listenedValues] view in
        var listenedValues = listenedValues
        try listenedValues.read(locations, in: view, limits)
        return listenedValues
      }
    } catch { read.listenedValues.failure = RealtimeError(storeError: error) }
    return read
  }
}

extension StagedGeneration {
  /// A view with the generation's rows under the keys that they will have at a location.
  fileprivate func view(_ base: any ReadView, at path: Path) -> any ReadView {
    let placed = SubtreeGeneration(prefix: RowKeys.row(of: path), number: number)
    return GenerationView(base: base, generations: SubtreeGenerations(sorted: [placed]))
  }
}
