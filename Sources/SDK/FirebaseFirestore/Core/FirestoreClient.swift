// The Firestore client: passes events of the app, the network and the clock to the sync engine, and performs
// its actions.
//
// Invariant: the engine is used only on `queue`. The app's closures are called only on the callback queue, in
// the order of the events.

import FirebaseCore
import FirestoreModel
import Foundation
import Locking

// Safe to share: every variable is used only on `queue`.
final class FirestoreClient: @unchecked Sendable {
  typealias ViewResult = Result<ViewSnapshot, FirestoreError>
  typealias DocumentResult = Result<(CachedDocument?, SnapshotMetadata), FirestoreError>

  private struct Listener {
    let cancellation: CancellationFlag
    /// Whether the listener waits for one result. It is notified if the client ends before the result
    /// arrives.
    let isOnce: Bool
    let deliver: @Sendable (ViewResult) -> Void
  }

  static let terminated = FirestoreError(.cancelled, "The client has been terminated.")

  let database: DatabaseName
  let datastore: Datastore
  let callbackQueue: DispatchQueue
  /// Whether the client has been terminated. Code on other queues reads it.
  let hasEnded = Guarded(false)

  private let queue = DispatchQueue(label: "firestore.sync")
  /// Bundles are read on this queue one after another, because reading may wait for a file.
  private let bundleQueue = DispatchQueue(label: "firestore.bundles")
  var engine: SyncEngine
  var calls: [StreamKind: (number: Int, call: ClientGRPCCall)] = [:]
  var writeRequests = WriteRequests()
  private var timers: [EngineTimer: DispatchWorkItem] = [:]
  private var listeners: [ListenerID: Listener] = [:]
  private var inSyncListeners: [ListenerID: (CancellationFlag, @Sendable () -> Void)] = [:]
  private var completions: [CompletionID: @Sendable (FirestoreError?) -> Void] = [:]
  private var nextNumber = 0
  private var isTerminated = false
  /// The observation of the signed-in user, until the client ends.
  private var userObservation: TokenObservation?

  init(
    database: DatabaseName, appID: String, address: ServerAddress, callbackQueue: DispatchQueue,
    cache: CacheChoice, credentials: CallCredentials = CallCredentials(),
    cacheFailed: @escaping @Sendable (CacheFailure) -> Void = { $0.log() }
  ) {
    self.database = database
    self.callbackQueue = callbackQueue
    datastore = Datastore(
      database: database, appID: appID, connection: ClientGRPCConnection(address), credentials: credentials)
    // A placeholder. The first event on the queue opens the cache and replaces this engine.
    engine = SyncEngine(persistence: MemoryPersistence(isEager: true), seed: 0)
    let observer = CacheObserver(
      failed: cacheFailed, syncFailed: { [weak self] in self?.event { $0.engine.cacheSyncFailed() } })
    event { client in
      client.engine = SyncEngine(
        persistence: cache.open(client.database, observer: observer), seed: UInt64.random(in: 0...UInt64.max))
      client.observeUser(of: credentials)
      client.engine.enableNetwork()
      if let size = cache.size, size != FirestoreCacheSizeUnlimited {
        client.engine.startGarbageCollection(above: Int(size))
      }
    }
  }

  /// Observes the signed-in user, and uses that user's mutation queue.
  private func observeUser(of credentials: CallCredentials) {
    userObservation = credentials.observeUser { [weak self] user in
      self?.event { client in
        guard !client.isTerminated, credentials.user != user else { return }
        credentials.user = user
        client.engine.switchUser(to: user)
      }
    }
    // Read after the observation has begun, so that no sign-in is missed. Writes that follow belong to this
    // user.
    credentials.user = credentials.signedInUser
    if let user = credentials.user { engine.switchUser(to: user) }
  }

  // MARK: Events

  /// Passes an event to the engine, and then performs its actions.
  func event(_ body: @escaping @Sendable (FirestoreClient) -> Void) {
    queue.async { [self] in
      body(self)
      perform()
    }
  }

  private func newNumber() -> Int {
    nextNumber += 1
    return nextNumber
  }

  private func register(_ completion: @escaping @Sendable (FirestoreError?) -> Void) -> CompletionID {
    let id = CompletionID(number: newNumber())
    completions[id] = completion
    return id
  }

  // MARK: Requests of the app

  func listen(
    _ query: ClientQuery, options: ListenerOptions, isOnce: Bool = false,
    deliver: @escaping @Sendable (ViewResult) -> Void
  ) -> any ListenerRegistration {
    let cancellation = CancellationFlag()
    let listenerID = Guarded<ListenerID?>(nil)
    event { client in
      guard !client.isTerminated else {
        if isOnce { client.callbackQueue.async { deliver(.failure(FirestoreClient.terminated)) } }
        return
      }
      let id = ListenerID(number: client.newNumber())
      listenerID.withLock { $0 = id }
      client.listeners[id] = Listener(cancellation: cancellation, isOnce: isOnce, deliver: deliver)
      client.engine.listen(id, to: query, options: options)
    }
    return SnapshotListenerRegistration(cancellation) { [weak self] in
      self?.event { client in
        guard let id = listenerID.withLock({ $0 }) else { return }
        client.listeners[id] = nil
        client.engine.unlisten(id)
      }
    }
  }

  func listenInSync(_ deliver: @escaping @Sendable () -> Void) -> any ListenerRegistration {
    let cancellation = CancellationFlag()
    let listenerID = Guarded<ListenerID?>(nil)
    event { client in
      let id = ListenerID(number: client.newNumber())
      listenerID.withLock { $0 = id }
      client.inSyncListeners[id] = (cancellation, deliver)
      client.engine.addInSyncListener(id)
    }
    return SnapshotListenerRegistration(cancellation) { [weak self] in
      self?.event { client in
        guard let id = listenerID.withLock({ $0 }) else { return }
        client.inSyncListeners[id] = nil
        client.engine.removeInSyncListener(id)
      }
    }
  }

  func write(_ writes: [Write], completion: (@Sendable (FirestoreError?) -> Void)?) {
    if writes.isEmpty {
      if let completion { callbackQueue.async { completion(nil) } }
      return
    }
    event { client in
      guard !client.isTerminated else {
        if let completion { client.callbackQueue.async { completion(FirestoreClient.terminated) } }
        return
      }
      let id = completion.map { client.register($0) }
      client.engine.write(writes, at: FirestoreClient.now, completion: id)
    }
  }

  static var now: ModelTimestamp {
    ModelTimestamp(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000))
  }

  func waitForPendingWrites(_ completion: @escaping @Sendable (FirestoreError?) -> Void) {
    event { client in
      if client.isTerminated {
        client.callbackQueue.async { completion(FirestoreClient.terminated) }
      } else {
        client.engine.waitForPendingWrites(client.register(completion))
      }
    }
  }

  func setNetwork(enabled: Bool, completion: (@Sendable (FirestoreError?) -> Void)?) {
    event { client in
      if !client.isTerminated {
        if enabled { client.engine.enableNetwork() } else { client.engine.disableNetwork() }
      }
      if let completion { client.callbackQueue.async { completion(nil) } }
    }
  }

  func terminate(_ completion: (@Sendable (FirestoreError?) -> Void)?) {
    event { client in
      if !client.isTerminated {
        client.isTerminated = true
        client.userObservation?.cancel()
        client.hasEnded.withLock { $0 = true }
        for id in client.engine.shutDown() {
          if let listener = client.listeners.removeValue(forKey: id) {
            if listener.isOnce {
              client.callbackQueue.async { listener.deliver(.failure(FirestoreClient.terminated)) }
            } else {
              listener.cancellation.cancel()
            }
          }
          client.inSyncListeners.removeValue(forKey: id)?.0.cancel()
        }
        client.perform()
        // The outcome of the remaining writes is unknown, so their completions are not called.
        client.completions = [:]
        for timer in client.timers.values { timer.cancel() }
        client.timers = [:]
        client.datastore.connection.shutDown()
        client.engine.store.persistence.close()
      }
      if let completion { client.callbackQueue.async { completion(nil) } }
    }
  }

  // MARK: Bundles

  /// Reads a bundle and stores it in the cache. The task reports the progress.
  func loadBundle(_ source: BundleSource, task: LoadBundleTask) {
    bundleQueue.async { [self] in
      do throws(FirestoreError) {
        try load(source, task)
      } catch {
        FirestoreLog.warning("I-FST000003", "A bundle could not be loaded: \(error)")
        task.fail(error)
      }
    }
  }

  private func load(_ source: BundleSource, _ task: LoadBundleTask) throws(FirestoreError) {
    source.open()
    defer { source.close() }
    var loader = BundleLoader(database: database)
    while let bytes = try source.read() {
      loader.append(bytes)
      while true {
        let (previousCount, hadMetadata) = (loader.documentsLoaded, loader.metadata != nil)
        guard try loader.step(), let metadata = loader.metadata else { break }
        if !hadMetadata {
          if try onQueue({ client throws(PersistenceFailure) in
            try client.engine.store.hasBundle(asNewAs: metadata)
          }) {
            task.succeed(metadata)
            return
          }
          task.reportProgress(metadata, documents: 0, bytes: 0)
        } else if loader.documentsLoaded > previousCount {
          task.reportProgress(metadata, documents: loader.documentsLoaded, bytes: loader.bytesLoaded)
        }
      }
    }
    let bundle = try loader.finish()
    let isStored = try onQueue { client throws(PersistenceFailure) in
      if client.isTerminated { return false }
      defer { client.perform() }
      try client.engine.load(bundle)
      return true
    }
    guard isStored else { throw FirestoreClient.terminated }
    task.succeed(bundle.metadata)
  }

  /// Runs an operation of the cache on the client's queue, and waits for its result.
  private func onQueue<T>(
    _ body: (FirestoreClient) throws(PersistenceFailure) -> T
  ) throws(FirestoreError) -> T {
    let result = queue.sync { () -> Result<T, FirestoreError> in
      do throws(PersistenceFailure) { return .success(try body(self)) } catch {
        engine.report(error)
        perform()
        return .failure(error.error)
      }
    }
    return try result.get()
  }

  func namedQuery(_ name: String, completion: @escaping @Sendable (NamedQuery?) -> Void) {
    event { client in
      var query: NamedQuery?
      client.performOnStore { store throws(PersistenceFailure) in query = try store.namedQuery(name) }
      let found = query
      client.callbackQueue.async { completion(found) }
    }
  }

  // MARK: Indexes of the cache

  func configure(_ indexes: Set<FieldIndex>, completion: (@Sendable (FirestoreError?) -> Void)?) {
    event { client in
      let error = client.performOnStore { store throws(PersistenceFailure) in try store.configure(indexes) }
      if let completion { client.callbackQueue.async { completion(error) } }
    }
  }

  /// Runs an operation of the cache. A failure is logged and returned.
  @discardableResult
  private func performOnStore(
    _ body: (inout LocalStore) throws(PersistenceFailure) -> Void
  ) -> FirestoreError? {
    do throws(PersistenceFailure) {
      try body(&engine.store)
      return nil
    } catch {
      engine.report(error)
      return error.error
    }
  }

  func setIndexCreation(enabled: Bool) { event { $0.engine.store.createsIndexes = enabled } }

  func deleteAllIndexes() {
    event { client in
      client.performOnStore { store throws(PersistenceFailure) in try store.deleteAllIndexes() }
    }
  }

  // MARK: Requests of the engine

  private func perform() {
    while true {
      let actions = engine.takeActions()
      if actions.isEmpty { return }
      for action in actions { perform(action) }
    }
  }

  private func perform(_ action: EngineAction) {
    switch action {
    case .snapshot(let id, let snapshot): deliver(.success(snapshot), to: id)
    case .failure(let id, let error):
      FirestoreLog.warning("I-FST000002", "A listener ended: \(error)")
      deliver(.failure(error), to: id)
      listeners[id] = nil
    case .inSync(let id):
      guard let (cancellation, deliver) = inSyncListeners[id] else { return }
      callbackQueue.async { if !cancellation.isCancelled { deliver() } }
    case .completed(let id, let error):
      guard let completion = completions.removeValue(forKey: id) else { return }
      callbackQueue.async { completion(error) }
    case .connect(let kind, let number): connect(kind, number)
    case .disconnect(let kind, _): calls.removeValue(forKey: kind)?.call.cancel()
    case .send(let kind, let request): send(kind, request)
    case .startTimer(let timer, let seconds): start(timer, seconds)
    case .stopTimer(let timer): timers.removeValue(forKey: timer)?.cancel()
    case .renewToken: datastore.credentials.reject()
    case .warn(let message): FirestoreLog.warning("I-FST000001", message)
    }
  }

  private func deliver(_ result: ViewResult, to id: ListenerID) {
    guard let listener = listeners[id] else { return }
    callbackQueue.async { if !listener.cancellation.isCancelled { listener.deliver(result) } }
  }

  private func start(_ timer: EngineTimer, _ seconds: Double) {
    timers.removeValue(forKey: timer)?.cancel()
    let item = DispatchWorkItem { [weak self] in
      guard let self, self.timers.removeValue(forKey: timer) != nil else { return }
      self.engine.timerFired(timer)
      self.perform()
    }
    timers[timer] = item
    queue.asyncAfter(deadline: .now() + seconds, execute: item)
  }
}
