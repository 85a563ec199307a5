// A pending transaction: a function of the value at a path. It runs again until its result is stored or it
// fails.

import RealtimeModel

/// The decision of an update function.
enum TransactionDecision: Sendable {
  case commit(Node)
  case abort
}

/// How a transaction ended: with an error, or committed or aborted with the value that it saw last.
struct TransactionOutcome: Sendable {
  let error: RealtimeError?
  let isCommitted: Bool
  let node: Node?
}

/// A transaction that has not ended.
final class PendingTransaction {
  enum Status: Equatable {
    /// The function has run, and the result may be sent.
    case run
    case sent
    /// A plain write overrode the transaction in flight. It fails unless the server accepts it.
    case sentNeedsAbort(RealtimeError)
    case needsAbort(RealtimeError)
    case completed
  }

  /// The maximum number of times that a transaction is sent.
  static let maximumTries = 25

  let order: Int
  let path: Path
  let isVisible: Bool
  let update: @Sendable (Node) -> TransactionDecision
  let completion: @Sendable (TransactionOutcome) -> Void

  var status = Status.run
  var tries = 0
  var writeID: Int
  /// The last input of the function.
  var input: Node
  /// The function's output with unresolved server values. `estimate` is the same output with estimated server
  /// values.
  var output: Node
  var estimate: Node

  init(
    order: Int, path: Path, isVisible: Bool, writeID: Int, input: Node, output: Node, estimate: Node,
    update: @escaping @Sendable (Node) -> TransactionDecision,
    completion: @escaping @Sendable (TransactionOutcome) -> Void
  ) {
    self.order = order
    self.path = path
    self.isVisible = isVisible
    self.writeID = writeID
    self.input = input
    self.output = output
    self.estimate = estimate
    self.update = update
    self.completion = completion
  }
}

/// The unfinished transactions by path, and the batches in flight.
///
/// The cost of adding or removing a transaction depends on the length of its path, not on the number of other
/// transactions.
struct TransactionQueue {
  private var tree = PathTree<PendingQueue<PendingTransaction>>()
  private var batches: [Int: (path: Path, transactions: [PendingTransaction])] = [:]
  /// The observers that keep listening to locations while transactions on them are pending.
  var watchers: [Path: ObserverRegistration] = [:]

  mutating func append(_ transaction: PendingTransaction) {
    change(transaction.path) { $0.append(transaction.order, transaction) }
  }

  /// Removes a completed transaction.
  mutating func remove(_ transaction: PendingTransaction) {
    change(transaction.path) { _ = $0.remove(transaction.order) }
  }

  private mutating func change(_ path: Path, _ change: (inout PendingQueue<PendingTransaction>) -> Void) {
    tree.update(path) { subtree in
      var queue = subtree.value ?? PendingQueue()
      // Removes the value from the tree first, so that the queue is not copied when it changes.
      subtree.value = nil
      change(&queue)
      subtree.value = queue.isEmpty ? nil : queue
    }
  }

  var isEmpty: Bool { tree.isEmpty }

  /// Whether no transaction is pending at exactly this path.
  func isEmpty(at path: Path) -> Bool { tree[path] == nil }

  /// The transactions at a path and below it, in the order in which they were made.
  func transactions(at path: Path) -> [PendingTransaction] {
    var found: [PendingTransaction] = []
    tree.subtree(path).forEachUnordered { found += $0.values }
    return found.sorted { $0.order < $1.order }
  }

  /// The path nearest to the root, on the way to this path, with a pending transaction. If there is none, the
  /// path itself.
  func rootmost(_ path: Path) -> Path {
    tree.rootmostValue(on: path).map { Path(keys: Array(path.keys.dropLast($0.rest.count))) } ?? path
  }

  /// The paths of pending transactions on the way to a path and below it, without those below another such
  /// path.
  func rootmostPaths(near path: Path) -> [Path] {
    let root = rootmost(path)
    var paths: [Path] = []
    tree.subtree(root).forEachRootmost(at: root) { paths.append($0) }
    return paths
  }

  /// Whether all transactions at a path and below it have run and are not in flight.
  func isReady(_ path: Path) -> Bool {
    tree.subtree(path).allSatisfy { $0.allSatisfy { $0.status == .run } }
  }

  /// The transactions at, above and below a path.
  func affected(by path: Path) -> [PendingTransaction] {
    let above = tree.values(on: path).filter { $0.depth < path.count }.flatMap { $0.value.values }
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
