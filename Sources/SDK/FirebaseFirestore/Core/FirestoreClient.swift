// Runs the sync engine: feeds it what the app, the network and the clock do, and does what it asks.
//
// Invariant: the engine and everything about it is touched on `queue` alone; the app is called back
// on its own queue alone, in the order in which things happened.

import FirebaseCore
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import NIOCore
import SwiftProtobuf

// Safe to share: every variable is touched on `queue` only.
final class FirestoreClient: @unchecked Sendable {
  typealias ViewResult = Result<ViewSnapshot, FirestoreError>
  typealias DocumentResult = Result<(CachedDocument?, SnapshotMetadata), FirestoreError>

  private struct Listener {
    let mute: Mute
    /// Whether it waits for one answer, and so must be told when none will come.
    let isOnce: Bool
    let deliver: @Sendable (ViewResult) -> Void
  }

  private static let terminated = FirestoreError(.cancelled, "The client has been terminated.")

  let database: DatabaseName
  let datastore: Datastore
  let callbackQueue: DispatchQueue

  private let queue = DispatchQueue(label: "firestore.sync")
  /// Bundles are read here, one after the other: reading may wait for a file.
  private let bundleQueue = DispatchQueue(label: "firestore.bundles")
  private var engine: SyncEngine
  private var calls: [StreamKind: (number: Int, call: GRPCCall)] = [:]
  private var streamToken = Data()
  private var timers: [EngineTimer: DispatchWorkItem] = [:]
  private var listeners: [ListenerID: Listener] = [:]
  private var inSyncListeners: [ListenerID: (Mute, @Sendable () -> Void)] = [:]
  private var completions: [CompletionID: @Sendable (FirestoreError?) -> Void] = [:]
  private var nextNumber = 0
  private var isTerminated = false

  init(
    database: DatabaseName, appID: String, address: ServerAddress, callbackQueue: DispatchQueue,
    cacheSize: Int64?
  ) {
    self.database = database
    self.callbackQueue = callbackQueue
    datastore = Datastore(database: database, appID: appID, connection: GRPCConnection(address))
    engine = SyncEngine(
      persistence: MemoryPersistence(isEager: cacheSize == nil), seed: UInt64.random(in: 0...UInt64.max))
    event { client in
      client.engine.enableNetwork()
      if let cacheSize, cacheSize != FirestoreCacheSizeUnlimited {
        client.engine.keepCache(within: Int(cacheSize))
      }
    }
  }

  // MARK: Events

  /// Lets the engine see an event, then does what it asks.
  private func event(_ body: @escaping @Sendable (FirestoreClient) -> Void) {
    queue.async { [self] in
      body(self)
      perform()
    }
  }

  private func newNumber() -> Int {
    nextNumber += 1
    return nextNumber
  }

  private func remember(_ completion: @escaping @Sendable (FirestoreError?) -> Void) -> CompletionID {
    let id = CompletionID(number: newNumber())
    completions[id] = completion
    return id
  }

  // MARK: The app's wishes

  func listen(
    _ query: ClientQuery, options: ListenerOptions, isOnce: Bool = false,
    deliver: @escaping @Sendable (ViewResult) -> Void
  ) -> any ListenerRegistration {
    let mute = Mute()
    let started = Guarded<ListenerID?>(nil)
    event { client in
      guard !client.isTerminated else {
        if isOnce { client.callbackQueue.async { deliver(.failure(FirestoreClient.terminated)) } }
        return
      }
      let id = ListenerID(number: client.newNumber())
      started.withLock { $0 = id }
      client.listeners[id] = Listener(mute: mute, isOnce: isOnce, deliver: deliver)
      client.engine.listen(id, to: query, options: options)
    }
    return Registration(mute) { [weak self] in
      self?.event { client in
        guard let id = started.withLock({ $0 }) else { return }
        client.listeners[id] = nil
        client.engine.unlisten(id)
      }
    }
  }

  func listenInSync(_ deliver: @escaping @Sendable () -> Void) -> any ListenerRegistration {
    let mute = Mute()
    let started = Guarded<ListenerID?>(nil)
    event { client in
      let id = ListenerID(number: client.newNumber())
      started.withLock { $0 = id }
      client.inSyncListeners[id] = (mute, deliver)
      client.engine.addInSyncListener(id)
    }
    return Registration(mute) { [weak self] in
      self?.event { client in
        guard let id = started.withLock({ $0 }) else { return }
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
      let id = completion.map { client.remember($0) }
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
        client.engine.waitForPendingWrites(client.remember(completion))
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
        for id in client.engine.shutDown() {
          if let listener = client.listeners.removeValue(forKey: id) {
            if listener.isOnce {
              client.callbackQueue.async { listener.deliver(.failure(FirestoreClient.terminated)) }
            } else {
              listener.mute.mute()
            }
          }
          client.inSyncListeners.removeValue(forKey: id)?.0.mute()
        }
        client.perform()
        // What remains are writes that the server may have taken or may yet take: nobody knows, so nobody is told.
        client.completions = [:]
        for timer in client.timers.values { timer.cancel() }
        client.timers = [:]
        client.datastore.connection.shutDown()
      }
      if let completion { client.callbackQueue.async { completion(nil) } }
    }
  }

  // MARK: Bundles

  /// Reads a bundle and takes it into the cache; the task tells of it.
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
        let (before, isKnown) = (loader.documentsLoaded, loader.metadata != nil)
        guard try loader.step(), let metadata = loader.metadata else { break }
        if !isKnown {
          if queue.sync(execute: { engine.store.hasBundle(asNewAs: metadata) }) {
            task.succeed(metadata)
            return
          }
          task.progress(metadata, documents: 0, bytes: 0)
        } else if loader.documentsLoaded > before {
          task.progress(metadata, documents: loader.documentsLoaded, bytes: loader.bytesLoaded)
        }
      }
    }
    let bundle = try loader.finish()
    let isTaken = queue.sync {
      if isTerminated { return false }
      engine.load(bundle)
      perform()
      return true
    }
    guard isTaken else { throw FirestoreClient.terminated }
    task.succeed(bundle.metadata)
  }

  func namedQuery(_ name: String, completion: @escaping @Sendable (NamedQuery?) -> Void) {
    event { client in
      let query = client.engine.store.namedQuery(name)
      client.callbackQueue.async { completion(query) }
    }
  }

  // MARK: Indexes of the cache

  func configure(_ indexes: Set<FieldIndex>, completion: (@Sendable (FirestoreError?) -> Void)?) {
    event { client in
      client.engine.store.configure(indexes)
      if let completion { client.callbackQueue.async { completion(nil) } }
    }
  }

  func setIndexCreation(enabled: Bool) { event { $0.engine.store.createsIndexes = enabled } }

  func deleteAllIndexes() { event { $0.engine.store.deleteAllIndexes() } }

  // MARK: Reading once

  func get(query: ClientQuery, source: FirestoreSource, completion: @escaping @Sendable (ViewResult) -> Void)
  {
    if source == .cache {
      event { client in
        let result = client.engine.cached(query)
        client.callbackQueue.async { completion(.success(result)) }
      }
      return
    }
    first(of: query) { result in
      if case .success(let view) = result, view.fromCache, source == .server {
        completion(
          .failure(
            .unavailable(
              "Failed to get documents from server. (However, these documents may exist in the local"
                + " cache. Run again without setting source to FirestoreSourceServer to retrieve the"
                + " cached documents.)")))
      } else {
        completion(result)
      }
    }
  }

  func get(
    document name: DocumentName, source: FirestoreSource,
    completion: @escaping @Sendable (DocumentResult) -> Void
  ) {
    if source == .cache {
      event { client in
        let document = client.engine.store.read(name)
        let metadata = SnapshotMetadata(hasPendingWrites: document.hasLocalChanges, isFromCache: true)
        let isKnown = document.isFound || document.isMissing
        client.callbackQueue.async {
          completion(
            isKnown
              ? .success((document.isFound ? document : nil, metadata))
              : .failure(
                .unavailable(
                  "Failed to get document from cache. (However, this document may exist on the server."
                    + " Run again without setting source to FirestoreSourceCache to attempt to retrieve"
                    + " the document from the server.)")))
        }
      }
      return
    }
    first(of: ClientQuery(document: name)) { result in
      completion(result.flatMap { FirestoreClient.document(name, in: $0, source: source) })
    }
  }

  private static func document(
    _ name: DocumentName, in view: ViewSnapshot, source: FirestoreSource
  ) -> DocumentResult {
    let document = view.documents[name]
    if document == nil, view.fromCache {
      return .failure(.unavailable("Failed to get document because the client is offline."))
    }
    if document != nil, view.fromCache, source == .server {
      return .failure(
        .unavailable(
          "Failed to get document from server. (However, this document does exist in the local cache."
            + " Run again without setting source to FirestoreSourceServer to retrieve the cached"
            + " document.)"))
    }
    let metadata = SnapshotMetadata(
      hasPendingWrites: view.mutated.contains(name), isFromCache: view.fromCache)
    return .success((document, metadata))
  }

  /// The first snapshot that is confirmed by the server, or that has to do while offline.
  private func first(of query: ClientQuery, completion: @escaping @Sendable (ViewResult) -> Void) {
    let options = ListenerOptions(includeMetadataChanges: true, waitForSyncWhenOnline: true)
    let registration = Guarded<(any ListenerRegistration)?>(nil)
    let isDone = Guarded(false)
    let listener = listen(query, options: options, isOnce: true) { result in
      guard
        !isDone.withLock({ done in
          let was = done; done = true; return was
        })
      else { return }
      registration.withLock { $0 }?.remove()
      completion(result)
    }
    registration.withLock { $0 = listener }
    if isDone.withLock({ $0 }) { listener.remove() }
  }

  // MARK: What the engine asks for

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
      guard let (mute, deliver) = inSyncListeners[id] else { return }
      callbackQueue.async { if !mute.isMuted { deliver() } }
    case .completed(let id, let error):
      guard let completion = completions.removeValue(forKey: id) else { return }
      callbackQueue.async { completion(error) }
    case .connect(let kind, let number): connect(kind, number)
    case .disconnect(let kind, _): calls.removeValue(forKey: kind)?.call.cancel()
    case .send(let kind, let request): send(kind, request)
    case .startTimer(let timer, let seconds): start(timer, seconds)
    case .stopTimer(let timer): timers.removeValue(forKey: timer)?.cancel()
    case .renewToken: break
    case .warn(let message): FirestoreLog.warning("I-FST000001", message)
    }
  }

  private func deliver(_ result: ViewResult, to id: ListenerID) {
    guard let listener = listeners[id] else { return }
    callbackQueue.async { if !listener.mute.isMuted { listener.deliver(result) } }
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

  // MARK: Streams

  private func connect(_ kind: StreamKind, _ number: Int) {
    let call = datastore.open(kind) { [weak self] event in
      self?.event { client in client.received(event, kind, number) }
    }
    calls[kind] = (number, call)
  }

  private func send(_ kind: StreamKind, _ request: StreamRequest) {
    FirestoreLog.debug("Sending on the \(kind) stream: \(request)")
    guard let call = calls[kind]?.call else { return }
    do {
      switch request {
      case .addTarget(let data):
        call.send(
          try Google_Firestore_V1_ListenRequest(adding: data, database: database).serializedBytes())
      case .removeTarget(let id):
        call.send(
          try Google_Firestore_V1_ListenRequest(removing: id, database: database).serializedBytes())
      case .handshake:
        streamToken = Data()
        var message = Google_Firestore_V1_WriteRequest()
        message.database = database.description
        call.send(try message.serializedBytes())
      case .writes(let writes):
        var message = Google_Firestore_V1_WriteRequest()
        message.streamToken = streamToken
        message.writes = writes.map { Google_Firestore_V1_Write($0) }
        call.send(try message.serializedBytes())
      }
    } catch {
      // Messages that the model made can be written; what cannot must not stop the others.
      FirestoreLog.warning("I-FST000005", "A request could not be written: \(error)")
    }
  }

  private func received(_ event: CallEvent, _ kind: StreamKind, _ number: Int) {
    guard calls[kind]?.number == number else { return }
    switch event {
    case .opened:
      if kind == .watch { engine.watchStreamOpened(number) } else { engine.writeStreamOpened(number) }
    case .message(let buffer):
      do throws(FirestoreError) {
        if kind == .watch {
          try watchReceived(buffer, number)
        } else {
          try writeReceived(buffer, number)
        }
      } catch {
        // What cannot be understood ends the stream; the next one starts from the last good state.
        calls.removeValue(forKey: kind)?.call.cancel()
        closed(kind, number, .internalError("The server's message cannot be read: \(error.message)"))
      }
    case .ended(let status):
      calls[kind] = nil
      // A server that ends a stream without an error is restarting.
      closed(kind, number, status.code == .ok ? .unavailable("The server ended the stream.") : status)
    }
  }

  private func closed(_ kind: StreamKind, _ number: Int, _ error: FirestoreError) {
    FirestoreLog.debug("The \(kind) stream ended: \(error)")
    switch kind {
    case .watch: engine.watchStreamClosed(number, error)
    case .write: engine.writeStreamClosed(number, error)
    }
  }

  private func parse<M: Message>(_ type: M.Type, _ buffer: ByteBuffer) throws(FirestoreError) -> M {
    do {
      return try M(serializedBytes: Array(buffer.readableBytesView))
    } catch {
      throw .internalError("\(error)")
    }
  }

  private func watchReceived(_ buffer: ByteBuffer, _ number: Int) throws(FirestoreError) {
    let message = try parse(Google_Firestore_V1_ListenResponse.self, buffer)
    guard let change = try WatchChange(message) else { return }
    FirestoreLog.debug("Watch: \(change)")
    engine.watchReceived(number, change)
  }

  private func writeReceived(_ buffer: ByteBuffer, _ number: Int) throws(FirestoreError) {
    let message = try parse(Google_Firestore_V1_WriteResponse.self, buffer)
    streamToken = message.streamToken
    guard engine.writing.hasHandshake else {
      engine.writeHandshakeDone(number)
      return
    }
    var results: [WriteResult] = []
    for result in message.writeResults { results.append(try WriteResult(result)) }
    engine.writeAcknowledged(number, results: results, commitTime: ModelTimestamp(message.commitTime))
  }
}

extension SyncEngine {
  /// What the cache alone says about a query, as a first snapshot.
  mutating func cached(_ query: ClientQuery) -> ViewSnapshot {
    let result = store.execute(query, usePreviousResults: true)
    var view = View(query: query, remoteKeys: result.remoteKeys)
    let pending = view.compute(Dictionary(result.documents.map { ($0.name, $0) }) { first, _ in first })
    _ = view.apply(pending, resolvesLimbo: false)
    return view.initialSnapshot
  }
}
