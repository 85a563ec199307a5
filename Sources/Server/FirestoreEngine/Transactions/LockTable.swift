// The lock table of one database, in memory: which transactions hold which documents and ranges, and which
// requests wait.
//
// The locks are on keys of the store. A transaction's read locks the document rows that it requests and the
// index ranges that it scans, whether found or empty. The locks are shared, or exclusive if the transaction
// retries an aborted attempt. A commit has a *footprint* (document rows, and index entries before and after)
// from the moment it is sequenced until it is durable. Rules:
// - Reads of transactions share, unless one of them is exclusive.
// - A footprint never enters a range or row that another transaction holds: the commit waits.
// - A read waits for conflicting footprints, so that its results are durable and stay valid. A commit that
//   waited enters its footprint when it is granted, so that it precedes the reads after it.
// - Footprints do not exclude each other: the store's sequencer orders commits, so hot documents never queue
//   here.
// - Clearing a database does not wait: it takes the locks of all transactions.
// - A later request does not overtake a conflicting read that waits, unless it holds the item already. Reads
//   overtake a waiting plain write until shortly before its timeout. Then new reads yield to it, unless it
//   waits for them or eight other writes have waited longer. `LockState` decides which requests block,
//   `LockQueue` which are granted next; this file waits and wakes.
//
// Invariant: no cycle of waiting transactions outlives the call that would close it; the youngest of the
// cycle is aborted.

import FirestoreModel
import Locking
import OrderedStore

/// The locks of one database.
final class LockTable: Sendable {
  /// A transaction. A lower age is older and wins.
  struct Owner: Hashable, Sendable {
    var id: UInt64
    var age: UInt64
  }

  /// How a transaction's read locks.
  enum Mode: Sendable { case shared, exclusive }

  /// A transaction's request to read.
  struct ReadRequest: Sendable {
    var owner: Owner
    var mode: Mode
    var keys: [Key]
    var ranges: [KeyRange]
  }

  /// The rows that a commit changes, and their index entries before and after.
  struct Footprint: Sendable {
    var keys: [Key] = []
    var entries: [[Key]] = []
    /// All of these, sorted; computed on first use, after which nothing is added.
    var ordered: [Key]?
  }

  /// A commit, of a transaction or plain.
  struct WriteRequest: Sendable {
    var writer: UInt64
    var owner: Owner?
    var footprint: Footprint
  }

  /// A request that may wait.
  enum Request: Sendable {
    case read(ReadRequest)
    case write(WriteRequest)
    /// A transaction's read that yields to these waiting plain writes. It has no position in the queue:
    /// nothing waits for it.
    case afterWrites(Owner, after: Set<UInt64>)

    var owner: Owner? {
      switch self {
      case .read(let read): read.owner
      case .write(let write): write.owner
      case .afterWrites(let owner, _): owner
      }
    }
  }

  /// The result of a wait.
  enum Outcome: Sendable { case granted, aborted, timedOut, cancelled }

  let state = Guarded(State())
  private let clock: any EngineClock
  /// Called when a transaction loses its locks to another, before any other request gets them. The
  /// transaction must not use the table again.
  private let aborted: @Sendable (Owner) -> Void
  /// Since when a transaction's client has been idle; nil while one of its requests is in progress.
  private let idleSince: @Sendable (Owner) -> UInt64?

  init(
    clock: any EngineClock, idleSince: @escaping @Sendable (Owner) -> UInt64?,
    aborted: @escaping @Sendable (Owner) -> Void
  ) {
    self.clock = clock
    self.idleSince = idleSince
    self.aborted = aborted
  }

  /// Locks rows and ranges for a transaction's read. Waits until `deadline` at most.
  ///
  /// - Parameter idleHolderTimeout: how long to wait for a transaction whose client is idle. The wait for
  ///   active transactions may be longer; a single idle one would make every request wait in vain.
  func tryLock(
    _ request: ReadRequest, until deadline: UInt64, idleHolderTimeout: UInt64, yieldsToWrites: Bool
  ) async -> Outcome {
    let priorityStart = clock.now() + LockTable.writePriorityWindow
    let writes =
      yieldsToWrites ? state.withLock { $0.writes(conflictingWith: request, endingBy: priorityStart) } : []
    if !writes.isEmpty {
      let afterWrites = await outcome(of: .afterWrites(request.owner, after: writes), until: deadline)
      guard afterWrites == .granted else { return afterWrites }
    }
    return await outcome(of: .read(request), until: deadline, idleHolderTimeout: idleHolderTimeout)
  }

  /// How long before its timeout a plain write gets priority over new reads, in microseconds. Longer than
  /// most transactions last, and short enough for readers where one holder never ends and every write times
  /// out.
  static let writePriorityWindow: UInt64 = 1_000_000

  /// The maximum number of plain writes that a read yields to: those that have waited longest. It bounds
  /// deadlock searches. Other writes of the same documents proceed with these, since footprints do not
  /// exclude each other.
  static let maximumYieldedWrites = 8

  /// Enters a commit's footprint, in the sequencer. Returns false, without effect, if other transactions hold
  /// part of it: then the caller leaves the sequencer and calls `waitToWrite`.
  func enter(_ footprint: Footprint, as writer: UInt64, for owner: Owner?) -> Bool {
    state.withLock { state in
      // The footprint may be entered already: the commit was granted while it waited, or the store repeats
      // the body.
      let queuePosition = state.queuePositions[writer] ?? .max
      state.leave(writer)
      let request = Request.write(WriteRequest(writer: writer, owner: owner, footprint: footprint))
      guard state.blocker(of: request, before: queuePosition) == nil else { return false }
      state.acquire(request, from: queuePosition)
      return true
    }
  }

  /// Enters a commit's footprint unconditionally: all transactions lose their locks. A transaction that kept
  /// them would mix the states before and after the commit.
  func preemptAll(_ footprint: Footprint, as writer: UInt64) {
    let (losers, granted) = state.withLock { state -> ([Waiter], [Waiter]) in
      state.leave(writer)
      var losers: [Waiter] = []
      for owner in Array(state.owned.keys) {
        aborted(owner)
        state.release(owner)
        losers += state.removeWaiters(of: owner)
        state.markStale(.owner(owner))
      }
      state.enter(footprint, as: writer)
      return (losers, state.grant())
    }
    for waiter in losers { waiter.resume(.aborted) }
    for waiter in granted { waiter.resume(.granted) }
  }

  /// Waits until a footprint can be entered, and enters it. No other request comes between until the caller
  /// calls `enter` with the final footprint, or `leave`.
  /// - Throws: ABORTED on timeout, CANCELLED if the task is cancelled.
  func waitToWrite(
    _ footprint: Footprint, as writer: UInt64, for owner: Owner?, until deadline: UInt64
  ) async throws(FirestoreError) {
    // Sorted before the lock is taken: a large footprint would block the table.
    var footprint = footprint
    footprint.ordered = footprint.sorted()
    let request = WriteRequest(writer: writer, owner: owner, footprint: footprint)
    try await wait(for: .write(request), until: deadline)
  }

  /// Removes a commit's footprint, once the commit is durable or has failed.
  func leave(_ writer: UInt64) {
    let woken = state.withLock { state in
      state.leave(writer)
      return state.grant(after: .footprint(writer))
    }
    for waiter in woken { waiter.resume(.granted) }
  }

  /// Releases all locks of a transaction.
  func release(_ owner: Owner) {
    let woken = state.withLock { state in
      state.release(owner)
      return state.grant(after: .owner(owner))
    }
    for waiter in woken { waiter.resume(.granted) }
  }

  /// Narrows a transaction's lock on a range to the part that it scanned.
  func narrow(_ range: KeyRange, to scanned: KeyRange, for owner: Owner) {
    let woken = state.withLock { state in
      state.narrow(range, to: scanned, for: owner)
      // If all of it was scanned, only another request of the same transaction can benefit.
      let mayWake = range != scanned || state.waitingByOwner[owner] != nil
      return mayWake ? state.grant(after: .owner(owner)) : []
    }
    for waiter in woken { waiter.resume(.granted) }
  }

  /// Waits in the queue. A deadlock aborts the youngest transaction.
  private func wait(for request: Request, until deadline: UInt64) async throws(FirestoreError) {
    var deadline = deadline
    while true {
      switch await outcome(of: request, until: deadline) {
      case .granted: return
      case .cancelled: throw FirestoreError(.cancelled, "The request was cancelled.")
      case .aborted: throw LockTable.contention
      case .timedOut:
        // An older transaction takes precedence over younger ones that do not end.
        guard preemptYounger(request) else { throw LockTable.contention }
        deadline = clock.now() + 1_000_000
      }
    }
  }

  static let contention = FirestoreError.aborted("Too much contention on these documents. Please try again.")

  private func outcome(
    of request: Request, until deadline: UInt64, idleHolderTimeout: UInt64 = .max
  ) async -> Outcome {
    let id = state.withLock { state in
      defer { state.nextWaiter += 1 }
      return state.nextWaiter
    }
    return await withTaskCancellationHandler {
      var timer: Task<Void, Never>?
      let outcome = await withCheckedContinuation { (resume: CheckedContinuation<Outcome, Never>) in
        enqueue(Waiter(id: id, request: request, deadline: deadline) { resume.resume(returning: $0) })
        timer = Task { [weak self, clock] in
          var now = clock.now()
          repeat {
            let (next, isBeyond) = now.addingReportingOverflow(idleHolderTimeout)
            do { try await clock.sleep(until: isBeyond ? deadline : min(next, deadline)) } catch { return }
            now = clock.now()
          } while now < deadline && self?.waits(id, forIdleSince: now - min(now, idleHolderTimeout)) == false
          self?.end(id, .timedOut)
        }
      }
      timer?.cancel()
      return outcome
    } onCancel: {
      end(id, .cancelled)
    }
  }

  /// Grants a waiter immediately, or queues it, or breaks the deadlock that it closes.
  private func enqueue(_ waiter: Waiter) {
    var woken: [Waiter] = []
    var victims: [Waiter] = []
    let outcome: Outcome? = state.withLock { state in
      if Task.isCancelled { return .cancelled }
      while true {
        guard let witness = state.blocker(of: waiter.request, before: waiter.id) else {
          state.acquire(waiter.request, from: waiter.id)
          if let owner = waiter.request.owner, state.waitingByOwner[owner] != nil {
            woken += state.grant(after: .owner(owner))
          }
          return .granted
        }
        state.append(waiter, witness: witness)
        guard let owner = waiter.request.owner else { return nil }
        guard let victim = state.victimOfCycle(from: owner) else {
          woken += state.removeYieldingReads(inCyclesFrom: owner)
          return nil
        }
        _ = state.remove(waiter: waiter.id)
        if victim == owner { return .aborted }
        victims += state.removeWaiters(of: victim)
        aborted(victim)
        state.release(victim)
        woken += state.grant(after: .owner(victim))
      }
    }
    for victim in victims { victim.resume(.aborted) }
    for other in woken { other.resume(.granted) }
    if let outcome { waiter.resume(outcome) }
  }

  /// Whether a transaction that has been idle since `time` blocks a waiter.
  private func waits(_ id: UInt64, forIdleSince time: UInt64) -> Bool {
    let holders = state.withLock { state -> Set<Owner> in
      guard let request = state.waiters[id]?.request else { return [] }
      return state.blockingOwners(of: request, before: id)
    }
    return holders.contains { holder in idleSince(holder).map { $0 <= time } ?? false }
  }

  /// Ends a wait early. Nothing happens if it has ended.
  private func end(_ id: UInt64, _ outcome: Outcome) {
    let (waiter, woken) = state.withLock { state -> (Waiter?, [Waiter]) in
      guard let waiter = state.remove(waiter: id) else { return (nil, []) }
      return (waiter, state.grant(after: waiter.blocker))
    }
    waiter?.resume(outcome)
    for other in woken { other.resume(.granted) }
  }

  /// Takes the locks of younger transactions after an older transaction's commit timed out. Returns whether
  /// it did.
  private func preemptYounger(_ request: Request) -> Bool {
    guard case .write(let write) = request, let owner = write.owner else { return false }
    let (hasLosers, waiters) = state.withLock { state -> (Bool, [Waiter]) in
      let owners = state.blockingOwners(of: request, before: .max)
      guard !owners.isEmpty, owners.allSatisfy({ $0.age > owner.age }) else { return (false, []) }
      var waiters: [Waiter] = []
      for loser in owners {
        aborted(loser)
        state.release(loser)
        waiters += state.removeWaiters(of: loser)
        // The winner comes first: other waiters are checked when its commit ends.
        state.markStale(.owner(loser))
      }
      return (true, waiters)
    }
    for waiter in waiters { waiter.resume(.aborted) }
    return hasLosers
  }
}
