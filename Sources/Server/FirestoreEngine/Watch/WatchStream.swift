// One stream of Firestore's Listen method: a mailbox for the client's commands and for changes of documents,
// which arrive on any thread. One task at a time (`WatchWorker`) processes them. `wake` starts the task on
// demand, so an idle stream has no task.
//
// A stream has *targets*: the queries and documents that its client listens to. The responses follow
// Firestore's protocol: ADD confirms a target, its documents follow, and CURRENT marks them as complete.
// NO_CHANGE without target ids marks a consistent snapshot of all targets, and RESET discards a target's
// documents. REMOVE ends a target.
//
// Invariant: the mailbox is bounded. If too many changes wait, `BufferedChanges` drops their details. If too
// many commands wait, the stream ends with an error.

package import Access
public import FirestoreModel
import Locking
import OrderedStore

/// One Listen stream. The methods for commands return immediately. The responses go to the stream's output
/// later.
public final class WatchStream: Sendable {
  /// A command from the client.
  enum Command {
    case add(WatchTarget)
    case remove(Int32)
    case reject(Int32, FirestoreError)

    var bytes: Int {
      if case .add(let target) = self { return target.bytes }
      return 0
    }

    /// The approximate memory of the command, in bytes: its request and the parsed field mask, which may be
    /// many times larger than its encoding.
    var heldBytes: Int {
      guard case .add(let target) = self, case .query(let query) = target.selection else { return bytes }
      return bytes + (query.structured.select?.heldBytes ?? 0)
    }
  }

  /// The next work of the stream's task.
  enum Work {
    case command(Command)
    /// Buffered changes, or a heartbeat, to send as one snapshot.
    case snapshot
    case failure(FirestoreError)
    case end
    case nothing
  }

  private struct Mailbox {
    var commands: [(command: Command, heldBytes: Int)] = []
    var commandBytes = 0
    var heldCommandBytes = 0
    var buffered: BufferedChanges
    /// Memory that is reserved for the buffered changes.
    var reservedBufferBytes = 0
    var isHeartbeatRequested = false
    /// Whether the access policy was replaced, so that the new policy must decide about all targets.
    var isPolicyReplaced = false
    var isRunning = false
    /// The caller of `wakeAndWait`, which waits until the running task sends something or ends.
    var waiter: CheckedContinuation<Void, Never>?
    var isClosed = false
    var failure: FirestoreError?
    var targetBytes = 0

    /// Reserves the memory of the buffered changes beyond `watchBufferAllowance`, and releases memory that they no longer
    /// need. Returns false if it cannot reserve memory for their growth.
    mutating func reserveBuffer(_ memory: (any ResultMemory)?) -> Bool {
      let needed = max(0, buffered.bytes - EngineLimits.watchBufferAllowance)
      guard let memory, needed != reservedBufferBytes else { return true }
      if needed > reservedBufferBytes {
        guard memory.reserveNow(needed - reservedBufferBytes) else { return false }
      } else {
        memory.resize(from: reservedBufferBytes, to: needed)
      }
      reservedBufferBytes = needed
      return true
    }

    /// Discards commands and changes.
    mutating func discard(_ memory: (any ResultMemory)?) {
      commands = []
      commandBytes = 0
      heldCommandBytes = 0
      _ = buffered.take()
      _ = reserveBuffer(memory)
    }
  }

  let database: FirestoreDatabase
  let hub: WatchHub
  /// The caller; `Principal.nobody` if its credentials are for another project.
  package let caller: Principal
  let output: any WatchOutput
  private let mailbox: Guarded<Mailbox>
  private let worker: WatchWorker

  init(_ database: FirestoreDatabase, _ hub: WatchHub, _ caller: Principal, _ output: any WatchOutput) {
    self.database = database
    self.hub = hub
    self.caller = caller.acting(in: database.name.project)
    self.output = output
    mailbox = Guarded(Mailbox(buffered: BufferedChanges(database.options.watchBufferLimits)))
    worker = WatchWorker(policyVersion: database.policies.current.version)
  }

  // MARK: Commands

  /// Adds a target. The responses are ADD, the target's documents, CURRENT and a global NO_CHANGE. If the
  /// target is rejected, the response is REMOVE with the error.
  ///
  /// A target id that is already active ends the stream with INVALID_ARGUMENT.
  public func addTarget(_ target: WatchTarget) { enqueue(.add(target)) }

  /// Removes a target. The response is exactly one REMOVE, even if the target does not exist.
  public func removeTarget(_ id: Int32) { enqueue(.remove(id)) }

  /// Rejects a target whose request could not be parsed. REMOVE with the error is sent after the responses of
  /// earlier commands.
  public func rejectTarget(_ id: Int32, _ error: FirestoreError) { enqueue(.reject(id, error)) }

  /// The approximate memory of queued requests and active targets, in bytes.
  public var heldBytes: Int { mailbox.withLock { $0.heldCommandBytes + $0.targetBytes } }

  /// Adds to the recorded memory of active targets. `bytes` is negative when a target is removed.
  func addTargetBytes(_ bytes: Int) {
    mailbox.withLock { mailbox in
      mailbox.targetBytes += bytes
      precondition(mailbox.targetBytes >= 0, "invariant: only added targets are removed")
    }
  }

  /// Closes the stream. Nothing more is sent.
  public func close() {
    mailbox.withLock { $0.isClosed = true }
    wake()
  }

  /// Ends the stream with an error, after the commands that are queued already.
  func end(with error: FirestoreError) {
    mailbox.withLock { if $0.failure == nil { $0.failure = error } }
    wake()
  }

  /// Records that the access policy was replaced: the next run lets the new policy decide about all targets. The caller
  /// wakes the stream.
  func replacePolicy() { mailbox.withLock { $0.isPolicyReplaced = true } }

  /// The error with which the stream has to end; nil for none.
  var failure: FirestoreError? { mailbox.withLock { $0.failure } }

  /// Whether the caller's credentials have expired.
  var hasExpired: Bool {
    caller.expiry != nil && caller.hasExpired(at: database.options.clock.wallTime())
  }

  private func enqueue(_ command: Command) {
    let heldBytes = command.heldBytes
    mailbox.withLock { mailbox in
      guard mailbox.failure == nil, !mailbox.isClosed else { return }
      let bytes = mailbox.commandBytes + command.bytes
      guard mailbox.commands.count < EngineLimits.maximumStreamCommands,
        bytes <= EngineLimits.maximumStreamCommandBytes
      else {
        mailbox.failure = .resourceExhausted(
          "More than \(EngineLimits.maximumStreamCommands) requests, or \(EngineLimits.maximumStreamCommandBytes) bytes of "
            + "requests, are queued on this stream.")
        return
      }
      mailbox.commandBytes = bytes
      mailbox.heldCommandBytes += heldBytes
      mailbox.commands.append((command, heldBytes))
    }
    wake()
  }

  // MARK: Changes

  /// Buffers changes. If their memory is exhausted, drops their details. `WatchHub` calls this while it holds its lock, and
  /// calls `wake` after it has released the lock.
  func buffer(_ matches: [WatchMatch]) {
    mailbox.withLock { mailbox in
      guard !mailbox.isClosed else { return }
      mailbox.buffered.add(matches)
      if !mailbox.reserveBuffer(output.memory) {
        mailbox.buffered.reset()
        _ = mailbox.reserveBuffer(output.memory)
      }
    }
  }

  /// Takes the buffered changes. Called under the lock of `WatchHub`.
  func takeBufferedChanges() -> BufferedChanges.Content {
    mailbox.withLock { mailbox in
      defer { _ = mailbox.reserveBuffer(output.memory) }
      return mailbox.buffered.take()
    }
  }

  /// The account from which the stream reserves memory for the results that it reads.
  var memory: (any ResultMemory)? { output.memory.map { WaiterResumingMemory(stream: self, memory: $0) } }

  /// Makes the pages of one read: batches of documents, whose memory is reserved for this stream.
  func makeResultPages() -> ResultPages {
    ResultPages(memory, documentBytes: database.options.limits.data.documentBytes)
  }

  /// The bytes of the buffered changes.
  var bufferedBytes: Int { mailbox.withLock { $0.buffered.bytes } }

  /// Requests a global snapshot with a fresh token. The caller wakes the stream.
  func requestHeartbeat() { mailbox.withLock { $0.isHeartbeatRequested = true } }

  // MARK: Working

  /// Starts the stream's task unless it is running.
  func wake() {
    let starts = mailbox.withLock { mailbox in
      guard !mailbox.isRunning else { return false }
      mailbox.isRunning = true
      return true
    }
    if starts { Task { await self.worker.run(self) } }
  }

  /// Starts the stream's task and waits until it has sent a batch, waits for the client or for memory, or ends. Returns
  /// immediately if the task is running already.
  func wakeAndWait() async {
    await withCheckedContinuation { continuation in
      let starts = mailbox.withLock { mailbox in
        guard !mailbox.isRunning else { return false }
        mailbox.isRunning = true
        mailbox.waiter = continuation
        return true
      }
      if starts { Task { await self.worker.run(self) } } else { continuation.resume() }
    }
  }

  /// Ends the wait of `wakeAndWait`: the task has sent a batch, waits for the client, or has ended the stream.
  func resumeWaiter() {
    let waiter = mailbox.withLock { mailbox in
      defer { mailbox.waiter = nil }
      return mailbox.waiter
    }
    waiter?.resume()
  }

  /// The next work. `.nothing` ends the task; the next `wake` starts another.
  func nextWork() -> Work {
    var waiter: CheckedContinuation<Void, Never>?
    defer { waiter?.resume() }
    return mailbox.withLock { mailbox in
      if mailbox.isClosed { return .end }
      if !mailbox.commands.isEmpty {
        let (command, heldBytes) = mailbox.commands.removeFirst()
        mailbox.commandBytes -= command.bytes
        mailbox.heldCommandBytes -= heldBytes
        precondition(
          mailbox.commandBytes >= 0 && mailbox.heldCommandBytes >= 0,
          "invariant: the byte counts are those of the queued commands")
        return .command(command)
      }
      if let failure = mailbox.failure { return .failure(failure) }
      if !mailbox.buffered.isEmpty || mailbox.isHeartbeatRequested || mailbox.isPolicyReplaced {
        mailbox.isPolicyReplaced = false
        return .snapshot
      }
      mailbox.isRunning = false
      waiter = mailbox.waiter
      mailbox.waiter = nil
      return .nothing
    }
  }

  /// Whether more commands are queued.
  var hasCommands: Bool { mailbox.withLock { !$0.commands.isEmpty } }

  /// Returns whether a heartbeat was requested, and clears the request.
  func consumeHeartbeat() -> Bool {
    mailbox.withLock { mailbox in
      defer { mailbox.isHeartbeatRequested = false }
      return mailbox.isHeartbeatRequested
    }
  }

  /// Whether the stream is closed.
  var isClosed: Bool { mailbox.withLock { $0.isClosed } }

  /// Marks the stream as closed and discards its commands and changes.
  func markClosed() {
    mailbox.withLock { mailbox in
      mailbox.isClosed = true
      mailbox.discard(output.memory)
    }
  }
}

extension WatchStream: CallerStream {
  /// Discards queued commands and changes.
  package func invalidate(with error: FirestoreError) {
    mailbox.withLock { mailbox in
      mailbox.discard(output.memory)
      mailbox.failure = error
    }
  }

  package func endInvalidated() async { await wakeAndWait() }
}

/// The account from which a stream reserves memory. Before a wait for memory, resumes the caller of `wakeAndWait`, so that
/// ``WakeQueue`` wakes another stream.
private struct WaiterResumingMemory: ResultMemory {
  let stream: WatchStream
  let memory: any ResultMemory

  func reserve(_ bytes: Int) async throws {
    if memory.reserveNow(bytes) { return }
    stream.resumeWaiter()
    try await memory.reserve(bytes)
  }

  func reserveNow(_ bytes: Int) -> Bool { memory.reserveNow(bytes) }

  func resize(from old: Int, to new: Int) { memory.resize(from: old, to: new) }
}
