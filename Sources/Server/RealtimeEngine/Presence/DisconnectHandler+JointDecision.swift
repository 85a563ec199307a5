// Decides which onDisconnect operations of an ended session are performed.
//
// The access policy decides each operation separately. Then it decides all permitted operations together, as one write.
// Decision 0030 gives the reasons and the bound of the work.

import Access
import RealtimeModel

extension DisconnectHandler {
  /// Maximum bytes of values that the policy decides again after it has denied the operations of a session together.
  static let maximumJointBytes = 16 << 20

  /// The values of the operations that are still permitted, with their server values resolved.
  func permittedValues(of registered: DisconnectRows) throws -> [(path: Path, value: Node)] {
    var permitted: [[(path: Path, value: Node)]] = []
    for operation in registered.operations {
      do {
        let request = try WriteRequest(
          .update(.root, operation.map { ($0.path, $0.value) }), limits: limits,
          bytes: limits.restWriteBytes, allowsEmptyPaths: true)
        permitted.append(
          try batch.writes.authorized(request, registered.caller) { .onDisconnect($0) }.changes)
      } catch is RealtimeError {
        // An operation that is denied at the end of the session is dropped: no client waits for an error.
        continue
      }
    }
    let values = permitted.flatMap { $0 }
    guard permitted.count > 1, try !arePermittedTogether(values, registered.caller) else { return values }
    return try permittedInCombination(permitted, registered.caller)
  }

  /// Selects from operations that the policy denies together. Returns the values of all operations except those that
  /// the policy denies in combination with earlier operations.
  ///
  /// Groups of operations are added in the order of registration. Their size doubles until a group is denied. The
  /// longest permitted part of this group is then found by halving, and the operation after that part is dropped.
  /// Operations that exceed the bound of the work are dropped, too, and reported.
  private func permittedInCombination(
    _ operations: [[(path: Path, value: Node)]], _ caller: Principal
  ) throws -> [(path: Path, value: Node)] {
    var kept: [(path: Path, value: Node)] = []
    var (keptBytes, work) = (0, 0)
    var next = 0
    // Adds the operations before an index if they are permitted. Returns nil if deciding them exceeds the bound of
    // the work.
    func add(before end: Int) throws -> Bool? {
      let values = operations[next..<end].flatMap { $0 }
      let bytes = values.reduce(0) { $0 + 64 + $1.value.estimatedSize }
      work += keptBytes + bytes
      if work > Self.maximumJointBytes { return nil }
      guard try arePermittedTogether(kept + values, caller) else { return false }
      kept += values
      keptBytes += bytes
      next = end
      return true
    }
    var size = 1
    adding: while next < operations.count {
      var end = min(next + size, operations.count)
      guard let isAdded = try add(before: end) else { break }
      size *= 2
      if isAdded { continue }
      // The policy denies the operations before `end` in combination with those that were added so far.
      while end - next > 1 {
        let middle = (next + end) / 2
        guard let isPartAdded = try add(before: middle) else { break adding }
        if !isPartAdded { end = middle }
      }
      next += 1
      size = 1
    }
    if next < operations.count { executor.events.operationsDropped(operations.count - next) }
    return kept
  }

  private func arePermittedTogether(
    _ values: [(path: Path, value: Node)], _ caller: Principal
  ) throws -> Bool {
    if try batch.authorization.allowsEverything(caller) { return true }
    let changes = FoldedChanges(values).changes
    return try batch.authorization.canWrite(.onDisconnect(changes.map(\.path)), changes, caller)
  }
}
