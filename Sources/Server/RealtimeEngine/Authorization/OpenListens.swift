// Indexes the open listens of a database by path, together with the facts that the decisions about them depend on. So
// a write visits only the listens that it matches and the decisions that it may change.
//
// A listen is decided if the policy in force has allowed it on the current state. A new policy makes all listens
// undecided: it starts a new round, which takes constant time. The listens are decided again in steps, and a write
// first decides the listens that it matches. So an undecided listen receives nothing, and a new policy does not delay
// writes.
//
// Invariants
//   1. Each fact of a decided listen still has the answer that the decision read.
//   2. `undecidedCount` is the number of undecided listens in the index.

import RealtimeModel

/// The open listens of one database.
///
/// `@unchecked Sendable`: only batches, which execute one at a time, and the batch loop between them access it.
final class OpenListens: @unchecked Sendable {
  /// The version of the policy that decides the listens of the current round.
  var policyVersion = BatchExecution.PolicyVersion()
  private let root = ListenIndexLocation()
  private var all: [OpenListen] = []
  private var round = 0
  private(set) var undecidedCount = 0
  private var timeDependentCount = 0
  /// Number of facts in the index.
  private var factCount = 0
  /// The listens before this position in `all` may be undecided since the last round began.
  private var undecidedEnd = 0
  /// Listens that became undecided in the current round.
  private var invalidated: [OpenListen] = []

  /// Whether a write may have to decide listens: some are undecided, or a decision depends on stored data or the time.
  var needsDecisions: Bool { undecidedCount > 0 || factCount > 0 || timeDependentCount > 0 }

  /// Number of open listens.
  var count: Int { all.count }

  // MARK: Listens

  /// Adds a listen.
  ///
  /// - Parameter permission: what its permission depends on; nil if it is undecided.
  func add(_ listen: OpenListen, _ permission: ListenPermission?) {
    precondition(listen.location == nil, "invariant: a listen is added once")
    let location = root.location(at: listen.name.path)
    listen.location = location
    listen.positionAtLocation = location.listens.count
    location.listens.append(listen)
    listen.position = all.count
    all.append(listen)
    listen.decision = OpenListen.Decision()
    undecidedCount += 1
    if let permission { permit(listen, permission) } else { invalidated.append(listen) }
  }

  /// Adds a listen, and records how to undo it.
  func add(_ listen: OpenListen, _ permission: ListenPermission?, _ journal: SessionJournal) {
    add(listen, permission)
    journal.record { self.remove(listen) }
  }

  /// Removes a listen, and records how to undo it.
  func remove(_ listen: OpenListen, _ journal: SessionJournal) {
    remove(listen)
    journal.record { self.add(listen, nil) }
  }

  /// Removes a listen.
  func remove(_ listen: OpenListen) {
    guard let location = listen.location else { return }
    forgetDecision(listen)
    precondition(
      undecidedCount > 0 && all[listen.position] === listen
        && location.listens[listen.positionAtLocation] === listen,
      "invariant: an open listen is at its positions in the index")
    undecidedCount -= 1
    let last = location.listens.count - 1
    location.listens.swapAt(listen.positionAtLocation, last)
    location.listens[listen.positionAtLocation].positionAtLocation = listen.positionAtLocation
    location.listens.removeLast()
    all.swapAt(listen.position, all.count - 1)
    all[listen.position].position = listen.position
    all.removeLast()
    undecidedEnd = min(undecidedEnd, all.count)
    listen.location = nil
    location.removeIfEmpty()
  }

  // MARK: Decisions

  /// Whether a listen has to be decided before it receives anything.
  func isUndecided(_ listen: OpenListen) -> Bool { listen.decision.round != round }

  /// Records that a listen is allowed.
  func permit(_ listen: OpenListen, _ permission: ListenPermission) {
    precondition(listen.location != nil, "invariant: only open listens are decided")
    forgetDecision(listen)
    undecidedCount -= 1
    listen.decision.round = round
    listen.decision.dependsOnTime = permission.dependsOnTime
    if permission.dependsOnTime { timeDependentCount += 1 }
    for observation in permission.observations { track(observation, for: listen) }
  }

  private func track(_ observation: TreeObservation, for listen: OpenListen) {
    let location = root.location(at: observation.path)
    let fact: TrackedFact
    var outdated: [OpenListen] = []
    if let known = location.facts[observation.fact] {
      fact = known
      // After a failed commit the known answer may come from the state that was rolled back.
      if known.answer != observation.answer { outdated = Array(known.listens.values) }
      fact.answer = observation.answer
    } else {
      fact = TrackedFact(observation.fact, at: location, observation.answer)
      location.facts[observation.fact] = fact
      factCount += 1
    }
    if fact.listens.updateValue(listen, forKey: ObjectIdentifier(listen)) == nil {
      listen.decision.facts.append(fact)
    }
    for other in outdated where other !== listen { invalidate(other) }
  }

  /// Makes a listen undecided.
  func invalidate(_ listen: OpenListen) {
    guard listen.location != nil, !isUndecided(listen) else { return }
    forgetDecision(listen)
    invalidated.append(listen)
  }

  /// Makes all listens undecided.
  func invalidateAll() {
    round += 1
    undecidedCount = all.count
    undecidedEnd = all.count
    invalidated = []
  }

  /// Makes a listen undecided, and releases the facts of its decision.
  private func forgetDecision(_ listen: OpenListen) {
    if !isUndecided(listen) { undecidedCount += 1 }
    if listen.decision.dependsOnTime { timeDependentCount -= 1 }
    for fact in listen.decision.facts {
      fact.listens[ObjectIdentifier(listen)] = nil
      guard fact.listens.isEmpty else { continue }
      fact.location.facts[fact.fact] = nil
      factCount -= 1
      fact.location.removeIfEmpty()
    }
    listen.decision = OpenListen.Decision()
  }

  /// An undecided listen; nil if there is none.
  func nextUndecided() -> OpenListen? {
    while let listen = invalidated.last {
      if listen.location != nil, isUndecided(listen) { return listen }
      invalidated.removeLast()
    }
    while undecidedEnd > 0 {
      if isUndecided(all[undecidedEnd - 1]) { return all[undecidedEnd - 1] }
      undecidedEnd -= 1
    }
    precondition(undecidedCount == 0, "invariant: undecided listens are counted")
    return nil
  }

  // MARK: Writes

  /// A location that a write has changed.
  struct Change {
    let path: Path
    /// The new value; nil if it is not in memory.
    let value: Node?
  }

  /// Compares the facts that a write may have changed with their new answers. Listens whose decisions read a
  /// different answer become undecided.
  ///
  /// - Parameters:
  ///   - changes: in ascending order of paths, none inside another.
  ///   - read: returns the new answer of a fact from the tree.
  func updateFacts(changedBy changes: [Change], read: (TreeFact, Path) throws -> TreeFact.Answer) throws {
    guard factCount > 0 else { return }
    var changed: [(TrackedFact, TreeFact.Answer)] = []
    try visit(changes) { location, path, value in
      for fact in location.facts.values {
        let answer = try value.map { $0.answer(to: fact.fact) } ?? read(fact.fact, path)
        if answer != fact.answer { changed.append((fact, answer)) }
      }
    }
    for (fact, answer) in changed {
      fact.answer = answer
      for listen in Array(fact.listens.values) { invalidate(listen) }
    }
  }

  /// The undecided listens at, above and below changes.
  ///
  /// - Parameters:
  ///   - maximum: the number of listens after which the search ends.
  ///   - includesTimeDependent: whether listens whose decisions depend on the time count as undecided.
  func undecided(
    matching paths: [Path], atMost maximum: Int = .max, includesTimeDependent: Bool = false
  ) -> [OpenListen] {
    guard undecidedCount > 0 || (includesTimeDependent && timeDependentCount > 0) else { return [] }
    var found: [OpenListen] = []
    visit(paths.map { Change(path: $0, value: nil) }) { location, _, _ in
      for listen in location.listens where found.count < maximum {
        if isUndecided(listen) || (includesTimeDependent && listen.decision.dependsOnTime) {
          found.append(listen)
        }
      }
    }
    return found
  }

  /// The listens at and above a path, and those below it.
  func audience(of path: Path) -> (above: [OpenListen], below: [OpenListen]) {
    var (above, below): ([OpenListen], [OpenListen]) = ([], [])
    visit([Change(path: path, value: nil)]) { location, visitedPath, _ in
      if visitedPath.count <= path.count { above += location.listens } else { below += location.listens }
    }
    return (above, below)
  }

  private typealias Visit = (ListenIndexLocation, Path, Node?) throws -> Void

  /// Visits the indexed locations at, above and below changes, each once. A location at or below a change is visited with
  /// its new value if that is in memory.
  private func visit(_ changes: [Change], _ body: Visit) rethrows {
    guard !changes.isEmpty else { return }
    try visit(root, .root, changes[...], body)
  }

  private func visit(
    _ location: ListenIndexLocation, _ path: Path, _ changes: ArraySlice<Change>, _ body: Visit
  ) rethrows {
    if changes.count == 1, let change = changes.first, change.path.count == path.count {
      return try visitSubtree(location, path, change.value, body)
    }
    try body(location, path, nil)
    guard !location.children.isEmpty else { return }
    var start = changes.startIndex
    while start < changes.endIndex {
      let key = changes[start].path.keys[path.count]
      var end = start + 1
      while end < changes.endIndex, changes[end].path.keys[path.count] == key { end += 1 }
      if let child = location.children[key] { try visit(child, path.child(key), changes[start..<end], body) }
      start = end
    }
  }

  private func visitSubtree(
    _ location: ListenIndexLocation, _ path: Path, _ value: Node?, _ body: Visit
  ) rethrows {
    // The value written to a priority is not a node with facts, so these are read from the tree.
    try body(location, path, path.isPriority ? nil : value)
    for (key, child) in location.children {
      try visitSubtree(child, path.child(key), key.isPriority ? nil : value?.child(key), body)
    }
  }
}

extension Node {
  /// The answer to a question about this node.
  fileprivate func answer(to fact: TreeFact) -> TreeFact.Answer {
    switch fact {
    case .content: .init(content)
    case .priority: .priority(priority)
    case .childKeys(let key, let limit): .keys(childKeys(after: key, limit: limit))
    }
  }
}
