// Processes the mailbox of one Listen stream: runs its commands in order, and sends its changes as consistent
// snapshots.
//
// Invariant: a client that applies all sent and buffered responses has the targets' results at the version
// `cursor`. This version never decreases. A global NO_CHANGE (without target ids) is sent only after the CURRENT of every
// added target. Nothing is sent after the caller's credentials have expired or were revoked. Before the changes of a commit
// are sent, the access policy that was in force when the stream took the changes has decided about every target.

import Access
import FirestoreModel
import OrderedStore

/// Processes one stream's mailbox. One `run` executes at a time.
actor WatchWorker {
  var targets: [Int32: ActiveTarget] = [:]
  private var idsByRegistration: [Int: Int32] = [:]
  /// Total bytes of the requests that added the targets.
  private var targetBytes = 0
  /// The ids of targets that the client requested for one snapshot only (`once`). They are removed with the
  /// first global NO_CHANGE.
  private var onceIDs: Set<Int32> = []
  /// The version of the state that the client has received.
  var cursor = Version.zero
  private var buffer: [WatchResponse] = []
  private var bufferBytes = 0
  /// Whether a global NO_CHANGE must be sent before the worker stops.
  private var owesSnapshot = false
  /// Whether the server assigns the target ids; nil before the first target.
  private var serverNumbersTargets: Bool?
  private var nextID: Int32 = 1
  /// The version of the access policy that has decided about all targets.
  private var policyVersion: UInt64

  init(policyVersion: UInt64) { self.policyVersion = policyVersion }

  /// Runs until the mailbox is empty, or the stream has ended.
  func run(_ stream: WatchStream) async {
    do {
      while true {
        switch stream.nextWork() {
        case .command(let command): try await perform(command, stream)
        case .snapshot: try await sendSnapshot(stream)
        case .failure(let error): throw Ended(error: error)
        case .end: throw OutputClosed()
        case .nothing:
          precondition(
            !owesSnapshot && buffer.isEmpty, "invariant: a worker flushes before it asks for more work")
          return
        }
      }
    } catch {
      await finish(stream)
      if let error = Self.finalError(for: error) { await stream.output.fail(error) }
      stream.resumeWaiter()
    }
  }

  /// The error with which the stream ends; nil if its client is gone.
  private static func finalError(for error: any Error) -> FirestoreError? {
    switch error {
    case is OutputClosed: nil
    case let end as Ended: end.error
    case let error as StoreError where error.code == .versionTooOld:
      // The client read so slowly that the store has deleted the history after `cursor`. The client may
      // listen again.
      .unavailable("The stream was read too slowly. Listen again.")
    default: FirestoreError(error)
    }
  }

  /// Thrown when the output is closed.
  struct OutputClosed: Error {}

  /// Thrown instead of sending after the caller's credentials have expired or were revoked, or a load cannot continue.
  struct Ended: Error {
    let error: FirestoreError
  }

  private func finish(_ stream: WatchStream) async {
    stream.markClosed()
    for target in targets.values {
      stream.hub.unregister(target.selection, dependencies: target.dependencies, target.registration)
    }
    targets = [:]
    targetBytes = 0
    onceIDs = []
    idsByRegistration = [:]
    buffer = []
    bufferBytes = 0
    stream.hub.remove(stream)
    stream.database.callerStreams.remove(stream)
  }

  // MARK: Sending

  func emit(_ response: WatchResponse, _ stream: WatchStream) async throws {
    buffer.append(response)
    bufferBytes += response.bytes
    if buffer.count >= EngineLimits.maximumWatchBatchResponses
      || bufferBytes >= stream.database.options.watchBufferLimits.maximumBatchBytes
    {
      try await flush(stream)
    }
  }

  func emit(_ responses: [WatchResponse], _ stream: WatchStream) async throws {
    for response in responses { try await emit(response, stream) }
  }

  /// Flushes the responses at the end of a page of documents, before the caller releases the page's memory. Up to
  /// `maximumWatchRemainderBytes` of responses remain for the next batch.
  func flushPage(_ stream: WatchStream) async throws {
    if bufferBytes > EngineLimits.maximumWatchRemainderBytes { try await flush(stream) }
  }

  private func flush(_ stream: WatchStream) async throws {
    guard !buffer.isEmpty else { return }
    let batch = buffer
    buffer = []
    bufferBytes = 0
    try checkCaller(stream)
    do { try await stream.output.send(batch) { stream.resumeWaiter() } } catch { throw OutputClosed() }
    stream.resumeWaiter()
  }

  private func checkCaller(_ stream: WatchStream) throws {
    if stream.isClosed { throw OutputClosed() }
    if let error = stream.failure { throw Ended(error: error) }
    if stream.hasExpired { throw Ended(error: CallerStreams.expired) }
  }

  /// Throws before the next page of a load if nothing more may be sent: the stream is closed, its caller was revoked, or
  /// the policy that allowed the load was replaced. The client then listens again, and the new policy decides.
  func checkLoad(_ stream: WatchStream) throws {
    try checkCaller(stream)
    let policy = stream.database.policies.current
    guard policy.version == policyVersion || policy.allowsEverything(stream.caller) else {
      throw Ended(
        error: .unavailable("The security rules were replaced while results were sent. Listen again."))
    }
  }

  /// Flushes the responses. If `owesSnapshot` is set, first adds the global NO_CHANGE, at which clients
  /// report the new documents to the application.
  private func sendOwedSnapshot(_ stream: WatchStream) async throws {
    if owesSnapshot {
      owesSnapshot = false
      if !targets.isEmpty {
        let token = ResumeToken.encode(cursor)
        buffer.append(
          .targetChange(WatchTargetChange(.noChange, resumeToken: token, readTime: cursor.timestamp)))
        for id in onceIDs.sorted() {
          if let target = targets[id] { remove(target, stream) }
          buffer.append(.targetChange(WatchTargetChange(.remove, [id])))
        }
      }
    }
    try await flush(stream)
  }

  // MARK: Commands

  private func perform(_ command: WatchStream.Command, _ stream: WatchStream) async throws {
    switch command {
    case .add(let target): try await add(target, stream)
    case .reject(let id, let error):
      try await emit(.targetChange(WatchTargetChange(.remove, [id], cause: error)), stream)
    case .remove(let id):
      if let target = targets[id] { remove(target, stream) }
      try await emit(.targetChange(WatchTargetChange(.remove, [id])), stream)
    }
    // If more commands are queued, one global snapshot follows the last of them.
    if !stream.hasCommands { try await sendOwedSnapshot(stream) }
  }

  func remove(_ target: ActiveTarget, _ stream: WatchStream) {
    if targets.removeValue(forKey: target.id) != nil {
      stream.addTargetBytes(-target.heldBytes)
      targetBytes -= target.bytes
      onceIDs.remove(target.id)
    }
    idsByRegistration[target.registration] = nil
    stream.hub.unregister(target.selection, dependencies: target.dependencies, target.registration)
  }

  private func add(_ request: WatchTarget, _ stream: WatchStream) async throws {
    let id = try targetID(of: request)
    guard targets[id] == nil else {
      throw FirestoreError.invalidArgument("Target id \(id) is active already on this stream.")
    }
    let maximumTargets = stream.database.options.limits.maximumStreamTargets
    guard targets.count < maximumTargets else {
      return try await reject(id, .resourceExhausted("A stream may have \(maximumTargets) targets."), stream)
    }
    guard targetBytes + request.bytes <= EngineLimits.maximumStreamTargetBytes else {
      return try await reject(
        id,
        .resourceExhausted(
          "The requests for a stream's targets may have \(EngineLimits.maximumStreamTargetBytes) bytes in all."
        ),
        stream)
    }
    let selection: WatchSelection
    do {
      selection = try prepare(request.selection, stream.database)
    } catch { return try await reject(id, FirestoreError(error), stream) }
    let registration = stream.hub.makeRegistration()
    var start = start(of: request)
    if let from = start, from > stream.hub.published {
      // The client's token may name a version that was reserved after the last commit, for example for a
      // heartbeat. `advance` reserves a newer version. A token above that version was never issued.
      let reached = try await stream.hub.advance()
      if from > reached { start = nil }
    }
    await stream.hub.refresh()
    let (version, waiting, isRegistered) = stream.hub.takeChanges(
      stream, registering: (selection, registration))
    var target = ActiveTarget(
      id: id, registration: registration, selection, once: request.once, bytes: request.bytes)
    do {
      try await apply(waiting, upTo: version, stream)
    } catch {
      // These changes belong to the stream's other targets. Later resume tokens would skip the changes that
      // could not be sent, so the stream ends.
      stream.hub.unregister(selection, dependencies: target.dependencies, registration)
      throw error
    }
    guard isRegistered else {
      return try await reject(
        id,
        .resourceExhausted(
          "At most \(EngineLimits.maximumUnindexedQueries) queries of a collection that require no value, array element or "
            + "range can be listened to."), stream)
    }
    // If the stream has no other targets, the policy that decides about this target has decided about all of them.
    if targets.isEmpty { policyVersion = stream.database.policies.current.version }
    do {
      try await authorizeTarget(&target, target.selection, at: version, stream)
      if case .query(let query) = target.selection {
        try stream.database.requireIndex(for: query, as: stream.caller)
      }
      try await emit(.targetChange(WatchTargetChange(.add, [id])), stream)
      try await load(&target, request, from: start, at: version, stream)
    } catch {
      stream.hub.unregister(selection, dependencies: target.dependencies, registration)
      if error is OutputClosed || error is Ended || error is ResultMemoryExhausted
        || error is CancellationError || (error as? StoreError)?.code == .versionTooOld
      {
        throw error
      }
      return try await reject(id, FirestoreError(error), stream)
    }
    targets[id] = target
    stream.addTargetBytes(target.heldBytes)
    targetBytes += target.bytes
    if target.once { onceIDs.insert(id) }
    idsByRegistration[registration] = id
    let token = ResumeToken.encode(version)
    try await emit(
      .targetChange(WatchTargetChange(.current, [id], resumeToken: token, readTime: version.timestamp)),
      stream)
    owesSnapshot = true
  }

  func reject(_ id: Int32, _ error: FirestoreError, _ stream: WatchStream) async throws {
    try await emit(.targetChange(WatchTargetChange(.remove, [id], cause: error)), stream)
  }

  /// The target's id. Either the client or the server assigns all ids of a stream.
  private func targetID(of request: WatchTarget) throws -> Int32 {
    guard request.id >= 0, serverNumbersTargets == nil || serverNumbersTargets == (request.id == 0) else {
      throw FirestoreError.invalidArgument("Target ids must be positive, or all of them 0.")
    }
    serverNumbersTargets = request.id == 0
    guard request.id == 0 else { return request.id }
    defer { nextID += 1 }
    return nextID
  }

  private func prepare(
    _ selection: WatchTarget.Selection, _ database: FirestoreDatabase
  ) throws -> WatchSelection {
    switch selection {
    case .query(let query):
      guard query.parent.database == database.name else {
        throw FirestoreError.invalidArgument(
          "The query's parent does not belong to database \(database.name).")
      }
      let prepared = try PreparedQuery(query, database.options.limits.data)
      guard prepared.normalized.findNearest == nil else {
        throw FirestoreError.invalidArgument("A query with find_nearest cannot be listened to.")
      }
      return .query(prepared)
    case .documents(let names):
      var seen: Set<DocumentName> = []
      for name in names where name.database != database.name {
        throw FirestoreError.invalidArgument("Document \(name) does not belong to database \(database.name).")
      }
      return .documents(names.filter { seen.insert($0).inserted })
    }
  }

  private func start(of request: WatchTarget) -> Version? {
    switch request.start {
    case .beginning: nil
    case .resumeToken(let token): ResumeToken.decode(token)
    case .readTime(let time): Version(time)
    }
  }

  // MARK: Snapshots

  private func sendSnapshot(_ stream: WatchStream) async throws {
    let sendsHeartbeat = stream.consumeHeartbeat()
    // The decisions about all targets need a version that the store still has.
    if stream.database.policies.current.version != policyVersion { await stream.hub.refresh() }
    let (version, waiting, _) = stream.hub.takeChanges(stream)
    try await apply(waiting, upTo: version, stream)
    if sendsHeartbeat { owesSnapshot = true }
    try await sendOwedSnapshot(stream)
  }

  /// Sends the changes from `cursor` to `version`.
  private func apply(_ waiting: BufferedChanges.Content, upTo version: Version, _ stream: WatchStream)
    async throws
  {
    precondition(version >= cursor, "invariant: a stream's snapshots are in order")
    defer { cursor = version }
    guard !targets.isEmpty else { return }
    try await redecide(version, stream)
    let changes: PendingChanges
    switch waiting {
    case .changes(let matches):
      if matches.isEmpty { return }
      changes = .merged(SnapshotDelta(matches))
    case .names(let paths): changes = .names(Array(paths), since: cursor)
    case .reset: return try await resetAll(version, stream)
    }
    try await reauthorize(changes, version, stream)
    var registered: [Int: ActiveTarget] = [:]
    for target in targets.values { registered[target.registration] = target }
    do {
      if try await deliver(changes, to: &registered, version, stream) { owesSnapshot = true }
      for (registration, target) in registered where target.window != nil {
        if let id = idsByRegistration[registration] { targets[id] = target }
      }
    } catch let error
      where error is BoundaryOutOfSync || error is TooManyWindowChanges || error is FirestoreError
      || (error as? StoreError)?.code == .versionTooOld
    {
      // `resetAll` loads each target again, and removes those whose loading fails.
      try await resetAll(version, stream)
    }
  }

  /// Repeats the policy's decision for every target if the policy was replaced, otherwise for those whose permission
  /// depends on the time. Removes denied targets.
  private func redecide(_ version: Version, _ stream: WatchStream) async throws {
    let current = stream.database.policies.current
    let isReplaced = current.version != policyVersion
    precondition(current.version >= policyVersion, "invariant: the versions of a database's policies rise")
    policyVersion = current.version
    guard !current.allowsEverything(stream.caller) else { return }
    let concerned = targets.values.filter { isReplaced || $0.dependsOnTime }.sorted { $0.id < $1.id }
    try await authorizeAgain(concerned.map { (target: $0, selection: $0.selection) }, at: version, stream)
  }

  /// Repeats the policy's decision for every target whose permission depends on a changed document, and
  /// removes denied targets.
  private func reauthorize(_ changes: PendingChanges, _ version: Version, _ stream: WatchStream) async throws
  {
    guard !stream.database.policies.current.allowsEverything(stream.caller) else { return }
    var concerned: [(target: ActiveTarget, selection: WatchSelection)] = []
    for target in targets.values {
      let named = changes.named(by: target)
      guard !named.isEmpty else { continue }
      var selection = target.selection
      if case .documents = selection, target.dependencies.isDisjoint(with: named) {
        // The policy decides about each named document separately, so only the changed documents are
        // checked again.
        selection = .documents(named.compactMap { DocumentName(database: stream.database.name, path: $0) })
      }
      concerned.append((target, selection))
    }
    try await authorizeAgain(concerned, at: version, stream)
  }

  /// Removes an active target with a cause.
  func revoke(_ id: Int32, _ error: any Error, _ stream: WatchStream) async throws {
    if (error as? StoreError)?.code == .versionTooOld { throw error }
    if let target = targets[id] { remove(target, stream) }
    try await reject(id, FirestoreError(error), stream)
  }

  /// Sends RESET and all documents for each target, because too much changed to send the changes.
  private func resetAll(_ version: Version, _ stream: WatchStream) async throws {
    for id in targets.keys.sorted() {
      guard var target = targets[id] else { continue }
      do {
        // The documents that the permission depends on may have changed too.
        try await authorizeTarget(&target, target.selection, at: version, stream)
      } catch {
        try await revoke(id, error, stream)
        continue
      }
      try await emit(.targetChange(WatchTargetChange(.reset, [id])), stream)
      do {
        try await loadAll(&target, at: version, stream)
      } catch let error as FirestoreError {
        // The error concerns only this target. For example, its results may be too large to sort. The other
        // targets continue.
        try await revoke(id, error, stream)
        continue
      }
      targets[id] = target
      try await emit(
        .targetChange(
          WatchTargetChange(
            .current, [id], resumeToken: ResumeToken.encode(version), readTime: version.timestamp)), stream)
    }
    owesSnapshot = true
  }
}

extension WatchResponse {
  /// The approximate size in memory and in the encoded message, in bytes.
  fileprivate var bytes: Int {
    switch self {
    case .targetChange: 128
    case .documentChange(let document, let targets, let removed):
      document.encoded.count + 8 * (targets.count + removed.count) + 64
    case .documentDelete(let name, _, let removed), .documentRemove(let name, _, let removed):
      name.path.segments.reduce(128 + 8 * removed.count) { $0 + $1.utf8.count }
    case .existenceFilter(_, _, let names): (names?.bitmap.count ?? 0) + 64
    }
  }
}
