// One database's fan-out: commits come up once, in order, and go to the streams whose targets they touch.
//
// Invariant: `published` is a version up to which every commit has been handed to the streams. Registering a target
// and taking a stream's waiting changes happen at one `published`, so that a target that is then read at this
// version, and all changes queued later, together miss nothing and double nothing.

import FirestoreModel
import Locking
import OrderedStore

/// The listeners of one database.
final class WatchHub: Sendable {
  private struct State {
    var index = TargetIndex()
    var published: Version
    var streams: [ObjectIdentifier: WatchStream] = [:]
    var nextRegistration = 1
    var isBeating = false
    var isClosed = false
  }

  private let rows: any OrderedDatabase
  private let clock: any EngineClock
  private let heartbeat: UInt64
  // Safety of the two-step start: the subscription is set once, before anyone else sees the hub.
  private let subscription = Guarded<(any LogSubscription)?>(nil)
  private let state: Guarded<State>

  init(_ rows: any OrderedDatabase, _ options: FirestoreEngine.Options) {
    self.rows = rows
    clock = options.clock
    heartbeat = options.heartbeat
    state = Guarded(State(published: .zero))
    let following = rows.follow { [weak self] record in self?.publish(record) }
    subscription.withLock { $0 = following }
    state.withLock { $0.published = max($0.published, following.startsAfter) }
  }

  deinit { subscription.withLock { $0 }?.cancel() }

  /// The version up to which streams have been handed everything.
  var published: Version { state.withLock { $0.published } }

  /// Hands a commit to the streams that it touches. On the store's publishing thread.
  private func publish(_ record: LogRecord) {
    guard let commit = record.attachment as? CommitRecord else { return }
    let touched = state.withLock { state -> [WatchStream] in
      state.published = max(state.published, record.version)
      var hits: [ObjectIdentifier: (WatchStream, [WatchHit])] = [:]
      for change in commit.changes {
        state.index.match(change) { stream, hit in
          hits[ObjectIdentifier(stream), default: (stream, [])].1.append(hit)
        }
      }
      for (stream, hits) in hits.values { stream.queue(hits) }
      return hits.values.map(\.0)
    }
    for stream in touched { stream.wake() }
  }

  // MARK: Streams

  /// Takes in a stream, and keeps hearts beating while there is one.
  func add(_ stream: WatchStream) -> Bool {
    let (isOpen, starts) = state.withLock { state -> (Bool, Bool) in
      guard !state.isClosed else { return (false, false) }
      state.streams[ObjectIdentifier(stream)] = stream
      defer { state.isBeating = true }
      return (true, !state.isBeating)
    }
    if starts { beat() }
    return isOpen
  }

  /// The streams that have not ended.
  var streamCount: Int { state.withLock { $0.streams.count } }

  /// Lets go of a stream. Its targets have to be unregistered before.
  func remove(_ stream: WatchStream) { state.withLock { $0.streams[ObjectIdentifier(stream)] = nil } }

  /// Ends all streams.
  func close() {
    let streams = state.withLock { state in
      state.isClosed = true
      return Array(state.streams.values)
    }
    for stream in streams { stream.end(with: .unavailable("The server is shutting down.")) }
  }

  // MARK: Cuts

  /// A number for a target, unique in the hub.
  func makeRegistration() -> Int {
    state.withLock { state in
      defer { state.nextRegistration += 1 }
      return state.nextRegistration
    }
  }

  /// Registers a target, if one is given and there is room for it, and takes what waits for the stream, at one version.
  func cut(
    _ stream: WatchStream, registering target: (WatchSelection, Int)? = nil
  ) -> (version: Version, waiting: WaitingChanges.Content, isRegistered: Bool) {
    state.withLock { state in
      var isRegistered = true
      if let (selection, registration) = target {
        let reference = TargetReference(stream: stream, registration: registration)
        switch selection {
        case .documents(let names): for name in names { state.index.add(name.path, reference) }
        case .query(let query): isRegistered = state.index.add(query, reference)
        }
      }
      return (state.published, stream.takeWaiting(), isRegistered)
    }
  }

  /// Takes a target out of the index.
  func unregister(_ selection: WatchSelection, dependencies: Set<ResourcePath>, _ registration: Int) {
    state.withLock { state in
      switch selection {
      case .documents(let names): for name in names { state.index.remove(name.path, registration) }
      case .query(let query): state.index.remove(query, registration)
      }
      for path in dependencies { state.index.removeDependency(path, registration) }
    }
  }

  /// Lets a registered target be told of changes of further documents, too. Returns the version up to which it is not told.
  func depend(on paths: Set<ResourcePath>, _ registration: Int, of stream: WatchStream) -> Version {
    state.withLock { state in
      let reference = TargetReference(stream: stream, registration: registration)
      for path in paths { state.index.addDependency(path, reference) }
      return state.published
    }
  }

  /// Raises `published` to a version above every commit so far, and returns it.
  func advance() async throws -> Version {
    // When a reservation is answered, every earlier commit has been handed to `publish`.
    let version = try await rows.reserveVersion()
    state.withLock { $0.published = max($0.published, version) }
    return version
  }

  /// Sees to it that `published` is of about the time that it is, also where nothing has been committed for long: what
  /// a target reads there, and the tokens that begin there, must not fall out of history soon.
  func refresh() async {
    guard let recent = try? await rows.recentVersion(within: FirestoreDatabase.readAge) else { return }
    let published = published
    guard published < recent, recent.microseconds - published.microseconds > FirestoreDatabase.readAge else {
      return
    }
    _ = try? await advance()
  }

  // MARK: Heartbeats

  /// Gives idle streams a fresh token, so that clients know that the connection lives. One task for all streams.
  private func beat() {
    Task { [weak self, clock, heartbeat] in
      var next = clock.now() + heartbeat / 4
      while true {
        do { try await clock.sleep(until: next) } catch { return }
        guard let hub = self else { return }
        next = clock.now() + heartbeat / 4
        let due = hub.dueForHeartbeat()
        guard let due else { return }
        // A store that cannot write cannot reserve a version either: then streams fall silent, and clients reconnect.
        guard !due.isEmpty, (try? await hub.advance()) != nil else { continue }
        for stream in due { stream.beat() }
      }
    }
  }

  /// The streams that have been silent for long; nil if there are no streams at all and beating ends.
  private func dueForHeartbeat() -> [WatchStream]? {
    let now = clock.now()
    let quiet = heartbeat - heartbeat / 4
    let streams = state.withLock { state -> [WatchStream]? in
      if state.streams.isEmpty || state.isClosed {
        state.isBeating = false
        return nil
      }
      return Array(state.streams.values)
    }
    return streams?.filter { $0.isSilent(since: now < quiet ? UInt64(0) : now - quiet) }
  }
}

/// What a registered target looks at.
enum WatchSelection: Sendable {
  case documents([DocumentName])
  case query(PreparedQuery)
}
