// Handles the writes of a database. A write is applied to the local tree with estimated server values and
// sent with unresolved server values. If the server rejects it, it is reverted.

import Dispatch
import FirebaseCore
import RealtimeModel
import RealtimeWire

extension Repository {
  /// Replaces a value; the path may end in `.priority`.
  func set(_ node: Node, at path: Path, completion: @escaping WriteCompletion) {
    if let error = Repository.rejection(of: [(path, node)]) { return completion(error) }
    let id = makeIdentifier()
    apply(OutgoingWrite(id: id, path: path, change: .put(node, hash: nil)))
    send(OutgoingWrite(id: id, path: path, change: .put(node, hash: nil)), completion)
    overrideTransactions(at: [path])
  }

  /// Replaces values at several descendant paths of a location atomically.
  func update(_ changes: [(Path, Node)], at path: Path, completion: @escaping WriteCompletion) {
    guard !changes.isEmpty else { return completion(nil) }
    if let error = Repository.rejection(of: changes.map { (path.appending($0), $1) }) {
      return completion(error)
    }
    let id = makeIdentifier()
    apply(OutgoingWrite(id: id, path: path, change: .merge(changes)))
    send(OutgoingWrite(id: id, path: path, change: .merge(changes)), completion)
    overrideTransactions(at: changes.map { path.appending($0.0) })
  }

  /// The maximum number of levels of a write below the root: the maximum that a server can be configured to
  /// accept. The JSON reader accepts 128 levels.
  static let maximumDepth = 100

  /// The error of a write that every server would reject; nil for other writes. The write fails at once,
  /// because the client could neither read it from its cache file again nor send it.
  static func rejection(of changes: [(path: Path, node: Node)]) -> RealtimeError? {
    let depth = changes.map { $0.path.dataDepth + $0.node.depth }.max() ?? 0
    guard depth <= maximumDepth else {
      return .invalidData("it lies \(depth) levels deep, and the maximum is \(maximumDepth)")
    }
    let size = changes.reduce(0) { $0 + $1.node.estimatedSize }
    return size > MessageSplitter.maximumFrames * MessageSplitter.maximumFrameLength ? .writeTooBig : nil
  }

  /// Applies a write to the local tree with estimated server values.
  private func apply(_ write: OutgoingWrite) {
    switch write.change {
    case .put(let node, _):
      raise(
        tree.applyUserOverwrite(
          at: write.path, estimate(of: node, at: write.path), id: write.id,
          isEstimate: node.containsIncrement))
    case .merge(let changes):
      let estimates = changes.map { ($0, estimate(of: $1, at: write.path.appending($0))) }
      let estimatedPositions = changes.indices.filter { changes[$0].1.containsIncrement }
      raise(
        tree.applyUserMerge(
          at: write.path, estimates, id: write.id, estimatedPositions: Set(estimatedPositions)))
    }
  }

  /// The value with its server values replaced by estimates.
  func estimate(of node: Node, at path: Path) -> Node {
    guard node.containsDeferred else { return node }
    return node.resolved(existing: tree.latestNode(at: path), timestamp: serverTime)
  }

  private func send(_ write: OutgoingWrite, _ completion: @escaping WriteCompletion) {
    writeCompletions[write.id] = completion
    // The connection changes first, because a storage that replaces its file reads the pending writes from
    // the connection.
    connection.write(write)
    storage.append(write)
  }

  /// Applies and sends the writes of earlier runs. They have no completions.
  func restoreWrites() {
    for write in storage.restore() {
      skipIdentifiers(upTo: write.id)
      apply(write)
      connection.write(write)
      writeCompletions[write.id] = { _ in }
    }
  }

  /// Handles the server's response to a write, which was already removed from the storage.
  func writeAnswered(_ id: Int, _ error: RealtimeError?) {
    if transactions.isSent(id) { return transactionAnswered(id, error) }
    guard let completion = writeCompletions.removeValue(forKey: id) else { return }
    if let error { log(.warning, "A write failed: \(error.status.rawValue) \(error.message)") }
    let path = tree.writes.path(of: id) ?? .root
    let events = tree.acknowledgeWrite(id, isRevert: error != nil)
    raise(events)
    if !events.isEmpty { rerunTransactions(at: path) }
    completion(error)
  }

  /// Reverts every write that the server has not acknowledged, and calls the completions with an error.
  func purgeOutstandingWrites() {
    for completion in cancelWrites() { completion(Repository.cancelled) }
  }

  private static let cancelled = RealtimeError(.writeCanceled, "Write cancelled by user")

  /// Cancels every write and onDisconnect operation that the server has not acknowledged.
  ///
  /// - Returns: their completions, in the order of the writes.
  func cancelWrites() -> [WriteCompletion] {
    let responses = delayedWriteResponses
    delayedWriteResponses = []
    for (id, error) in responses { writeAnswered(id, error) }
    let operations = connection.purge()
    storage.removeAllWrites()
    raise(abortTransactions(at: .root, reason: Repository.cancelled, includingSent: true))
    transactions.forgetBatches()
    raise(tree.purgeWrites())
    let completions = writeCompletions.sorted { $0.key < $1.key }.map(\.value)
    writeCompletions = [:]
    return completions + operations.compactMap { disconnectCompletions.removeValue(forKey: $0.id) }
  }
}

extension Repository: StorageSource {
  var storageContents: StorageContents {
    StorageContents(writes: connection.storedWrites, queries: tree.observedQueries)
  }

  func retryStorage(after delay: Int64) {
    Repository.queue.asyncAfter(deadline: .now() + .milliseconds(Int(delay))) { [weak self] in
      self?.storage.retry()
      self?.flush()
    }
  }
}
