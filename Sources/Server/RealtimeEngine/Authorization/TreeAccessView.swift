// Shows an access policy the tree before and after the write that it decides, without reading a subtree.
//
// The state before the write comes from the cache or from rows. The state after the write is derived from it and from
// the changes. A location at or below a change has the value of the change, which is in memory. A location above
// changes is derived from these changes and from whether anything else below it has a row. Other locations do not
// change.
//
// Invariant: a call costs a few rows for its location. A location above changes additionally costs a few rows per
// change, once for each write. The view keeps the state that it derived, because neither the changes nor the store
// change during a decision.

import Access
import OrderedStore
import RealtimeModel

/// The tree as a policy sees it for one operation.
final class TreeAccessView: TreeView {
  private typealias Change = (path: Path, value: Node)

  private let tree: Tree
  /// The changes in ascending order of paths, none inside another.
  private let changes: [(path: Path, value: Node)]
  /// The changes of values. Changes of priorities are excluded, because they never create or remove a location.
  private let valueChanges: [(path: Path, value: Node)]
  let now: Int64
  /// The kinds of locations above changes, after the write.
  private var derivedContents: [Path: Node.Content] = [:]
  /// The priorities of locations above changes, after the write.
  private var derivedPriorities: [Path: Priority?] = [:]
  /// For locations above changes: the children that have a change at or below them.
  private var derivedChildren: [Path: ChangedChildren] = [:]
  /// The answers that the policy has read so far, for decisions about listens.
  private(set) var observations: [TreeObservation] = []
  private let recordsObservations: Bool
  /// The work that the decision may spend; nil for as much as it needs.
  let work: DecisionWork?
  /// Records the answers for a decision in the background.
  private let answers: RecordedAnswers?

  /// - Parameters:
  ///   - changes: the changes of a write, in ascending order of paths, none inside another; empty for a read.
  ///   - recordsObservations: whether to record what the policy reads.
  ///   - work: the work that the decision may spend; nil for no limit.
  ///   - answers: records the answers for a decision in the background.
  init(
    _ tree: Tree, changes: [(path: Path, value: Node)] = [], now: Int64,
    recordsObservations: Bool = false, work: DecisionWork? = nil, answers: RecordedAnswers? = nil
  ) {
    assert(
      zip(changes, changes.dropFirst()).allSatisfy { $0.path < $1.path && !$0.path.contains($1.path) },
      "invariant: the changes of a write ascend, and none is inside another")
    self.tree = tree
    self.changes = changes
    self.now = now
    self.recordsObservations = recordsObservations
    self.work = work
    self.answers = answers
    valueChanges =
      changes.contains { $0.path.isPriority } ? changes.filter { !$0.path.isPriority } : changes
  }

  // MARK: TreeView

  func content(at path: Path, _ state: TreeState) throws -> Node.Content {
    try spend()
    if state == .after, !changes.isEmpty {
      return try record(.content, path, after: try contentAfter(path)) { .init($0) }
    }
    return try record(.content, path, try tree.content(at: path)) { .init($0) }
  }

  func priority(at path: Path, _ state: TreeState) throws -> Priority? {
    try spend()
    if state == .after, !changes.isEmpty {
      return try record(.priority, path, after: try priorityAfter(path)) { .priority($0) }
    }
    return try record(.priority, path, try tree.priority(at: path)) { .priority($0) }
  }

  func childKeys(at path: Path, after key: ChildKey?, limit: Int, _ state: TreeState) throws -> [ChildKey] {
    guard limit > 0 else { return [] }
    try spend()
    let fact = TreeFact.childKeys(after: key, limit: limit)
    if state == .after, !changes.isEmpty {
      return try record(fact, path, after: try childKeysAfter(path, key, limit)) { .keys($0) }
    }
    return try record(fact, path, try tree.childKeys(at: path, after: key, limit: limit)) { .keys($0) }
  }

  private func record<Value>(
    _ fact: TreeFact, _ path: Path, _ value: Value, _ answer: (Value) -> TreeFact.Answer
  ) throws -> Value {
    if recordsObservations {
      observations.append(TreeObservation(path: path, fact: fact, answer: answer(value)))
    }
    if let answers {
      try answers.record(
        TreeQuestion(path: path, state: .before, fact: fact), answer(value),
        isReplaced: written(at: path) != nil)
    }
    return value
  }

  private func record<Value>(
    _ fact: TreeFact, _ path: Path, after value: Value, _ answer: (Value) -> TreeFact.Answer
  ) throws -> Value {
    // At and below a change, the state after the write is the value of the change.
    if let answers, path.isPriority || written(at: path) == nil {
      try answers.record(
        TreeQuestion(path: path, state: .after, fact: fact), answer(value), isReplaced: false)
    }
    return value
  }

  /// The answer to a question of an earlier decision about the same write.
  func answer(to question: TreeQuestion) throws -> TreeFact.Answer {
    switch question.fact {
    case .content: .init(try content(at: question.path, question.state))
    case .priority: .priority(try priority(at: question.path, question.state))
    case .childKeys(let key, let limit):
      .keys(try childKeys(at: question.path, after: key, limit: limit, question.state))
    }
  }

  /// The cost of reading one location, in steps of an evaluation.
  private static let stepsPerRead = 20

  /// Spends the work of reading locations.
  private func spend(_ count: Int = 1) throws {
    guard let work else { return }
    guard work.steps / Self.stepsPerRead >= count else { throw DecisionInterrupted() }
    work.spend(count * Self.stepsPerRead)
  }

  // MARK: After the write

  private func contentAfter(_ path: Path) throws -> Node.Content {
    if path.isPriority { return try priorityAfter(path.dataPath).map { .leaf($0.leafValue) } ?? .empty }
    if let node = written(at: path) { return node.content }
    if let known = derivedContents[path] { return known }
    let below = dataChanges(below: path)
    if below.isEmpty { return try tree.content(at: path) }
    var after = Node.Content.children
    if below.allSatisfy(\.value.isEmpty) {
      after = try tree.content(at: path)
      if case .children = after, try !hasOtherRows(path, excluding: below) { after = .empty }
    }
    derivedContents[path] = after
    return after
  }

  private func priorityAfter(_ path: Path) throws -> Priority? {
    if let node = written(at: path) { return node.priority }
    let priorityPath = path.child(.priority)
    if let change = change(at: priorityPath) {
      if case .empty = try contentAfter(path) { return nil }
      return try change.value.leafValue.map { try Priority($0) }
    }
    if let known = derivedPriorities[path] { return known }
    let below = dataChanges(below: path)
    if below.isEmpty { return try tree.priority(at: path) }
    let after: Priority? =
      switch try tree.content(at: path) {
      case .empty: nil
      case .leaf: try tree.priority(at: path)
      case .children: try isEmptied(path, by: below) ? nil : try tree.priority(at: path)
      }
    derivedPriorities.updateValue(after, forKey: path)
    return after
  }

  private func childKeysAfter(_ path: Path, _ key: ChildKey?, _ limit: Int) throws -> [ChildKey] {
    if let node = written(at: path) { return node.childKeys(after: key, limit: limit) }
    let below = dataChanges(below: path)
    if below.isEmpty { return try tree.childKeys(at: path, after: key, limit: limit) }
    guard case .children = try contentAfter(path) else { return [] }
    let changed = changedChildren(path, below)
    let added = Array(changed.added(after: key, limit: limit))
    var kept: [ChildKey] = []
    var next = key
    // The number of added keys up to the last stored key that was read. The result is complete once `kept` and these
    // added keys reach the limit.
    var addedBefore = 0
    // Stored keys that the write removes do not count towards the limit. Each page is twice as large as the page before
    // it, so that a few reads skip many removed keys.
    var size = limit + 1
    while kept.count + addedBefore < limit {
      let page = try tree.childKeys(at: path, after: next, limit: size)
      try spend(page.count)
      for child in page where !changed.isAdded(child) {
        if changed.removed.contains(child), case .empty = try contentAfter(path.child(child)) { continue }
        kept.append(child)
      }
      guard let last = page.last, page.count == size else { break }
      next = last
      size *= 2
      while addedBefore < added.count, added[addedBefore] <= last { addedBefore += 1 }
    }
    return Array((kept + added).sorted().prefix(limit))
  }

  /// The children of a location that have a change at or below them.
  private func changedChildren(
    _ path: Path, _ below: ArraySlice<(path: Path, value: Node)>
  ) -> ChangedChildren {
    if let known = derivedChildren[path] { return known }
    let changed = ChangedChildren(
      below.lazy.map { (child: $0.path.keys[path.count], isRemoval: $0.value.isEmpty) })
    derivedChildren[path] = changed
    return changed
  }

  /// Whether a location with children has no children at some time during the write. If so, it loses its priority.
  ///
  /// The changes take effect in their order. So the location is empty for a moment if the first changes are removals,
  /// and no other child exists before the first value is written.
  private func isEmptied(_ path: Path, by changes: ArraySlice<(path: Path, value: Node)>) throws -> Bool {
    guard let first = changes.firstIndex(where: { !$0.value.isEmpty }) else {
      if case .empty = try contentAfter(path) { return true }
      return false
    }
    guard first > changes.startIndex, try !hasOtherRows(path, excluding: changes) else { return false }
    for change in changes[first...] {
      try spend()
      if case .empty = try tree.content(at: change.path) { continue }
      return false
    }
    return true
  }

  // MARK: Changes

  /// The value that the write gives to a location, if it replaces the location or an ancestor.
  private func written(at path: Path) -> Node? {
    // Only the last change that is not after the path may contain the path, because no change is inside another.
    let next = changes.count == 1 ? 1 : changes.partitionPoint { path < $0.path }
    guard next > 0 else { return nil }
    let change = changes[next - 1]
    // The paths of an operation and of its changes share their memory, so that this comparison takes one step.
    if change.path == path { return change.value }
    guard change.path.contains(path) else { return nil }
    return change.value.descendant(Path(change.path.count, of: path))
  }

  private func change(at path: Path) -> Change? {
    let index = changes.partitionPoint { !($0.path < path) }
    return index < changes.count && changes[index].path == path ? changes[index] : nil
  }

  /// The changes of values strictly below a location.
  private func dataChanges(below path: Path) -> ArraySlice<(path: Path, value: Node)> {
    let start = valueChanges.partitionPoint { path < $0.path }
    guard start < valueChanges.count, path.contains(valueChanges[start].path) else { return [] }
    return valueChanges[start..<valueChanges.partitionPoint(from: start) { !path.contains($0.path) }]
  }

  /// Whether a location has a value that is not at or below one of these changes.
  private func hasOtherRows(
    _ location: Path, excluding changes: ArraySlice<(path: Path, value: Node)>
  ) throws -> Bool {
    try spend(changes.count)
    let children = RowKeys.row(of: location) + [RowKeys.priority + 1]
    let end = KeyRange.successor(ofPrefix: RowKeys.row(of: location))
    return try tree.hasValue(KeyRange(start: children, end: end), outside: changes.lazy.map { $0.path }) {
      try spend()
    }
  }
}

/// The children of one location that the changes of a write are at or below.
private struct ChangedChildren {
  /// The children that have a value after the write because it writes one, in ascending order.
  private let added: [ChildKey]
  /// The other children, from which the write only removes values.
  let removed: Set<ChildKey>

  /// - Parameter changes: The child of each change, in ascending order, and whether the change is a removal.
  init(_ changes: some Sequence<(child: ChildKey, isRemoval: Bool)>) {
    var added: [ChildKey] = []
    var removed: Set<ChildKey> = []
    for change in changes {
      if change.isRemoval {
        if added.last != change.child { removed.insert(change.child) }
      } else if added.last != change.child {
        added.append(change.child)
        removed.remove(change.child)
      }
    }
    self.added = added
    self.removed = removed
  }

  /// Whether the write gives a value to a child.
  func isAdded(_ child: ChildKey) -> Bool {
    let index = added.partitionPoint { !($0 < child) }
    return index < added.count && added[index] == child
  }

  /// The first of the added children after a key.
  func added(after key: ChildKey?, limit: Int) -> ArraySlice<ChildKey> {
    let start = key.map { key in added.partitionPoint { key < $0 } } ?? 0
    return added[start...].prefix(limit)
  }
}

extension Array {
  /// The index of the first element that fulfils a condition which all later elements fulfil too.
  fileprivate func partitionPoint(from start: Int = 0, where isIncluded: (Element) -> Bool) -> Int {
    var (low, high) = (start, count)
    while low < high {
      let middle = (low + high) / 2
      if isIncluded(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension Path {
  /// The path without its first keys.
  fileprivate init(_ count: Int, of path: Path) { self.init(keys: Array(path.keys.dropFirst(count))) }
}
