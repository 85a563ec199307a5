// A Firestore instance: one database of one app.
//
// Invariant: at most one live instance exists for each app and database. Its settings do not change after its
// first use.

public import FirebaseCore
import FirestoreModel
public import Foundation
import Locking

/// A Firestore database of an app.
///
/// ```swift
/// FirebaseApp.configure()
/// let db = Firestore.firestore()
/// db.useEmulator(withHost: "127.0.0.1", port: 8080)
/// ```
/// Safe to use from any thread. Callbacks arrive on the main queue unless the settings name another queue.
open class Firestore: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  private struct Key: Hashable {
    let app: String
    let database: String
  }

  private struct State {
    var settings = FirestoreSettings.Values()
    var client: FirestoreClient?
    var isTerminated = false
  }

  private static let instances = Guarded<[Key: Firestore]>([:])

  let databaseName: DatabaseName
  private let state = Guarded(State())
  /// The failures of the cache; see ``persistenceErrorHandler``.
  let observedCache = Guarded(ObservedCache())

  /// The app that the instance belongs to.
  public let app: FirebaseApp

  private init(app: FirebaseApp, name: DatabaseName) {
    self.app = app
    databaseName = name
  }

  // MARK: Instances

  /// The default app's default database. Stops the program before `FirebaseApp.configure()`.
  @discardableResult
  open class func firestore() -> Firestore { firestore(database: DatabaseName.defaultDatabase) }

  /// An app's default database.
  @discardableResult
  open class func firestore(app: FirebaseApp) -> Firestore {
    firestore(app: app, database: DatabaseName.defaultDatabase)
  }

  /// A named database of the default app.
  @discardableResult
  open class func firestore(database: String) -> Firestore {
    guard let app = FirebaseApp.app() else {
      failIllegalState(
        "Failed to get FirebaseApp instance. Call FirebaseApp.configure() before using Firestore")
    }
    return firestore(app: app, database: database)
  }

  /// A named database of an app. Stops the program if the app's options have no project ID. For a deleted app
  /// it returns a terminated instance.
  @discardableResult
  open class func firestore(app: FirebaseApp, database: String) -> Firestore {
    guard let project = app.options.projectID, !project.isEmpty else {
      failInvalidArgument("FirebaseOptions.projectID must be set to a valid project ID.")
    }
    let key = Key(app: app.name, database: database)
    let (instance, isNew) = instances.withLock { instances in
      if let existing = instances[key], existing.app === app { return (existing, false) }
      let new = Firestore(app: app, name: DatabaseName(project: project, database: database))
      // The instance of a deleted app is not stored: another app may already have the same name, and nothing
      // would remove the instance later.
      if !app.isDeleted { instances[key] = new }
      return (new, true)
    }
    if isNew { app.onDelete { [weak instance] in instance?.terminate(completion: nil) } }
    return instance
  }

  // MARK: Settings

  /// A copy of the settings. Setting them after the first use stops the program.
  open var settings: FirestoreSettings {
    get { FirestoreSettings(state.withLock { $0.settings }) }
    set {
      let values = newValue.values
      if !values.isSSLEnabled && values.host == FirestoreSettings.defaultHost {
        failIllegalState(
          "You can't set the 'sslEnabled' setting to false unless you also set a non-default 'host'")
      }
      let contradictions = values.contradictions.joined(separator: " and ")
      if !contradictions.isEmpty {
        failIllegalState(
          "Cannot use cacheSettings, because \(contradictions) is specified too. Please remove the code specifying"
            + " \(contradictions).")
      }
      let isChangedAfterFirstUse = state.withLock { state in
        if state.client != nil { return !FirestoreSettings(state.settings).isEqual(newValue) }
        state.settings = values
        return false
      }
      if isChangedAfterFirstUse {
        failIllegalState(
          "Firestore instance has already been started and its settings can no longer be changed. You can"
            + " only set settings before calling any other methods on a Firestore instance.")
      }
    }
  }

  /// Connects to a local server without TLS. Stops the program after the first use.
  open func useEmulator(withHost host: String, port: Int) {
    if host.isEmpty { failInvalidArgument("Cannot use an empty host") }
    let settings = settings
    settings.host = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]:\(port)" : "\(host):\(port)"
    settings.isSSLEnabled = false
    self.settings = settings
  }

  /// The client. The first use starts it. Stops the program after `terminate`.
  var client: FirestoreClient {
    let client = state.withLock { state -> FirestoreClient? in
      if state.isTerminated { return nil }
      if let client = state.client { return client }
      let settings = state.settings
      guard let address = ServerAddress(settings.host, isEncrypted: settings.isSSLEnabled) else {
        failInvalidArgument("The host setting '\(settings.host)' is not a host name with an optional port.")
      }
      let client = FirestoreClient(
        database: databaseName, appID: app.options.googleAppID, address: address,
        callbackQueue: settings.dispatchQueue, cache: cache(for: settings),
        credentials: CallCredentials(auth: app.authTokens, appCheck: app.appCheckTokens),
        cacheFailed: { [weak self, queue = settings.dispatchQueue] in self?.report($0, on: queue) ?? $0.log()
        })
      state.client = client
      return client
    }
    guard let client else { failIllegalState("The client has already been terminated.") }
    return client
  }

  /// The folder of the cache on disk.
  var cacheFolder: URL {
    CacheFolder.folder(app: app.name, appID: app.options.googleAppID, database: databaseName)
  }

  private func cache(for settings: FirestoreSettings.Values) -> CacheChoice {
    switch settings.cache {
    case .persistent(let cache): .disk(cacheFolder, size: cache.size)
    case .memory(let cache): .memory(size: cache.size)
    }
  }

  /// Whether the instance was used and was not terminated.
  var isInUse: Bool { state.withLock { $0.client != nil && !$0.isTerminated } }

  /// Ends the client, so that a new instance can be created.
  func end(_ completion: (@Sendable (FirestoreError?) -> Void)?) {
    let (client, queue) = state.withLock { state in
      state.isTerminated = true
      return (state.client, state.settings.dispatchQueue)
    }
    Firestore.instances.withLock { instances in
      let key = Key(app: app.name, database: databaseName.database)
      if instances[key] === self { instances[key] = nil }
    }
    if let client {
      client.terminate(completion)
    } else if let completion {
      queue.async { completion(nil) }
    }
  }

  /// Starts or stops logging.
  open class func enableLogging(_ logging: Bool) {
    FirebaseConfiguration.shared.setLoggerLevel(logging ? .debug : .notice)
  }

  // MARK: References

  /// A collection by its path. Stops the program for the path of a document.
  @discardableResult
  open func collection(_ collectionPath: String) -> CollectionReference {
    collection(PathReader.parse(collectionPath), collectionPath)
  }

  func collection(_ path: ResourcePath, _ text: String) -> CollectionReference {
    _ = client
    guard let name = CollectionName(database: databaseName, path: path) else {
      failInvalidArgument(
        "Invalid collection reference. Collection references must have an odd number of segments, but"
          + " \(text) has \(path.count)")
    }
    return CollectionReference(name, self)
  }

  /// A document by its path. Stops the program for the path of a collection.
  @discardableResult
  open func document(_ documentPath: String) -> DocumentReference {
    document(PathReader.parse(documentPath), documentPath)
  }

  func document(_ path: ResourcePath, _ text: String) -> DocumentReference {
    _ = client
    guard let name = DocumentName(database: databaseName, path: path) else {
      failInvalidArgument(
        "Invalid document reference. Document references must have an even number of segments, but"
          + " \(text) has \(path.count)")
    }
    return DocumentReference(name, self)
  }

  /// All collections with this ID, at any path.
  @discardableResult
  open func collectionGroup(_ collectionID: String) -> Query {
    if collectionID.isEmpty { failInvalidArgument("Collection ID cannot be empty") }
    if collectionID.utf8.contains(UInt8(ascii: "/")) {
      failInvalidArgument(
        "Invalid collection ID (\(collectionID)). Collection IDs must not contain / in them.")
    }
    _ = client
    let query = StructuredQuery(from: [.init(collectionID, allDescendants: true)])
    return Query(ModelQuery(parent: ParentName(rootOf: databaseName), query), firestore: self)
  }

  // MARK: Writing

  /// A batch of writes that are applied atomically.
  @discardableResult
  open func batch() -> WriteBatch {
    _ = client
    return WriteBatch(self)
  }

  func write(_ writes: [Write], completion: (@Sendable ((any Error)?) -> Void)?) {
    client.write(writes, completion: withTypedErrors(completion))
  }

  func write(_ writes: [Write]) async throws {
    try await Continuations.waitForCompletion { done in write(writes, completion: done) }
  }

  /// Runs a transaction: the block reads first and writes afterwards. The SDK runs the block up to five
  /// times.
  ///
  /// The block runs on a queue of the SDK and must not wait for the main queue. The completion receives the
  /// block's result or the error.
  open func runTransaction(
    _ updateBlock: @escaping (Transaction, NSErrorPointer) -> Any?,
    completion: @escaping (Any?, (any Error)?) -> Void
  ) {
    runTransaction(with: nil, block: updateBlock, completion: completion)
  }

  /// Runs a transaction with these options.
  open func runTransaction(
    with options: TransactionOptions?, block updateBlock: @escaping (Transaction, NSErrorPointer) -> Any?,
    completion: @escaping (Any?, (any Error)?) -> Void
  ) {
    _ = client
    let app = AppClosure(call: completion)
    TransactionRunner(self, block: updateBlock) { value, error in app.call(value.call, error) }
      .run(attemptsLeft: (options ?? TransactionOptions()).maxAttempts)
  }

  /// Runs a transaction and returns the block's result.
  open func runTransaction(
    _ updateBlock: @escaping (Transaction, NSErrorPointer) -> Any?
  ) async throws -> sending Any? {
    _ = client
    let value: AppClosure<Any?> = try await withCheckedThrowingContinuation { continuation in
      TransactionRunner(self, block: updateBlock) { value, error in
        if let error { continuation.resume(throwing: error) } else { continuation.resume(returning: value) }
      }
      .run(attemptsLeft: TransactionOptions().maxAttempts)
    }
    // Safe to send: the block has returned the result, and this function does not retain it.
    nonisolated(unsafe) let result = value.call
    return result
  }
}
