// Runs the transactions of a database.
//
// Invariants
//   1. A batch is sent only if every transaction at and below its path has run on the data whose hash the
//      batch sends. The server compares that hash with the hash of its data.
//   2. A transaction ends exactly once.
//   3. Completions are called after the queue is consistent again.
//   4. A location is listened to while transactions on it are pending. All of them share one observer.

import FirebaseCore
import RealtimeModel

extension Repository {
  func runTransaction(
    at path: Path, isVisible: Bool, watcher id: UInt,
    update: @escaping @Sendable (Node) -> TransactionDecision,
    completion: @escaping @Sendable (TransactionOutcome) -> Void
  ) {
    watch(path, id)
    let input = tree.latestNode(at: path)
    switch update(input) {
    case .abort:
      raise(unwatch(path))
      completion(TransactionOutcome(error: nil, isCommitted: false, node: input))
    case .commit(let output):
      if let error = Repository.rejection(of: [(path, output)]) {
        raise(unwatch(path))
        return completion(TransactionOutcome(error: error, isCommitted: false, node: nil))
      }
      let estimate = output.resolved(existing: input, timestamp: serverTime)
      let transaction = PendingTransaction(
        order: makeIdentifier(), path: path, isVisible: isVisible, writeID: makeIdentifier(), input: input,
        output: output, estimate: estimate, update: update, completion: completion)
      transactions.append(transaction)
      raise(tree.applyUserOverwrite(at: path, estimate, id: transaction.writeID, isVisible: isVisible))
      sendReadyTransactions(near: path)
    }
  }

  private func watch(_ path: Path, _ id: UInt) {
    guard transactions.watchers[path] == nil else { return }
    let watcher = ObserverRegistration(id: id, interest: [])
    transactions.watchers[path] = watcher
    raise(tree.add(watcher, at: path, query: .default))
  }

  /// Removes the observer of a location without pending transactions.
  private func unwatch(_ path: Path) -> [DataEvent] {
    guard transactions.isEmpty(at: path), let watcher = transactions.watchers.removeValue(forKey: path)
    else { return [] }
    return tree.remove(watcher, at: path, query: .default)
  }

  // MARK: Sending

  /// Sends every batch that is ready, at, above and below a path. Without a connection transactions wait.
  /// They can be overridden until they are sent, and run again on newer data.
  func sendReadyTransactions(near path: Path = .root) {
    guard connection.isConnected else { return }
    for path in transactions.rootmostPaths(near: path) where transactions.isReady(path) {
      send(transactions.transactions(at: path), at: path)
    }
  }

  private func send(_ queue: [PendingTransaction], at path: Path) {
    guard !queue.isEmpty else { return }
    if !isCurrent(queue, at: path) {
      let ended = rerun(queue)
      // Without these transactions, the other transactions may form several batches.
      guard ended.isEmpty else { return finish(ended, near: path) }
    }
    let before = tree.latestNode(at: path, excluding: Set(queue.map(\.writeID)))
    var after = before
    for transaction in queue {
      transaction.status = .sent
      transaction.tries += 1
      guard let relative = transaction.path.relative(to: path) else { continue }
      after = after.setting(relative, to: transaction.output)
    }
    let id = makeIdentifier()
    transactions.markSent(id, at: path, queue)
    connection.write(OutgoingWrite(id: id, path: path, change: .put(after, hash: before.hash)))
  }

  /// Whether every transaction has run on the current data. New data of the server causes a rerun only if an
  /// observer sees it. For instance, the transactions may hide it.
  private func isCurrent(_ queue: [PendingTransaction], at path: Path) -> Bool {
    var node = tree.latestNode(at: path, excluding: Set(queue.map(\.writeID)))
    for transaction in queue {
      guard let relative = transaction.path.relative(to: path) else { continue }
      guard node.descendant(relative) == transaction.input else { return false }
      node = node.setting(relative, to: transaction.estimate)
    }
    return true
  }

  func transactionAnswered(_ id: Int, _ error: RealtimeError?) {
    guard let (path, queue) = transactions.takeBatch(id) else { return }
    guard let error else { return committed(queue, at: path) }
    if error.status == .dataStale {
      for transaction in queue {
        if case .sentNeedsAbort(let reason) = transaction.status {
          transaction.status = .needsAbort(reason)
        } else if transaction.status == .sent {
          transaction.status = .run
        }
      }
    } else {
      log(.warning, "A transaction at \(path.absolute) failed: \(error.status.rawValue)")
      for transaction in queue where transaction.status != .completed {
        transaction.status = .needsAbort(error)
      }
    }
    rerunTransactions(at: path)
  }

  private func committed(_ queue: [PendingTransaction], at path: Path) {
    let uncompleted = queue.filter { $0.status != .completed }
    for transaction in uncompleted {
      complete(transaction)
      raise(tree.acknowledgeWrite(transaction.writeID))
    }
    for transaction in uncompleted { raise(unwatch(transaction.path)) }
    sendReadyTransactions(near: path)
    for transaction in uncompleted {
      transaction.completion(TransactionOutcome(error: nil, isCommitted: true, node: transaction.estimate))
    }
  }

  private func complete(_ transaction: PendingTransaction) {
    transaction.status = .completed
    transactions.remove(transaction)
  }

  // MARK: Reruns

  /// Reruns the queued transactions at, above and below a path on the current data.
  func rerunTransactions(at path: Path) {
    let root = transactions.rootmost(path)
    let queue = transactions.transactions(at: root)
    guard !queue.isEmpty else { return }
    finish(rerun(queue), near: root)
  }

  /// Runs transactions again, in their order.
  ///
  /// - Returns: the transactions that ended, with their outcomes.
  private func rerun(_ queue: [PendingTransaction]) -> [(PendingTransaction, TransactionOutcome)] {
    var ended: [(PendingTransaction, TransactionOutcome)] = []
    var excludedWrites = Set(queue.filter { $0.status == .run }.map(\.writeID))
    for transaction in queue {
      switch transaction.status {
      case .needsAbort(let error):
        raise(tree.acknowledgeWrite(transaction.writeID, isRevert: true))
        ended.append((transaction, TransactionOutcome(error: error, isCommitted: false, node: nil)))
      case .run:
        if let outcome = rerun(transaction, &excludedWrites) { ended.append((transaction, outcome)) }
      case .sent, .sentNeedsAbort, .completed: break
      }
    }
    return ended
  }

  /// Removes ended transactions, sends those that are ready now, and calls the completions.
  private func finish(_ ended: [(PendingTransaction, TransactionOutcome)], near root: Path) {
    for (transaction, _) in ended { complete(transaction) }
    for (transaction, _) in ended { raise(unwatch(transaction.path)) }
    sendReadyTransactions(near: root)
    for (transaction, outcome) in ended { transaction.completion(outcome) }
  }

  /// Runs one transaction again.
  ///
  /// - Returns: the outcome, if the transaction ended.
  private func rerun(_ transaction: PendingTransaction, _ excludedWrites: inout Set<Int>)
    -> TransactionOutcome?
  {
    let old = transaction.writeID
    excludedWrites.insert(old)
    guard transaction.tries < PendingTransaction.maximumTries else {
      raise(tree.acknowledgeWrite(old, isRevert: true))
      let error = RealtimeError(
        .maxRetries, "The transaction was tried \(PendingTransaction.maximumTries) times without success")
      return TransactionOutcome(error: error, isCommitted: false, node: nil)
    }
    let input = tree.latestNode(at: transaction.path, excluding: excludedWrites)
    transaction.input = input
    guard case .commit(let output) = transaction.update(input) else {
      raise(tree.acknowledgeWrite(old, isRevert: true))
      return TransactionOutcome(error: nil, isCommitted: false, node: input)
    }
    if let error = Repository.rejection(of: [(transaction.path, output)]) {
      raise(tree.acknowledgeWrite(old, isRevert: true))
      return TransactionOutcome(error: error, isCommitted: false, node: nil)
    }
    transaction.output = output
    transaction.estimate = output.resolved(existing: input, timestamp: serverTime)
    transaction.writeID = makeIdentifier()
    excludedWrites.remove(old)
    let events = tree.applyUserOverwrite(
      at: transaction.path, transaction.estimate, id: transaction.writeID, isVisible: transaction.isVisible)
    raise(events + tree.acknowledgeWrite(old, isRevert: true))
    return nil
  }

  // MARK: Aborting

  /// Ends the transactions that a write at a path overrides, and reruns the others that may have used their
  /// results.
  func overrideTransactions(at paths: [Path]) {
    guard !transactions.isEmpty else { return }
    var seen: Set<Path> = []
    // Finds the paths before the abort, because the transactions below an ended transaction have used its
    // result.
    let roots = paths.map { transactions.rootmost($0) }.filter { seen.insert($0).inserted }
    for path in paths { raise(abortTransactions(at: path)) }
    for root in roots { rerunTransactions(at: root) }
  }

  /// Ends the transactions that a plain write at a path overrides. Other transactions are sent only after
  /// they have run again.
  ///
  /// - Parameter includingSent: whether transactions in flight also fail immediately, because no response
  ///   will arrive.
  /// - Returns: the events that the removal of their writes causes.
  func abortTransactions(
    at path: Path,
    reason: RealtimeError = RealtimeError(.overriddenBySet, "The transaction was overridden by a set"),
    includingSent: Bool = false
  ) -> [DataEvent] {
    var ended: [PendingTransaction] = []
    var events: [DataEvent] = []
    for transaction in transactions.affected(by: path) {
      switch transaction.status {
      case .sent where !includingSent: transaction.status = .sentNeedsAbort(reason)
      case .sentNeedsAbort where !includingSent, .completed: break
      case .sent, .sentNeedsAbort, .run, .needsAbort:
        complete(transaction)
        events += tree.acknowledgeWrite(transaction.writeID, isRevert: true)
        ended.append(transaction)
      }
    }
    for transaction in ended {
      events += unwatch(transaction.path)
      transaction.completion(TransactionOutcome(error: reason, isCommitted: false, node: nil))
    }
    return events
  }
}
