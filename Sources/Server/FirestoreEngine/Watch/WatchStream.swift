// One Listen stream: its mailbox. Commands and changes come in from any thread and wait here; one task at a time,
// started when there is something to do, carries them out. An idle stream has no task.
//
// Invariant: what waits is bounded. Beyond a budget only the names of changed documents are kept, beyond that only
// that everything may have changed.

public import FirestoreModel
import Locking
import OrderedStore

/// One Listen stream. Commands return at once; what they cause arrives at the stream's output.
public final class WatchStream: Sendable {
  /// What a stream was asked to do.
  enum Command {
    case add(WatchTarget)
    case remove(Int32)
    case reject(Int32, FirestoreError)

    var bytes: Int {
      if case .add(let target) = self { return target.bytes }
      return 0
    }

    /// About what the command takes up: its request, and the mask read from it, which may be many times as large.
    var heldBytes: Int {
      guard case .add(let target) = self, case .query(let query) = target.selection else { return bytes }
      return bytes + (query.structured.select?.heldBytes ?? 0)
    }
  }

  /// What the stream's task finds when it looks for work.
  enum Work {
    case command(Command)
    case cut
    case failure(FirestoreError)
    case end
    case nothing
  }

  private struct Mailbox {
    var commands: [(command: Command, heldBytes: Int)] = []
    var commandBytes = 0
    var heldCommandBytes = 0
    var waiting: WaitingChanges
    var isBeatDue = false
    var isRunning = false
    var isClosed = false
    var failure: FirestoreError?
    var lastSent: UInt64
    var hasTargets = false
    var targetBytes = 0
  }

  let database: FirestoreDatabase
  let hub: WatchHub
  let caller: Caller
  let output: any WatchOutput
  private let mailbox: Guarded<Mailbox>
  private let worker: WatchWorker

  init(_ database: FirestoreDatabase, _ hub: WatchHub, _ caller: Caller, _ output: any WatchOutput) {
    self.database = database
    self.hub = hub
    self.caller = caller
    self.output = output
    mailbox = Guarded(
      Mailbox(
        waiting: WaitingChanges(database.options.watchBudget), lastSent: database.options.clock.now()))
    worker = WatchWorker()
  }

  // MARK: Commands

  /// Adds a target: answered by ADD, its documents, CURRENT and a global NO_CHANGE, or by REMOVE with a cause.
  ///
  /// An id that is active already ends the stream with INVALID_ARGUMENT.
  public func addTarget(_ target: WatchTarget) { post(.add(target)) }

  /// Removes a target: answered by exactly one REMOVE, also if it is gone already.
  public func removeTarget(_ id: Int32) { post(.remove(id)) }

  /// Answers a target that could not even be parsed: REMOVE with a cause, in its turn.
  public func rejectTarget(_ id: Int32, _ error: FirestoreError) { post(.reject(id, error)) }

  /// About how many bytes the stream keeps of what it was asked: requests that wait, and active targets.
  public var heldBytes: Int { mailbox.withLock { $0.heldCommandBytes + $0.targetBytes } }

  /// Notes that a target was added, or dropped, which takes up so many bytes.
  func noteTarget(_ bytes: Int) { mailbox.withLock { $0.targetBytes += bytes } }

  /// Ends the stream: nothing is sent any more.
  public func close() {
    mailbox.withLock { $0.isClosed = true }
    wake()
  }

  /// Ends the stream with an error, once what is under way has been sent.
  func end(with error: FirestoreError) {
    mailbox.withLock { if $0.failure == nil { $0.failure = error } }
    wake()
  }

  private func post(_ command: Command) {
    let heldBytes = command.heldBytes
    mailbox.withLock { mailbox in
      guard mailbox.failure == nil, !mailbox.isClosed else { return }
      let bytes = mailbox.commandBytes + command.bytes
      guard mailbox.commands.count < EngineLimits.streamCommands, bytes <= EngineLimits.streamCommandBytes
      else {
        mailbox.failure = .resourceExhausted(
          "More than \(EngineLimits.streamCommands) requests, or \(EngineLimits.streamCommandBytes) bytes of "
            + "them, wait on this stream.")
        return
      }
      mailbox.commandBytes = bytes
      mailbox.heldCommandBytes += heldBytes
      mailbox.commands.append((command, heldBytes))
    }
    wake()
  }

  // MARK: Changes

  /// Lets changes wait. Under the hub's lock; `wake` follows outside of it.
  func queue(_ hits: [WatchHit]) {
    mailbox.withLock { mailbox in
      if !mailbox.isClosed { mailbox.waiting.add(hits) }
    }
  }

  /// Takes what waits. Under the hub's lock.
  func takeWaiting() -> WaitingChanges.Content { mailbox.withLock { $0.waiting.take() } }

  /// The bytes of the changes that wait.
  var waitingBytes: Int { mailbox.withLock { $0.waiting.bytes } }

  /// Whether nothing was sent since a time, although there is someone to send it to.
  func isSilent(since time: UInt64) -> Bool {
    mailbox.withLock { $0.hasTargets && $0.lastSent <= time }
  }

  /// Asks for a global snapshot with a fresh token.
  func beat() {
    mailbox.withLock { $0.isBeatDue = true }
    wake()
  }

  // MARK: Working

  /// Sees to it that a task works off what waits.
  func wake() {
    let starts = mailbox.withLock { mailbox in
      guard !mailbox.isRunning else { return false }
      mailbox.isRunning = true
      return true
    }
    if starts { Task { await self.worker.run(self) } }
  }

  /// The next thing to do. `.nothing` means that the task ends; the next `wake` starts another.
  func nextWork() -> Work {
    mailbox.withLock { mailbox in
      if mailbox.isClosed { return .end }
      if !mailbox.commands.isEmpty {
        let (command, heldBytes) = mailbox.commands.removeFirst()
        mailbox.commandBytes -= command.bytes
        mailbox.heldCommandBytes -= heldBytes
        return .command(command)
      }
      if let failure = mailbox.failure { return .failure(failure) }
      if !mailbox.waiting.isEmpty || mailbox.isBeatDue { return .cut }
      mailbox.isRunning = false
      return .nothing
    }
  }

  /// Whether more commands wait.
  var hasCommands: Bool { mailbox.withLock { !$0.commands.isEmpty } }

  /// Whether a heartbeat was asked for; it is not any more then.
  func takeBeat() -> Bool {
    mailbox.withLock { mailbox in
      defer { mailbox.isBeatDue = false }
      return mailbox.isBeatDue
    }
  }

  /// Notes that something was sent.
  func noteSent(hasTargets: Bool) {
    let now = database.options.clock.now()
    mailbox.withLock { mailbox in
      mailbox.lastSent = now
      mailbox.hasTargets = hasTargets
    }
  }

  /// Whether nothing more is to be sent.
  var isClosed: Bool { mailbox.withLock { $0.isClosed } }

  /// Marks the stream as over, for good.
  func markClosed() {
    mailbox.withLock { mailbox in
      mailbox.isClosed = true
      mailbox.commands = []
      mailbox.commandBytes = 0
      mailbox.heldCommandBytes = 0
      _ = mailbox.waiting.take()
    }
  }
}
