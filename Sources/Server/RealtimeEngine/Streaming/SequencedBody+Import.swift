// An imported value in the sequencer: put into its place, and told to those who listen, as far as it can be.

import OrderedStore
import RealtimeModel

extension SequencedBody {
  /// Puts an imported value into its place.
  mutating func place(_ imported: ImportedTree, at path: Path, for operation: Operation) throws {
    guard sequencer.policy.allowsEverything(operation.caller) else { throw RealtimeError.permissionDenied }
    var request = try WriteRequest(
      .update(path, imported.summary.deferred.map { (Path(keys: $0.path), $0.value) }),
      limits: sequencer.limits, bytes: sequencer.limits.socketWriteBytes, mayNameItself: true)
    try request.resolve(in: tree, now: now)
    if imported.summary.isEmpty {
      try apply([(path: path, value: .empty)])
      return steps.append(.answer(operation.origin, .written(.empty)))
    }
    let audience = sequencer.audience(of: path)
    let canTellAll = imported.summary.size <= sequencer.limits.responseBytes
    let told = canTellAll && !audience.above.isEmpty ? [path] : audience.below
    let missing = told.filter { imported.values[$0] == nil }
    if !missing.isEmpty, mayHold { throw PutOff(reason: .values(imported, at: path, missing)) }
    let writer = try mustWrite()
    try lookForPriorities()
    let indexed = try indexes(around: path)
    try tree.place(imported.generation, at: path, in: writer)
    for (place, value) in request.changes {
      try writer.set(RowKeys.row(of: place), NodeEncoder.encode(value))
    }
    if let indexed { try keepIndexes(indexed, at: path, nil, hadChildren: true, in: writer) }
    if !canTellAll { revoke(audience.above) }
    var changes: [Change] = []
    for place in told {
      var value = try imported.values[place] ?? tree.node(at: place)
      for change in request.changes {
        if let relative = change.path.relative(to: place) {
          value = value.setting(relative, to: change.value)
        }
      }
      changes.append(Change(path: place, value: value, before: nil))
    }
    logReplaced(path)
    if !changes.isEmpty { steps.append(.write(changes)) }
    steps.append(.answer(operation.origin, .written(.empty)))
  }

  /// Ends listens that can no longer be told what they listen to.
  private mutating func revoke(_ listens: [(connection: ConnectionState, name: ListenName)]) {
    for (connection, name) in listens {
      change(connection, listen: name, to: nil)
      steps.append(.unlisten(connection, name, revoked: .tooBig))
    }
  }
}

extension ImportedTree {
  /// Reads the values at locations at and below the one it is for.
  func values(at places: [Path], of path: Path, limits: RealtimeLimits) async throws -> [Path: Node] {
    try await generation.read(as: RowKeys.row(of: path)) { view in
      let tree = Tree(view: view, cache: nil, limits: limits)
      var values: [Path: Node] = [:]
      for place in places { values[place] = try tree.node(at: place) }
      return values
    }
  }
}
