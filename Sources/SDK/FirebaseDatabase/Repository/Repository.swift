// The repository of one database: connects the sync tree, the connection and the transactions.
//
// Invariants
//   1. The repository runs on one serial queue, which all databases share.
//   2. Events reach the app only through `raise`, in the order of the sync tree, on the callback queue, and
//      never inside a call of the app.
//   3. Requests of the app are applied locally first and sent afterwards.

import Dispatch
import FirebaseCore
import Foundation
import Locking
import NIOSSL
import RealtimeModel
import RealtimeWire

/// The core of one database.
final class Repository: @unchecked Sendable {
  // Safe to share: all mutable state is used only on `queue`; everything else is constant.

  /// The queue of all databases' cores.
  static let queue = DispatchQueue(label: "com.google.firebase.database.core")

  let endpoint: DatabaseEndpoint
  let callbackQueue: DispatchQueue
  let storage: any ClientStorage
  /// This device's clock, which may be wrong, in milliseconds since 1970.
  private let clock: @Sendable () -> Int64
  private let tls: NIOSSLContext?

  let tree: SyncTree
  /// The sync tree of `.info`. The client sets its values, and the server does not know it.
  var information = SyncTree()
  var connection: ServerConnection
  var transactions = TransactionQueue()
  var observers: [UInt: Observer] = [:]
  var deliveredSingleObservers: Set<UInt> = []
  var writeCompletions: [Int: WriteCompletion] = [:]
  var delayedWriteResponses: [(id: Int, error: RealtimeError?)] = []
  var gets: [Int: PendingGet] = [:]
  var disconnectCompletions: [Int: WriteCompletion] = [:]
  var disconnectOverlay = WriteOverlay()
  var keptSynced: [KeptQuery: ObserverRegistration] = [:]
  var serverTimeOffset: Int64 = 0 {
    didSet { publishedOffset.withLock { $0 = serverTimeOffset } }
  }
  private let publishedOffset = Guarded<Int64>(0)
  /// The value of `.info`.
  var informationNode = Node.empty
  var transport: Transport?
  /// The maximum number of frames of a message; tests lower it.
  var maximumFrames = MessageSplitter.maximumFrames
  /// The sources of the tokens that the connection sends.
  var tokenSources: TokenSources?
  var tokenObservations: [TokenObservation] = []
  private(set) var triggers: ReconnectionTriggers?
  private let makeTokenSources: @Sendable () -> TokenSources?
  /// Calls to the app that wait for the commit of the current step.
  private var deliveries: [@Sendable () -> Void] = []
  private var lastIdentifier = 0
  private var hasStarted = false
  /// Whether the app was deleted.
  private var hasEnded = false

  /// The completions of writes.
  typealias WriteCompletion = @Sendable (RealtimeError?) -> Void

  /// A query that is kept synchronized.
  struct KeptQuery: Hashable {
    let path: Path
    let query: QuerySpec
  }

  /// A read that waits for its response.
  struct PendingGet {
    let path: Path
    let query: QuerySpec
    /// Whether the maximum time to wait for a connection has passed.
    var isOverdue = false
    let completion: @Sendable (Result<Node, RealtimeError>) -> Void
  }

  /// Makes the core of a database.
  ///
  /// - Parameters:
  ///   - clock: the device's clock, in milliseconds since 1970.
  ///   - tokenSources: finds the sources of tokens when the database is first used.
  init(
    endpoint: DatabaseEndpoint, callbackQueue: DispatchQueue, storage: any ClientStorage,
    clock: @escaping @Sendable () -> Int64 = { Repository.milliseconds },
    tokenSources: @escaping @Sendable () -> TokenSources? = { nil }
  ) {
    self.endpoint = endpoint
    self.callbackQueue = callbackQueue
    self.storage = storage
    self.clock = clock
    makeTokenSources = tokenSources
    tree = SyncTree(storage: storage)
    var context: NIOSSLContext?
    if endpoint.isSecure {
      do {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if let file = TrustRoots.file { configuration.trustRoots = .file(file) }
        context = try NIOSSLContext(configuration: configuration)
      } catch {
        let file = TrustRoots.file.map { ", trusting the authorities in \($0)" } ?? ""
        FirebaseLogger.log(.error, service: "Database", "TLS is not usable\(file): \(error)")
      }
    }
    tls = context
    connection = ServerConnection(
      seed: UInt64.random(in: 0 ... .max),
      statsName: "sdk.swift.\(FirebaseVersion().replacingOccurrences(of: ".", with: "-"))", usesTokens: true)
    (storage as? DiskStorage)?.source = self
  }

  /// Runs work on the core's queue, in the order of the calls.
  func enqueue(_ work: @escaping @Sendable (Repository) -> Void) {
    Repository.queue.async {
      self.start()
      work(self)
      if self.hasEnded { self.rejectRequests() }
      self.flush()
    }
  }

  /// Connects at the first use.
  private func start() {
    guard !hasStarted else { return }
    hasStarted = true
    restoreWrites()
    updateInformation("connected", .leaf(.bool(false)))
    tokenSources = makeTokenSources()
    observeTokens()
    triggers = ReconnectionTriggers { [weak self] in
      Repository.queue.async { [weak self] in
        self?.connection.conditionsChanged()
        self?.flush()
      }
    }
    connection.connect()
  }

  /// A number for a write, a read or an operation. It is larger than all earlier numbers.
  func makeIdentifier() -> Int {
    lastIdentifier += 1
    return lastIdentifier
  }

  /// Makes the next identifiers larger than the last identifier of an earlier run.
  func skipIdentifiers(upTo last: Int) {
    lastIdentifier = max(lastIdentifier, last)
  }

  /// The estimated time of the server's clock, in milliseconds since 1970.
  var serverTime: Int64 { clock() + serverTimeOffset }

  /// Updates the offset of the server's clock.
  func serverTimeArrived(_ time: Int64) {
    serverTimeOffset = time - clock()
  }

  static var milliseconds: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

  /// The same as `serverTime`, for any thread.
  var publishedServerTime: Int64 { clock() + publishedOffset.withLock { $0 } }

  /// Milliseconds of a monotonic clock.
  static var uptime: Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) }

  func log(_ level: FirebaseLoggerLevel, _ message: @autoclosure () -> String) {
    FirebaseLogger.log(level, service: "Database", message())
  }

  // MARK: Events

  /// Delivers events to their observers on the callback queue.
  func raise(_ events: [DataEvent]) {
    for event in events {
      let id = event.registration.id
      guard let observer = observers[id] else { continue }
      switch event.content {
      case .cancelled(let error):
        observers[id] = nil
        guard let cancel = observer.cancel else { continue }
        let cause = error.asNSError(at: event.path)
        deliver { cancel(cause) }
      case .value(let node): deliver(node, event.path, nil, event, observer)
      case .child(_, let key, let node, let previous):
        deliver(node, event.path.child(key), previous, event, observer)
      }
    }
  }

  private func deliver(
    _ node: Node, _ path: Path, _ previous: ChildKey?, _ event: DataEvent, _ observer: Observer
  ) {
    if observer.isSingle {
      guard deliveredSingleObservers.insert(observer.registration.id).inserted else { return }
      Repository.queue.async {
        self.remove(observer.registration, at: observer.path, query: observer.query)
        self.deliveredSingleObservers.remove(observer.registration.id)
        self.flush()
      }
    }
    let snapshot = DataSnapshot(node: node, path: path, ordering: event.ordering, repository: self)
    deliver {
      observer.deliver(SnapshotEvent(snapshot: snapshot, previousKey: previous?.text))
    }
  }

  /// Calls the app on the callback queue, after the changes of the current step are stored.
  func deliver(_ call: @escaping @Sendable () -> Void) {
    deliveries.append(call)
  }

  // MARK: The connection

  /// Ends a step. It performs the actions of the sync trees and the connection until no action remains,
  /// stores the changes, and then calls the app.
  func flush() {
    performActions()
    storage.commit()
    let calls = deliveries
    deliveries = []
    for call in calls { callbackQueue.async(execute: call) }
  }

  private func performActions() {
    while true {
      for action in information.takeActions() { performInformation(action) }
      for action in tree.takeActions() {
        switch action {
        case .start(let listen): connection.listen(listen)
        case .stop(let listen): connection.unlisten(listen)
        }
      }
      for action in connection.takeActions() { perform(action) }
      if !delayedWriteResponses.isEmpty, !connection.hasUnansweredListens { handleDelayedWriteResponses() }
      if !connection.hasActions, !tree.hasActions, !information.hasActions { return }
    }
  }

  private func perform(_ action: ConnectionAction) {
    switch action {
    case .fetchTokens(let generation, let forcingAuth, let forcingAppCheck):
      fetchTokens(generation, forcingAuth: forcingAuth, forcingAppCheck: forcingAppCheck)
    case .refreshAppCheck: refreshAppCheck()
    case .open(let generation, let lastSession, let host):
      open(generation, lastSession, host)
    case .send(let message): send(message)
    case .sendListen(let listen, let number): send(listen, number)
    case .close:
      transport?.close()
      transport = nil
    case .retry(let generation, let delay):
      Repository.queue.asyncAfter(deadline: .now() + .milliseconds(Int(delay))) { [weak self] in
        self?.connection.retry(generation)
        self?.flush()
      }
    case .report(let event): handle(event)
    }
  }

  private func open(_ generation: Int, _ lastSession: String?, _ host: String?) {
    if endpoint.isSecure, tls == nil {
      connection.transportClosed(generation, at: Repository.uptime)
      return
    }
    log(.debug, "connecting to \(host ?? endpoint.authority)")
    transport = Transport.open(
      to: endpoint, host: host, lastSession: lastSession, appCheck: connection.tokens?.appCheck, tls: tls,
      events: TransportEvents(
        received: { [weak self] message in
          Repository.queue.async { [weak self] in
            guard let self else { return }
            self.connection.received(message, on: generation, at: Repository.uptime)
            self.flush()
          }
        },
        closed: { [weak self] reason in
          Repository.queue.async { [weak self] in
            guard let self else { return }
            self.log(.debug, "connection to \(self.endpoint.authority) closed: \(reason ?? "by the peer")")
            self.connection.transportClosed(generation, at: Repository.uptime)
            self.flush()
          }
        }))
  }

  /// Sends a message. If the protocol cannot carry a request, it fails as if the server had rejected it.
  /// Otherwise the request would be sent again after each reconnect, and would fail each time.
  private func send(_ message: ClientMessage) {
    let bytes = message.json()
    if bytes.withUnsafeBytes({ MessageSplitter.fits($0, maximum: maximumFrames) }) {
      transport?.send(bytes)
    } else if case .request(let request) = message {
      connection.failRequest(request.number, .writeTooBig)
    }
  }

  /// The size of the cached value in bytes of JSON above which a listen sends a compound hash. The server
  /// then sends only the ranges that differ. Google's SDKs use the same threshold.
  static let compoundHashThreshold = 1_024

  private func send(_ listen: Listen, _ number: Int64) {
    let cachedNode = tree.serverNode(of: listen)
    var request = ListenRequest(
      path: listen.path, query: listen.query, tag: listen.tag.map(Int64.init), hash: cachedNode.hash)
    if cachedNode.estimatedSize > Repository.compoundHashThreshold {
      request.compoundHash = CompoundHashFields(CompoundHash(of: cachedNode))
      connection.recordHashedNode(cachedNode, of: listen, number: number)
    }
    transport?.send(ClientMessage.request(ClientRequest(number, .listen(request))).json())
  }

  func goOffline() {
    enqueue { $0.connection.interrupt(.user, at: Repository.uptime) }
  }

  func goOnline() {
    enqueue { $0.connection.resume(.user) }
  }

  /// Closes the connection permanently, because the app was deleted. Observers receive no more events; reads
  /// and transactions fail. The completions of unacknowledged writes are released without a call, because the
  /// outcome of those writes is unknown.
  func shutdown() {
    enqueue { repository in
      guard !repository.hasEnded else { return }
      repository.connection.interrupt(.shutdown, at: Repository.uptime)
      repository.tokenObservations = []
      repository.triggers = nil
      repository.observers = [:]
      // Removes acknowledged writes from the storage, and closes it before the other writes are cancelled.
      // Those writes stay stored for the next run.
      repository.handleDelayedWriteResponses()
      repository.storage.close()
      _ = repository.cancelWrites()
      repository.hasEnded = true
    }
  }

  /// Fails the requests that the app makes after it was deleted. They are never sent, so every completion
  /// receives an error.
  private func rejectRequests() {
    observers = [:]
    purgeOutstandingWrites()
    for id in gets.keys.sorted() { failGet(id) }
  }
}
