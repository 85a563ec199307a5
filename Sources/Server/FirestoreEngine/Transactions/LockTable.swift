// The lock table of one database, in memory: which transactions hold which documents and ranges, and which
// requests wait.
//
// The locks are on keys of the store. A transaction's read locks the document rows that it requests and the
// index ranges that it scans, whether found or empty. The locks are shared, or exclusive if the transaction
// retries an aborted attempt. A commit has a *footprint*: its document rows, and their index entries before
// and after. The footprint is in the table from the moment the commit is sequenced until it is durable. A
// *plain write* is a commit without a transaction. Rules:
// - Reads of different transactions do not block each other, unless one of them locks exclusively.
// - If another transaction holds a row or range that contains a key of the footprint, the commit waits.
// - A read waits for conflicting footprints, so that its results are durable and stay valid. When a waiting
//   commit is granted, its footprint is added immediately, so that it comes before reads that are granted
//   later.
// - Footprints do not exclude each other: the store's sequencer orders commits, so plain writes of a
//   frequently written document never wait for each other here.
// - The operation that clears a database does not wait. All transactions lose their locks to it.
// - A request waits behind earlier conflicting reads in the queue, unless its transaction holds the locks
//   already. Reads may overtake a waiting plain write until one second before its timeout
//   (`writePriorityWindow`). After that new reads wait for the write first, unless the write waits for the
//   reader itself. A read waits for at most eight such writes, those that have waited longest.
//
// `LockState` decides which requests block each other, and `LockQueue` decides which requests are granted next.
// This file suspends and resumes the callers.
//
// Invariant: a request that would close a cycle of waiting transactions breaks the cycle before it waits, by
// aborting the youngest transaction of the cycle.
//
// Decision: docs/decisions/0007-locks-of-transactions.md

import FirestoreModel
import Locking
import OrderedStore

/// The locks of one database.
final class LockTable: Sendable {
  /// A transaction. A lower `age` means an older transaction, which wins conflicts. A retry has the age of
  /// its first attempt.
  struct Owner: Hashable, Sendable {
    var id: UInt64
    var age: UInt64
  }

  /// The mode in which a transaction's reads lock.
  enum Mode: Sendable { case shared, exclusive }

  /// A transaction's request to read.
  struct ReadRequest: Sendable {
    var owner: Owner
    var mode: Mode
    var keys: [Key]
    var ranges: [KeyRange]
  }

  /// The keys of the rows that a commit changes, and of their index entries before and after.
  struct Footprint: Sendable {
    var keys: [Key] = []
    var entries: [[Key]] = []
    /// All keys and entries, sorted. Computed on first use; nothing is added afterwards.
    var ordered: [Key]?
  }

  /// A commit; `owner` is its transaction, nil for a plain write.
  struct WriteRequest: Sendable {
    var writer: UInt64
    var owner: Owner?
    var footprint: Footprint
  }

  /// A request that may wait.
  enum Request: Sendable {
    case read(ReadRequest)
    case write(WriteRequest)
    /// A transaction's read that first waits for the end of these waiting plain writes. No other request
    /// waits for it.
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

  /// The number of requests that wait.
  var waiterCount: Int { state.withLock { $0.waiters.count } }
  private let clock: any EngineClock
  /// Called when a transaction loses its locks to another request, before any other request gets them. The
  /// transaction must not use the table again.
  private let onLocksLost: @Sendable (Owner) -> Void
  /// The time at which a transaction's client became idle; nil while one of its requests is in progress.
  private let idleSince: @Sendable (Owner) -> UInt64?

  init(
    clock: any EngineClock, idleSince: @escaping @Sendable (Owner) -> UInt64?,
    onLocksLost: @escaping @Sendable (Owner) -> Void
  ) {
    self.clock = clock
    self.idleSince = idleSince
    self.onLocksLost = onLocksLost
  }

  /// Locks rows and ranges for a transaction's read. Waits until `deadline` at most.
  ///
  /// - Parameter idleHolderTimeout: how long to wait for a transaction whose client is idle. The wait for active
  ///   transactions may be longer. Without this limit, one client that never continues would make every request wait
  ///   until its deadline.
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

  /// How long before its timeout a plain write gets priority over new reads, in microseconds. Most
  /// transactions end within this time, so the write can be granted. If a transaction never ends, every write
  /// times out, and readers lose only this time.
  static let writePriorityWindow: UInt64 = 1_000_000

  /// The maximum number of plain writes that a read yields to, in queue order. The limit bounds the time of
  /// deadlock searches. Other writes of the same documents can be granted together with these, since
  /// footprints do not exclude each other.
  static let maximumYieldedWrites = 8

  /// Adds a commit's footprint, in the sequencer. Returns false, and adds nothing, if a lock or an
  /// earlier waiting read of another transaction blocks it. Then the caller leaves the sequencer and calls
  /// `waitToWrite`.
  func tryAddFootprint(_ footprint: Footprint, as writer: UInt64, for owner: Owner?) -> Bool {
    state.withLock { state in
      // The footprint may be in the table already, if the commit waited and was granted, or if the store runs
      // the body again.
      let queuePosition = state.queuePositions[writer] ?? .max
      state.removeFootprint(of: writer)
      let request = Request.write(WriteRequest(writer: writer, owner: owner, footprint: footprint))
      guard state.blocker(of: request, before: queuePosition) == nil else { return false }
      state.acquire(request, from: queuePosition)
      return true
    }
  }

  /// Adds a commit's footprint unconditionally: all transactions lose their locks. A transaction that kept
  /// its locks could read some documents before the commit and others after it.
  func preemptAll(_ footprint: Footprint, as writer: UInt64) {
    let (losers, granted) = state.withLock { state -> ([Waiter], [Waiter]) in
      state.removeFootprint(of: writer)
      var losers: [Waiter] = []
      for owner in Array(state.owned.keys) {
        onLocksLost(owner)
        state.release(owner)
        losers += state.removeWaiters(of: owner)
        state.markStale(.owner(owner))
      }
      state.addFootprint(footprint, as: writer)
      return (losers, state.grant())
    }
    for waiter in losers { waiter.resume(.aborted) }
    for waiter in granted { waiter.resume(.granted) }
  }

  /// Waits until a footprint can be added, and adds it. Until the caller calls `tryAddFootprint` with the final
  /// footprint, or `removeFootprint`, no conflicting read is granted.
  /// - Throws: ABORTED on timeout, CANCELLED if the task is cancelled.
  func waitToWrite(
    _ footprint: Footprint, as writer: UInt64, for owner: Owner?, until deadline: UInt64
  ) async throws(FirestoreError) {
    // Sorting a large footprint takes long, so it is done before the table's mutex is locked.
    var footprint = footprint
    footprint.ordered = footprint.sorted()
    let request = WriteRequest(writer: writer, owner: owner, footprint: footprint)
    try await wait(for: .write(request), until: deadline)
  }

  /// Removes a commit's footprint, once the commit is durable or has failed.
  func removeFootprint(of writer: UInt64) {
    let woken = state.withLock { state in
      state.removeFootprint(of: writer)
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
      // If the complete range was scanned, the lock does not shrink. Then only a waiting request of the same transaction
      // may be granted now.
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
        // An older transaction takes the locks of younger transactions that did not end in time.
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
            let (next, overflows) = now.addingReportingOverflow(idleHolderTimeout)
            do { try await clock.sleep(until: overflows ? deadline : min(next, deadline)) } catch { return }
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

  /// Grants a waiter immediately or queues it. If waiting would close a deadlock, aborts the youngest
  /// transaction of the cycle.
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
        onLocksLost(victim)
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

  /// Ends a wait early. Does nothing if the wait has ended already.
  private func end(_ id: UInt64, _ outcome: Outcome) {
    let (waiter, woken) = state.withLock { state -> (Waiter?, [Waiter]) in
      guard let waiter = state.remove(waiter: id) else { return (nil, []) }
      return (waiter, state.grant(after: waiter.blocker))
    }
    waiter?.resume(outcome)
    for other in woken { other.resume(.granted) }
  }

  /// After an older transaction's commit timed out, takes the locks that block it if only younger
  /// transactions hold them. Returns whether it did.
  private func preemptYounger(_ request: Request) -> Bool {
    guard case .write(let write) = request, let owner = write.owner else { return false }
    let (hasLosers, waiters) = state.withLock { state -> (Bool, [Waiter]) in
      let owners = state.blockingOwners(of: request, before: .max)
      guard !owners.isEmpty, owners.allSatisfy({ $0.age > owner.age }) else { return (false, []) }
      var waiters: [Waiter] = []
      for loser in owners {
        onLocksLost(loser)
        state.release(loser)
        waiters += state.removeWaiters(of: loser)
        // The older transaction must be granted first. Other waiters are checked when its commit ends.
        state.markStale(.owner(loser))
      }
      return (true, waiters)
    }
    for waiter in waiters { waiter.resume(.aborted) }
    return hasLosers
  }
}
