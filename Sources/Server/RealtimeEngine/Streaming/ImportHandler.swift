// An imported value in the sequencer: put into its place, and told to those who listen, as far as it can be.

import OrderedStore
import RealtimeModel

extension BatchExecution {
  /// Puts an imported value into its place.
  mutating func place(_ imported: ImportedTree, at path: Path, for operation: RealtimeOperation) throws {
    guard executor.policy.allowsEverything(operation.caller) else { throw RealtimeError.permissionDenied }
    var request = try WriteRequest(
      .update(path, imported.summary.deferred.map { (Path(keys: $0.path), $0.value) }),
      limits: executor.limits, bytes: executor.limits.socketWriteBytes, mayNameItself: true)
    try request.resolve(in: tree, now: now)
    if imported.summary.isEmpty {
      try apply([(path: path, value: .empty)])
      return steps.append(.answer(operation.origin, .written(.empty)))
    }
    if let failure = imported.known.failure { throw failure }
    let audience = executor.audience(of: path)
    var places = Set(audience.below.map(\.name.path)).sorted()
    if !audience.above.isEmpty, imported.summary.size <= executor.limits.responseBytes {
      places.insert(path, at: 0)
    }
    var known = imported.known
    if !known.has(places), mayDefer, known.reads < LargeReading.mostAttempts {
      throw PutOff(reason: .values(imported, at: path, places))
    }
    // Everything that may fail comes before the first row: an import that is refused leaves nothing.
    let writer = try requireWriter()
    if !known.has(places) {
      try known.read(places, in: imported.generation.view(writer, at: path), executor.limits)
    }
    let told = known.outermost(places)
    let changes = told.map { place in
      var value = known.values[place] ?? .empty
      for change in request.changes {
        if let relative = change.path.relative(to: place) {
          value = value.setting(relative, to: change.value)
        }
      }
      return Change(path: place, value: value, before: nil)
    }
    try markIfEmpty()
    let indexed = try indexes(around: path)
    try tree.place(imported.generation, at: path, in: writer)
    for (place, value) in request.changes {
      try writer.set(RowKeys.row(of: place), NodeEncoder.encode(value))
    }
    if let indexed { try keepIndexes(indexed, at: path, nil, hadChildren: true, in: writer) }
    if told.first != path {
      for (connection, name) in audience.above { revoke(connection, name, .tooBig) }
    }
    for (connection, name) in audience.below where known.tooLarge.contains(name.path) {
      revoke(connection, name, .tooBig)
    }
    logReplaced(path)
    if !changes.isEmpty { try tell(changes) }
    steps.append(.answer(operation.origin, .written(.empty)))
  }
}

/// What an imported value holds at locations that somebody listens to.
///
/// Invariant: all of it together is no more than one answer may be. What goes beyond that is too large to be told, and
/// those who listen to it are told so; who listens to a part of it is told that part.
struct ImportedValues: Sendable {
  private(set) var values: [Path: Node] = [:]
  private(set) var tooLarge: Set<Path> = []
  private var size = 0
  /// How often it was read beside the sequencer.
  private(set) var reads = 0
  /// Why it could not be read.
  var failure: RealtimeError?

  /// The locations that are told of some, none inside another.
  ///
  /// - Parameter places: in ascending order.
  func outermost(_ places: [Path]) -> [Path] {
    var found: [Path] = []
    for place in places where !tooLarge.contains(place) && found.last?.contains(place) != true {
      found.append(place)
    }
    return found
  }

  /// Whether nothing has to be read to tell those who listen at some locations.
  func has(_ places: [Path]) -> Bool { outermost(places).allSatisfy { values[$0] != nil } }

  /// Reads what is missing of some locations, in ascending order.
  mutating func read(_ places: [Path], in view: any ReadView, _ limits: RealtimeLimits) throws {
    reads += 1
    var last: Path?
    for place in places where !tooLarge.contains(place) && last?.contains(place) != true {
      if values[place] == nil {
        var limits = limits
        limits.responseBytes -= size
        do {
          let node = try Tree(view: view, cache: nil, limits: limits).node(at: place)
          size += node.estimatedSize
          values[place] = node
        } catch let error as RealtimeError where error == .tooBig {
          tooLarge.insert(place)
          continue
        }
      }
      last = place
    }
  }
}

extension ImportedTree {
  /// With what it holds where somebody listens, at and below the location that it is for.
  func reading(_ places: [Path], of path: Path, _ limits: RealtimeLimits) async -> ImportedTree {
    var read = self
    do {
      read.known = try await generation.read(as: RowKeys.row(of: path)) { [known] view in
        var known = known
        try known.read(places, in: view, limits)
        return known
      }
    } catch { read.known.failure = RealtimeError(storeError: error) }
    return read
  }
}

extension StagedGeneration {
  /// Its rows under the keys that they will have at a location.
  fileprivate func view(_ base: any ReadView, at path: Path) -> any ReadView {
    let placed = SubtreeGeneration(prefix: RowKeys.row(of: path), number: number)
    return GenerationView(base: base, generations: SubtreeGenerations(sorted: [placed]))
  }
}
