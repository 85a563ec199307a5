// A database of an app: its settings, and the root of its references.
//
// Invariant: settings do not change after the app has made the first reference. Each combination of an app, a
// server and a namespace has one instance.

public import Dispatch
public import FirebaseCore
public import Foundation
import Locking
import RealtimeModel

/// A Realtime Database.
///
/// ```swift
/// FirebaseApp.configure()
/// let ref = Database.database().reference()
/// ref.child("greeting").setValue("hello")
/// ```
///
/// Over TLS a server's certificate must be valid for its host, and signed by an authority that the system trusts. For
/// self-hosted servers, the environment's `SSL_CERT_FILE` names a PEM file with the trusted authorities instead.
///
/// Safe to use from any thread.
open class Database: NSObject, @unchecked Sendable {
  // Safe to share: constants, and state behind a lock.
  private struct State {
    var endpoint: DatabaseEndpoint
    var isPersistenceEnabled = false
    var cacheSize: UInt = 10 << 20
    var callbackQueue = DispatchQueue.main
    var persistenceError: NSError?
    var persistenceErrorHandler: (@Sendable (any Error) -> Void)?
    /// The directory below which the cache file is stored; nil for the user's data directory.
    var dataDirectory: URL?
    /// The device's clock, in milliseconds since 1970.
    var clock: @Sendable () -> Int64 = { Repository.milliseconds }
    var repository: Repository?
    /// Whether the app was deleted: all requests then fail, and nothing connects.
    var isShutDown = false
  }

  private struct Identity: Hashable {
    let app: String
    let endpoint: DatabaseEndpoint
  }

  private static let instances = Guarded<[Identity: Database]>([:])

  private weak var owner: FirebaseApp?
  private let appID: String
  private let appName: String
  private let state: Guarded<State>

  private init(app: FirebaseApp, endpoint: DatabaseEndpoint) {
    owner = app
    appID = app.options.googleAppID
    appName = app.isDefault ? "default" : app.name
    state = Guarded(State(endpoint: endpoint))
    super.init()
  }

  // MARK: Instances

  /// The database of the default app.
  @discardableResult
  open class func database() -> Database {
    database(app: defaultApp())
  }

  /// A database of the default app by its URL, which must name the root.
  @discardableResult
  open class func database(url: String) -> Database {
    database(app: defaultApp(), url: url)
  }

  /// The database that an app's options name.
  ///
  /// For a deleted app, every operation of the database fails.
  @discardableResult
  open class func database(app: FirebaseApp) -> Database {
    let options = app.options
    if let url = options.databaseURL, !url.isEmpty { return database(app: app, url: url) }
    guard let project = options.projectID, !project.isEmpty else {
      usageException(
        "MissingProjectId",
        "Can't determine Firebase Database URL. Be sure to include databaseURL or a project ID in the options"
      )
    }
    return database(app: app, url: "https://\(project)-default-rtdb.firebaseio.com")
  }

  /// A database of an app by its URL, which must name the root.
  ///
  /// For a deleted app, every operation of the database fails.
  @discardableResult
  open class func database(app: FirebaseApp, url: String) -> Database {
    guard let (endpoint, keys) = DatabaseEndpoint.parse(url) else {
      usageException("InvalidDatabaseURL", "The database URL '\(url)' cannot be parsed")
    }
    guard keys.isEmpty else {
      usageException(
        "InvalidDatabaseURL",
        "Configured database URL '\(url)' is invalid. It should point to the root of a database")
    }
    // The database of a deleted app is not registered, because another app may already have its name.
    if app.isDeleted {
      let database = Database(app: app, endpoint: endpoint)
      database.shutDown()
      return database
    }
    let identity = Identity(app: app.name, endpoint: endpoint)
    var isNew = false
    let database = instances.withLock { instances in
      if let database = instances[identity] { return database }
      let database = Database(app: app, endpoint: endpoint)
      instances[identity] = database
      isNew = true
      return database
    }
    if isNew {
      app.onDelete {
        Database.instances.withLock { $0.removeValue(forKey: identity) }?.shutDown()
      }
    }
    return database
  }

  private func shutDown() {
    let repository = state.withLock { state in
      state.isShutDown = true
      return state.repository
    }
    repository?.shutdown()
  }

  private class func defaultApp() -> FirebaseApp {
    guard let app = FirebaseApp.app() else {
      usageException(
        "FIRAppNotConfigured",
        "Failed to get default Firebase Database instance. Must call `FirebaseApp.configure()` before using "
          + "Firebase Database.")
    }
    return app
  }

  /// The instance whose references use a repository.
  static func owner(of repository: Repository) -> Database {
    let owner = instances.withLock { instances in
      instances.values.first { database in database.state.withLock { $0.repository === repository } }
    }
    guard let owner else {
      usageException("FIRDatabaseDeleted", "The app of this reference was deleted")
    }
    return owner
  }

  /// The app, or nil when it was deleted.
  open var app: FirebaseApp? { owner }

  // MARK: Settings

  /// Connects to an emulator or to another server without TLS. The database's name stays the same.
  ///
  /// The app calls it before it makes the first reference. A later call stops the program, and so does an
  /// empty host.
  open func useEmulator(withHost host: String, port: Int) {
    guard !host.isEmpty else {
      usageException("NSInvalidArgumentException", "Cannot connect to an empty host.")
    }
    guard (1...65_535).contains(port) else {
      usageException("NSInvalidArgumentException", "Cannot connect to port \(port).")
    }
    let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
    let name = isBracketed ? String(host.dropFirst().dropLast()) : host
    change("useEmulator(withHost:port:)", "NSInternalInconsistencyException") { state in
      state.endpoint.host = name.lowercased()
      state.endpoint.port = port
      state.endpoint.isSecure = false
    }
  }

  /// Whether the cache and the pending writes survive the end of the program. The app sets it before it makes
  /// the first reference.
  ///
  /// Both are stored in one file below the user's data directory (`XDG_DATA_HOME` on Linux, Application Support on
  /// Apple's platforms), which only its owner can read. One process at a time can use a file. Failures of the file never
  /// stop the program: see ``persistenceErrorHandler``.
  ///
  /// A local write is stored before its events arrive. From then on it survives the end of the process. It
  /// also survives a power cut as soon as the file is synced in the background. Completions of writes,
  /// transactions and onDisconnect operations do not survive the end of the process.
  open var isPersistenceEnabled: Bool {
    get { state.withLock { $0.isPersistenceEnabled } }
    set { change("isPersistenceEnabled", "FIRDatabaseAlreadyInUse") { $0.isPersistenceEnabled = newValue } }
  }

  /// The size in bytes up to which the cache on disk may grow: 1 MiB to 100 MiB, by default 10 MiB. The app
  /// sets it before it makes the first reference.
  ///
  /// Above this size the least recently used data is removed. Observed and synchronized data is never
  /// removed, so the cache may exceed the size.
  open var persistenceCacheSizeBytes: UInt {
    get { state.withLock { $0.cacheSize } }
    set {
      guard newValue >= 1 << 20 else {
        usageException("NSInvalidArgumentException", "The cache size must be at least 1 MB")
      }
      guard newValue <= 100 << 20 else {
        usageException(
          "NSInvalidArgumentException",
          "Firebase Database currently doesn't support a cache size larger than 100 MB")
      }
      change("persistenceCacheSizeBytes", "FIRDatabaseAlreadyInUse") { $0.cacheSize = newValue }
    }
  }

  /// The last failure of the cache on disk, in ``DatabasePersistenceErrorDomain``; nil if there was none.
  open var persistenceError: (any Error)? { state.withLock { $0.persistenceError } }

  /// Receives the failures of the cache on disk, on the callback queue. The app sets it before it makes the
  /// first reference.
  ///
  /// The errors are in ``DatabasePersistenceErrorDomain``, and their codes are those of
  /// ``CachePersistenceError``. After each error the database continues with a new file, or in memory only.
  open var persistenceErrorHandler: (@Sendable (any Error) -> Void)? {
    get { state.withLock { $0.persistenceErrorHandler } }
    set {
      change("persistenceErrorHandler", "FIRDatabaseAlreadyInUse") { $0.persistenceErrorHandler = newValue }
    }
  }

  /// The directory below which the cache file is stored, for tests; nil for the user's data directory.
  var dataDirectory: URL? {
    get { state.withLock { $0.dataDirectory } }
    set { change("dataDirectory", "FIRDatabaseAlreadyInUse") { $0.dataDirectory = newValue } }
  }

  /// The device's clock, in milliseconds since 1970, for tests.
  var clock: @Sendable () -> Int64 {
    get { state.withLock { $0.clock } }
    set { change("clock", "FIRDatabaseAlreadyInUse") { $0.clock = newValue } }
  }

  /// The queue on which events and completions arrive; by default the main queue. The app sets it before it
  /// makes the first reference.
  open var callbackQueue: DispatchQueue {
    get { state.withLock { $0.callbackQueue } }
    set { change("callbackQueue", "FIRDatabaseAlreadyInUse") { $0.callbackQueue = newValue } }
  }

  private func change(_ name: String, _ exception: String, _ change: (inout State) -> Void) {
    let isInUse = state.withLock { state in
      if state.repository == nil { change(&state) }
      return state.repository != nil
    }
    if isInUse {
      usageException(
        exception, "Calls to \(name) must be made before any other usage of the Database instance.")
    }
  }

  /// Starts or stops logging to standard error.
  open class func setLoggingEnabled(_ enabled: Bool) {
    FirebaseConfiguration.shared.setLoggerLevel(enabled ? .debug : .notice)
  }

  /// The version of this SDK.
  @discardableResult
  open class func sdkVersion() -> String { FirebaseVersion() }

  // MARK: References

  private var repository: Repository {
    state.withLock { state in
      if let repository = state.repository { return repository }
      let repository = Repository(
        endpoint: state.endpoint, callbackQueue: state.callbackQueue, storage: storage(state),
        clock: state.clock,
        tokenSources: { [weak owner] in
          owner.map { TokenSources(auth: $0.authTokens, appCheck: $0.appCheckTokens) }
        })
      if state.isShutDown { repository.shutdown() }
      state.repository = repository
      return repository
    }
  }

  private func storage(_ state: State) -> any ClientStorage {
    guard state.isPersistenceEnabled else { return MemoryStorage() }
    return DiskStorage(
      url: CacheLocation.file(
        of: state.endpoint, appID: appID, appName: appName, root: state.dataDirectory),
      policy: CachePolicy(maximumBytes: Int(state.cacheSize)), now: state.clock,
      report: { [weak self] error in self?.report(error) })
  }

  private func report(_ error: NSError) {
    FirebaseLogger.log(.error, service: "Database", error.localizedDescription)
    let (queue, handler) = state.withLock { state in
      state.persistenceError = error
      return (state.callbackQueue, state.persistenceErrorHandler)
    }
    if let handler { queue.async { handler(error) } }
  }

  /// The root of the database.
  @discardableResult
  open func reference() -> DatabaseReference {
    DatabaseReference(repository: repository, path: .root)
  }

  /// A location by its path.
  @discardableResult
  open func reference(withPath path: String) -> DatabaseReference {
    let path = PathRules.reference(path, below: .root, method: "referenceWithPath:")
    return DatabaseReference(repository: repository, path: path)
  }

  /// The location of a URL, which must belong to this database.
  @discardableResult
  open func reference(fromURL databaseUrl: String) -> DatabaseReference {
    guard let (endpoint, keys) = DatabaseEndpoint.parse(databaseUrl) else {
      usageException("InvalidDatabaseURL", "The database URL '\(databaseUrl)' cannot be parsed")
    }
    let configured = state.withLock { $0.endpoint }
    if configured.hasHostPerDatabase, endpoint.host != configured.host {
      usageException(
        "InvalidDatabaseURL",
        "Invalid URL (\(databaseUrl)) passed to reference(fromURL:). URL was expected to match configured Database URL: "
          + configured.url)
    }
    let path = PathRules.reference(
      "/" + keys.joined(separator: "/"), below: .root, method: "referenceFromURL:")
    return DatabaseReference(repository: repository, path: path)
  }

  // MARK: The connection

  /// Cancels every write that the server has not acknowledged. The completions of these writes receive an
  /// error.
  open func purgeOutstandingWrites() {
    repository.enqueue { $0.purgeOutstandingWrites() }
  }

  /// Closes the connection until `goOnline()`. Writes and observers continue locally.
  open func goOffline() {
    repository.goOffline()
  }

  /// Opens the connection again.
  open func goOnline() {
    repository.goOnline()
  }
}
