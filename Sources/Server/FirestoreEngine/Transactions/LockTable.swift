// Which transaction holds which documents and ranges, and who waits for them. One per database, in memory.
//
// What is locked are the store's keys. A transaction's read locks the document rows it asked for and the index
// ranges it scanned, found or empty: shared, or exclusively when it retries an aborted attempt. A write leaves its
// *footprint* (document rows, and index entries before and after) from the moment it is sequenced until it is
// durable. Rules:
//   - reads of transactions share, unless one of them is exclusive;
//   - a footprint never enters a range or row that another transaction holds: it waits;
//   - a read waits for footprints in flight, so that what it then reads is durable and stays; a write that waited
//     leaves its footprint as soon as it is granted, so that its turn comes before that of the reads behind it;
//   - footprints do not exclude each other: the store's sequencer orders them, so hot documents never queue here;
//   - only clearing a database does not wait: it takes the locks from all who hold any;
//   - whoever comes later does not overtake a read that waits and that it conflicts with, unless it holds the item
//     already. Reads overtake a plain write that waits until little of its patience is left; those that come then give
//     way to it, unless it waits for them, or eight others have waited longer.
// Who blocks whom is `LockState`'s, who comes next `LockQueue`'s; this file waits and wakes.
//
// Invariant: no cycle of transactions waiting for each other outlives the call that would close it; the youngest of
// the cycle is aborted.

import FirestoreModel
import Locking
import OrderedStore

/// The locks of one database.
final class LockTable: Sendable {
  /// A transaction, in the table's eyes. Less age is older, and wins.
  struct Owner: Hashable, Sendable {
    var id: UInt64
    var age: UInt64
  }

  /// How a transaction's read holds what it read.
  enum Mode: Sendable { case shared, exclusive }

  /// What a transaction wants to read.
  struct ReadRequest: Sendable {
    var owner: Owner
    var mode: Mode
    var keys: [Key]
    var ranges: [KeyRange]
  }

  /// The rows that a commit changes, with the index entries that its documents had and get.
  struct Footprint: Sendable {
    var keys: [Key] = []
    var entries: [[Key]] = []
    /// All of these in order, once that has been asked for: nothing is added then.
    var ordered: [Key]?
  }

  /// A commit, for a transaction or plain.
  struct WriteRequest: Sendable {
    var writer: UInt64
    var owner: Owner?
    var footprint: Footprint
  }

  /// What someone waits for.
  enum Request: Sendable {
    case read(ReadRequest)
    case write(WriteRequest)
    /// A transaction's turn to ask for more, once these waiting plain writes have had theirs. It has no place in the
    /// queue: nobody waits for one that waits for this alone.
    case turn(Owner, after: Set<UInt64>)

    var owner: Owner? {
      switch self {
      case .read(let read): read.owner
      case .write(let write): write.owner
      case .turn(let owner, _): owner
      }
    }
  }

  /// How a wait ended.
  enum Outcome: Sendable { case granted, aborted, timedOut, cancelled }

  let state = Guarded(State())
  private let clock: any EngineClock
  /// Told of a transaction that loses its locks to another, before anybody else can have them: it must not come back
  /// to the table.
  private let aborted: @Sendable (Owner) -> Void
  /// Since when a transaction's client has asked for nothing; nil while a request of it is under way.
  private let idleSince: @Sendable (Owner) -> UInt64?

  init(
    clock: any EngineClock, idleSince: @escaping @Sendable (Owner) -> UInt64?,
    aborted: @escaping @Sendable (Owner) -> Void
  ) {
    self.clock = clock
    self.idleSince = idleSince
    self.aborted = aborted
  }

  /// Locks rows and ranges for a transaction's read, waiting until `deadline` at most. Returns how it ended.
  ///
  /// - Parameter patience: how long it waits for a transaction whose client is silent. Behind many that are at work it
  ///   may take longer until it is its turn; one that holds up everybody would make each of them wait in vain.
  func tryLock(
    _ request: ReadRequest, until deadline: UInt64, patience: UInt64, givesWay: Bool
  ) async -> Outcome {
    let hurried = clock.now() + LockTable.hurry
    let writes = givesWay ? state.withLock { $0.writes(meeting: request, endingBy: hurried) } : []
    if !writes.isEmpty {
      let turn = await outcome(of: .turn(request.owner, after: writes), until: deadline)
      guard turn == .granted else { return turn }
    }
    return await outcome(of: .read(request), until: deadline, patience: patience)
  }

  /// For how long reads give way to a plain write, at the end of its wait: longer than transactions usually take, and
  /// short enough for readers where one holder does not end and every write fails.
  static let hurry: UInt64 = 1_000_000

  /// How many plain writes a read gives way to, those that have waited longest, so that searches for deadlocks do not
  /// go over all that wait. Others of the same documents have their turn with these: footprints exclude no footprints.
  static let mostTurns = 8

  /// Enters a commit's footprint, inside the sequencer. Returns false if others hold some of it: then nothing has
  /// been entered, and the caller should throw out of the sequencer and `waitToWrite`.
  func enter(_ footprint: Footprint, as writer: UInt64, for owner: Owner?) -> Bool {
    state.withLock { state in
      // It may have been here before: granted while it waited, or because the store runs the body again.
      let place = state.places[writer] ?? .max
      state.leave(writer)
      let request = Request.write(WriteRequest(writer: writer, owner: owner, footprint: footprint))
      guard state.blocker(of: request, before: place) == nil else { return false }
      state.take(request, from: place)
      return true
    }
  }

  /// Enters a commit's footprint whoever holds some of it: all transactions lose their locks. One that kept them would take
  /// what it read before and what it reads after the commit for one state.
  func seize(_ footprint: Footprint, as writer: UInt64) {
    let (losers, granted) = state.withLock { state -> ([Waiter], [Waiter]) in
      state.leave(writer)
      var losers: [Waiter] = []
      for owner in Array(state.owned.keys) {
        aborted(owner)
        state.release(owner)
        losers += state.removeWaiters(of: owner)
        state.postpone(.owner(owner))
      }
      state.enter(footprint, as: writer)
      return (losers, state.grant())
    }
    for waiter in losers { waiter.resume(.aborted) }
    for waiter in granted { waiter.resume(.granted) }
  }

  /// Waits until a footprint can be entered, and enters it, so that nobody gets in between until the caller `enter`s what
  /// it has become meanwhile, or `leave`s.
  /// - Throws: ABORTED when the wait ends without.
  func waitToWrite(
    _ footprint: Footprint, as writer: UInt64, for owner: Owner?, until deadline: UInt64
  ) async throws(FirestoreError) {
    // Before anybody needs it: under the lock everybody would wait for a large one.
    var footprint = footprint
    footprint.ordered = footprint.sorted()
    let request = WriteRequest(writer: writer, owner: owner, footprint: footprint)
    try await wait(for: .write(request), until: deadline)
  }

  /// Takes a commit's footprint away, once it is durable or has failed.
  func leave(_ writer: UInt64) {
    let woken = state.withLock { state in
      state.leave(writer)
      return state.grant(after: .footprint(writer))
    }
    for waiter in woken { waiter.resume(.granted) }
  }

  /// Gives back everything that a transaction holds.
  func release(_ owner: Owner) {
    let woken = state.withLock { state in
      state.release(owner)
      return state.grant(after: .owner(owner))
    }
    for waiter in woken { waiter.resume(.granted) }
  }

  /// Narrows a transaction's hold on a range to the part that it really scanned.
  func narrow(_ range: KeyRange, to scanned: KeyRange, for owner: Owner) {
    let woken = state.withLock { state in
      state.narrow(range, to: scanned, for: owner)
      // Nobody gains by a part that is the whole, but perhaps another request of the transaction itself.
      let mayWake = range != scanned || state.waitingByOwner[owner] != nil
      return mayWake ? state.grant(after: .owner(owner)) : []
    }
    for waiter in woken { waiter.resume(.granted) }
  }

  /// Waits in the queue. A deadlock ends with the youngest transaction's abort.
  private func wait(for request: Request, until deadline: UInt64) async throws(FirestoreError) {
    var deadline = deadline
    while true {
      switch await outcome(of: request, until: deadline) {
      case .granted: return
      case .cancelled: throw FirestoreError(.cancelled, "The request was cancelled.")
      case .aborted: throw LockTable.contention
      case .timedOut:
        // An older transaction does not lose to a younger one that dawdles.
        guard overrule(request) else { throw LockTable.contention }
        deadline = clock.now() + 1_000_000
      }
    }
  }

  static let contention = FirestoreError.aborted("Too much contention on these documents. Please try again.")

  private func outcome(
    of request: Request, until deadline: UInt64, patience: UInt64 = .max
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
            let (next, isBeyond) = now.addingReportingOverflow(patience)
            do { try await clock.sleep(until: isBeyond ? deadline : min(next, deadline)) } catch { return }
            now = clock.now()
          } while now < deadline && self?.waits(id, forIdleSince: now - min(now, patience)) == false
          self?.end(id, .timedOut)
        }
      }
      timer?.cancel()
      return outcome
    } onCancel: {
      end(id, .cancelled)
    }
  }

  /// Queues a waiter, or grants it at once, or breaks the deadlock that it closes.
  private func enqueue(_ waiter: Waiter) {
    var woken: [Waiter] = []
    var victims: [Waiter] = []
    let outcome: Outcome? = state.withLock { state in
      if Task.isCancelled { return .cancelled }
      while true {
        guard let witness = state.blocker(of: waiter.request, before: waiter.id) else {
          state.take(waiter.request, from: waiter.id)
          if let owner = waiter.request.owner, state.waitingByOwner[owner] != nil {
            woken += state.grant(after: .owner(owner))
          }
          return .granted
        }
        state.append(waiter, witness: witness)
        guard let owner = waiter.request.owner else { return nil }
        guard let victim = state.victimOfCycle(from: owner) else {
          woken += state.removeTurns(inCyclesFrom: owner)
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

  /// Whether a waiter is held up by a transaction that has been silent since a moment.
  private func waits(_ id: UInt64, forIdleSince moment: UInt64) -> Bool {
    let holders = state.withLock { state -> Set<Owner> in
      guard let request = state.waiters[id]?.request else { return [] }
      return state.blockingOwners(of: request, before: id)
    }
    return holders.contains { holder in idleSince(holder).map { $0 <= moment } ?? false }
  }

  /// Ends a wait early. Nothing happens if it has ended already.
  private func end(_ id: UInt64, _ outcome: Outcome) {
    let (waiter, woken) = state.withLock { state -> (Waiter?, [Waiter]) in
      guard let waiter = state.remove(waiter: id) else { return (nil, []) }
      return (waiter, state.grant(after: waiter.blocker))
    }
    waiter?.resume(outcome)
    for other in woken { other.resume(.granted) }
  }

  /// Takes the locks from younger transactions that an older one's commit has waited for in vain.
  private func overrule(_ request: Request) -> Bool {
    guard case .write(let write) = request, let owner = write.owner else { return false }
    let (hasLosers, waiters) = state.withLock { state -> (Bool, [Waiter]) in
      let owners = state.blockingOwners(of: request, before: .max)
      guard !owners.isEmpty, owners.allSatisfy({ $0.age > owner.age }) else { return (false, []) }
      var waiters: [Waiter] = []
      for loser in owners {
        aborted(loser)
        state.release(loser)
        waiters += state.removeWaiters(of: loser)
        // The winner comes first: others are looked at when its commit ends.
        state.postpone(.owner(loser))
      }
      return (true, waiters)
    }
    for waiter in waiters { waiter.resume(.aborted) }
    return hasLosers
  }
}
