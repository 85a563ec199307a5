// A pending transaction: a function of the value at a path, which runs until its result is stored.

import RealtimeModel

/// The decision of an update function.
enum TransactionDecision: Sendable {
  case commit(Node)
  case abort
}

/// How a transaction ended: with an error, or committed or not with the value it saw last.
struct TransactionOutcome: Sendable {
  let error: RealtimeError?
  let isCommitted: Bool
  let node: Node?
}

/// A transaction that is not finished.
final class PendingTransaction {
  enum Status: Equatable {
    /// Ran, and may be sent.
    case run
    case sent
    /// A plain write overrode it in flight. It fails unless the server accepts it.
    case sentNeedsAbort(RealtimeError)
    case needsAbort(RealtimeError)
    case completed
  }

  /// The maximum number of times that one transaction is sent.
  static let maximumTries = 25

  let order: Int
  let path: Path
  let isVisible: Bool
  let update: @Sendable (Node) -> TransactionDecision
  let completion: @Sendable (TransactionOutcome) -> Void
  /// Keeps the location listened to while the transaction lasts.
  let watcher: ObserverRegistration

  var status = Status.run
  var tries = 0
  var writeID: Int
  /// The last input of the function.
  var input: Node
  /// The function's output: with unresolved server values, and with estimates.
  var output: Node
  var estimate: Node

  init(
    order: Int, path: Path, isVisible: Bool, watcher: ObserverRegistration, writeID: Int, input: Node,
    output: Node,
    estimate: Node, update: @escaping @Sendable (Node) -> TransactionDecision,
    completion: @escaping @Sendable (TransactionOutcome) -> Void
  ) {
    self.order = order
    self.path = path
    self.isVisible = isVisible
    self.watcher = watcher
    self.writeID = writeID
    self.input = input
    self.output = output
    self.estimate = estimate
    self.update = update
    self.completion = completion
  }
}

/// The unfinished transactions by path, and the batches in flight.
struct TransactionQueue {
  private(set) var tree = PathTree<[PendingTransaction]>()
  private var batches: [Int: (path: Path, transactions: [PendingTransaction])] = [:]

  mutating func append(_ transaction: PendingTransaction) {
    tree[transaction.path, default: []].append(transaction)
  }

  /// Removes completed transactions.
  mutating func prune() {
    var rest = PathTree<[PendingTransaction]>()
    tree.forEach { path, queue in
      let open = queue.filter { $0.status != .completed }
      if !open.isEmpty { rest[path] = open }
    }
    tree = rest
  }

  /// The transactions at a path and below, in the order of their making.
  func transactions(at path: Path) -> [PendingTransaction] {
    var found: [PendingTransaction] = []
    tree.subtree(path).forEach { _, queue in found += queue }
    return found.sorted { $0.order < $1.order }
  }

  /// The highest path, from the root to this one, at which a transaction waits; the path itself if none does.
  func rootmost(_ path: Path) -> Path {
    tree.rootmostValue(on: path).map { Path(keys: Array(path.keys.dropLast($0.rest.count))) } ?? path
  }

  /// The paths at which transactions wait, without those below another one.
  var rootmostPaths: [Path] {
    var paths: [Path] = []
    tree.forEach { path, _ in
      // Parents precede children, so only the last root that was found can be an ancestor.
      if paths.last?.contains(path) != true { paths.append(path) }
    }
    return paths
  }

  /// The transactions at, above and below a path.
  func affected(by path: Path) -> [PendingTransaction] {
    let above = tree.values(on: path).filter { $0.depth < path.count }.flatMap(\.value)
    return (above + transactions(at: path)).sorted { $0.order < $1.order }
  }

  mutating func markSent(_ id: Int, at path: Path, _ transactions: [PendingTransaction]) {
    batches[id] = (path, transactions)
  }

  /// Discards the batches in flight, whose responses will not arrive.
  mutating func forgetBatches() { batches = [:] }

  func isSent(_ id: Int) -> Bool { batches[id] != nil }

  mutating func takeBatch(_ id: Int) -> (path: Path, transactions: [PendingTransaction])? {
    batches.removeValue(forKey: id)
  }
}

extension PathTree {
  subscript(path: Path, default fallback: @autoclosure () -> Value) -> Value {
    get { self[path] ?? fallback() }
    set { self[path] = newValue }
  }
}
