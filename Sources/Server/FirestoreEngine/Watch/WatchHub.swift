// Distributes the commits of one database to the Listen streams whose targets they affect, in order.
//
// A *target* is a query, or a list of documents, that a client listens to on a stream. Commits have ascending
// versions, and a database can be read as of a version.
//
// Invariant: the streams have received every commit up to the version `published`, which never decreases.
// `takeChanges` registers a target and takes the stream's buffered changes at the same value of `published`.
// Therefore the target's documents at that version and the changes that are buffered later contain every commit
// exactly once.

import Access
import FirestoreModel
import Locking
import OrderedStore

/// The Listen streams of one database, and the index of their targets.
final class WatchHub: Sendable {
  private struct State {
    var index = TargetIndex()
    var published: Version
    var streams = StreamGroups()
    var nextRegistration = 1
    var isSendingHeartbeats = false
    var isClosed = false
  }

  private let rows: any OrderedDatabase
  private let clock: any EngineClock
  private let heartbeatInterval: UInt64
  // The subscription and the observation are set once, before the hub is shared.
  private let subscription = Guarded<(any LogSubscription)?>(nil)
  private let observation = Guarded<PolicyObservation?>(nil)
  private let state: Guarded<State>
  private let queue = WakeQueue()

  init(
    _ rows: any OrderedDatabase, _ policies: PolicySlot<FirestoreAccess>, _ options: FirestoreEngine.Options
  ) {
    self.rows = rows
    clock = options.clock
    heartbeatInterval = options.heartbeatInterval
    state = Guarded(State(published: .zero))
    let following = rows.follow { [weak self] record in self?.publish(record) }
    subscription.withLock { $0 = following }
    state.withLock { $0.published = max($0.published, following.startsAfter) }
    let observing = policies.observe { [weak self] in self?.replacePolicy() }
    observation.withLock { $0 = observing }
  }

  deinit { subscription.withLock { $0 }?.cancel() }

  /// The version up to which streams have received every commit.
  var published: Version { state.withLock { $0.published } }

  /// Hands a commit to the affected streams. Called on the store's publishing thread.
  private func publish(_ record: LogRecord) {
    guard let commit = record.attachment as? CommitRecord else { return }
    precondition(commit.version == record.version, "invariant: a record has its commit's version")
    let touched = state.withLock { state -> [WatchStream] in
      precondition(record.version > state.published, "invariant: commits are published in order")
      state.published = record.version
      var matchesByStream: [ObjectIdentifier: (WatchStream, [WatchMatch])] = [:]
      for change in commit.changes {
        state.index.match(change) { stream, match in
          matchesByStream[ObjectIdentifier(stream), default: (stream, [])].1.append(match)
        }
      }
      for (stream, matches) in matchesByStream.values { stream.buffer(matches) }
      return matchesByStream.values.map(\.0)
    }
    queue.wake(touched)
  }

  // MARK: Streams

  /// Adds a stream, and sends heartbeats while there are streams. Returns false if the hub is closed.
  func add(_ stream: WatchStream) -> Bool {
    let (isOpen, starts) = state.withLock { state -> (Bool, Bool) in
      guard !state.isClosed else { return (false, false) }
      state.streams.insert(stream)
      defer { state.isSendingHeartbeats = true }
      return (true, !state.isSendingHeartbeats)
    }
    if starts { startHeartbeats() }
    return isOpen
  }

  /// The number of open streams.
  var streamCount: Int { state.withLock { $0.streams.streamCount } }

  /// Removes a stream. The caller has unregistered its targets.
  func remove(_ stream: WatchStream) { state.withLock { $0.streams.remove(stream) } }

  /// Wakes every stream after the access policy was replaced, so that the new policy decides about its targets.
  private func replacePolicy() {
    let streams = state.withLock { $0.streams.streams }
    for stream in streams { stream.replacePolicy() }
    queue.wake(streams)
  }

  /// Ends all streams.
  func close() {
    let streams = state.withLock { state in
      state.isClosed = true
      return state.streams.streams
    }
    for stream in streams { stream.end(with: .unavailable("The server is shutting down.")) }
  }

  // MARK: Registration and versions

  /// A registration number for a target, unique in the hub.
  func makeRegistration() -> Int {
    state.withLock { state in
      defer { state.nextRegistration += 1 }
      return state.nextRegistration
    }
  }

  /// Takes the stream's buffered changes and, if `target` is given, registers that target at the same
  /// version. `isRegistered` is false if the target index has no capacity for the target.
  func takeChanges(
    _ stream: WatchStream, registering target: (WatchSelection, Int)? = nil
  ) -> (version: Version, waiting: BufferedChanges.Content, isRegistered: Bool) {
    state.withLock { state in
      var isRegistered = true
      if let (selection, registration) = target {
        let reference = TargetReference(stream: stream, registration: registration)
        switch selection {
        case .documents(let names): for name in names { state.index.add(name.path, reference) }
        case .query(let query): isRegistered = state.index.add(query, reference)
        }
      }
      return (state.published, stream.takeBufferedChanges(), isRegistered)
    }
  }

  /// Removes a target from the index.
  func unregister(_ selection: WatchSelection, dependencies: Set<ResourcePath>, _ registration: Int) {
    state.withLock { state in
      switch selection {
      case .documents(let names): for name in names { state.index.remove(name.path, registration) }
      case .query(let query): state.index.remove(query, registration)
      }
      for path in dependencies { state.index.removeDependency(path, registration) }
    }
  }

  /// Subscribes a registered target to changes of further documents, on which its permission depends. Returns
  /// the current version: the target receives only later changes of these documents.
  func addDependencies(on paths: Set<ResourcePath>, _ registration: Int, of stream: WatchStream) -> Version {
    state.withLock { state in
      let reference = TargetReference(stream: stream, registration: registration)
      for path in paths { state.index.addDependency(path, reference) }
      return state.published
    }
  }

  /// Reserves a version above every commit so far, raises `published` to it, and returns it.
  func advance() async throws -> Version {
    // When the store completes a reservation, it has already called `publish` for every earlier commit.
    let version = try await rows.reserveVersion()
    state.withLock { $0.published = max($0.published, version) }
    return version
  }

  /// Keeps `published` close to the current time even when nothing commits. The store deletes old versions, so the
  /// version at which a target is read, and its resume token, could otherwise soon be too old to read.
  func refresh() async {
    guard let recent = try? await rows.recentVersion(within: FirestoreDatabase.maximumReadAge) else { return }
    let published = published
    guard published < recent, recent.microseconds - published.microseconds > FirestoreDatabase.maximumReadAge
    else {
      return
    }
    _ = try? await advance()
  }

  // MARK: Heartbeats

  /// Sends every stream a fresh resume token once in each heartbeat interval, so that clients see that the connection is
  /// alive. One task serves all streams, group by group.
  private func startHeartbeats() {
    Task { [weak self, clock, heartbeatInterval] in
      let interval = heartbeatInterval / UInt64(StreamGroups.count)
      var next = clock.now() + interval
      while true {
        do { try await clock.sleep(until: next) } catch { return }
        let now = max(clock.now(), next)
        // A late timer serves all groups that are due.
        let groups = 1 + (now - next) / interval
        next += groups * interval
        guard let hub = self, let due = hub.dueForHeartbeat(groups) else { return }
        // A store that cannot write cannot reserve a version. Streams then stay silent, and clients
        // reconnect.
        guard !due.isEmpty, (try? await hub.advance()) != nil else { continue }
        for stream in due { stream.requestHeartbeat() }
        hub.queue.wake(due)
      }
    }
  }

  /// The streams of the next groups. Returns nil if there are no streams, which ends the heartbeats.
  private func dueForHeartbeat(_ groups: UInt64) -> [WatchStream]? {
    state.withLock { state in
      if state.streams.streamCount == 0 || state.isClosed {
        state.isSendingHeartbeats = false
        return nil
      }
      return state.streams.streamsOfNextGroups(groups)
    }
  }
}

/// The documents that a registered target selects.
enum WatchSelection: Sendable {
  case documents([DocumentName])
  case query(PreparedQuery)
}
