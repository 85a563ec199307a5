// A Hearth server is a complete server in one object. It opens the store, the engines and the ports, and
// closes them again.
//
// Invariants
//   1. `start` either serves on every address, or throws and leaves nothing open: no port, no directory.
//   2. `stop` accepts no new requests and lets requests in flight finish within the grace period. It then
//      closes the store, with every acknowledged write on disk, and releases the directory.

import Access
import EmbeddedStore
import EmulatorSuite
import FirestoreEndpoints
import FirestoreEngine
import FirestoreModel
import Foundation
import IdentityEndpoints
public import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import OrderedStore
import Ports
import RealtimeEngine
import RulesEndpoints
import SecurityRules

/// A Hearth server in this process.
public final class HearthServer: Sendable {
  /// An address that the server listens on.
  public struct Listener: Sendable, Equatable {
    /// The service: `Cloud Firestore`, `Realtime Database`, `Authentication` or `Emulator hub`.
    public var product: String
    /// The bound address.
    public var host: String
    /// The bound port.
    public var port: Int
    /// Whether the port uses TLS.
    public var tls: Bool

    /// The address as a URL, such as `http://127.0.0.1:8080`.
    public var url: String {
      let host = host.contains(":") ? "[\(host)]" : host
      return "\(tls ? "https" : "http")://\(host):\(port)"
    }
  }

  /// The parts of a running server.
  private struct Running: Sendable {
    var store: any OrderedStore
    var firestore: FirestoreEngine
    var realtime: RealtimeAssembly
    var identity: IdentityAssembly
    var dataDirectory: EmulatorDataDirectory?
    var locator: HubLocator?
    /// The socket of `hearth credentials`.
    var socket: ListeningPort?
    /// Ends the streams of revoked callers.
    var revocations: Task<Void, Never>?
    /// Fetches the keys of other issuers.
    var issuerKeys: Task<Void, Never>?
    var ports: [(listener: Listener, port: ListeningPort)] = []
  }

  private enum Phase {
    case idle
    case starting
    case running(Running)
    case stopped
  }

  /// The configuration of the server.
  public let configuration: HearthConfiguration
  private let log: Logger
  private let phase = NIOLockedValueBox(Phase.idle)

  /// Makes a server. Nothing is opened before ``start()``.
  public init(_ configuration: HearthConfiguration, log: Logger? = nil) {
    self.configuration = configuration
    self.log =
      log
      ?? {
        var log = Logger(label: "hearth") { StreamLogHandler.standardError(label: $0) }
        log.logLevel = configuration.logLevel
        return log
      }()
  }

  /// Opens the store and every port.
  /// - Returns: the addresses, Firestore first.
  /// - Throws: ``HearthError`` with advice; nothing stays open then. A second start and a start in a cancelled
  ///   task also fail. A failed start writes no export, because a partial import would replace a complete
  ///   export.
  @discardableResult
  public func start() async throws(HearthError) -> [Listener] {
    let mayStart = phase.withLockedValue { phase in
      guard case .idle = phase else { return false }
      phase = .starting
      return true
    }
    guard mayStart else { throw HearthError("A server is started once; make another to start again.") }
    do {
      let running = try await open()
      phase.withLockedValue { $0 = .running(running) }
      return running.ports.map(\.listener)
    } catch {
      phase.withLockedValue { $0 = .stopped }
      throw error
    }
  }

  /// The addresses of the server; empty while it does not run.
  public var listeners: [Listener] {
    phase.withLockedValue { phase in
      if case .running(let running) = phase { running.ports.map(\.listener) } else { [] }
    }
  }

  /// The port of Cloud Firestore; nil while the server does not run.
  public var firestorePort: Int? { listeners.first { $0.product == Self.firestoreName }?.port }

  /// The port of the emulator hub; nil while the server does not run or has none.
  public var hubPort: Int? { listeners.first { $0.product == Self.hubName }?.port }

  /// The port of the Realtime Database; nil while the server does not run or does not serve it.
  public var databasePort: Int? { listeners.first { $0.product == Self.databaseName }?.port }

  /// The port of the Identity Toolkit and secure token APIs; nil while the server does not run or does not serve them.
  public var authPort: Int? { listeners.first { $0.product == Self.authName }?.port }

  /// Stops the server: drains every port and closes the store. Returns when everything is closed. Later calls
  /// do nothing.
  public func stop() async {
    do throws(HearthError) { try await stopAndExport() } catch { log.error("\(error)") }
  }

  /// Stops like ``stop()``, but does not export. Used if the server was stopped before it was reported as
  /// ready: an earlier export must then not be replaced.
  func stopWithoutExport() async {
    guard let running = markStopped() else { return }
    await drain(running)
    await close(running)
  }

  private func markStopped() -> Running? {
    phase.withLockedValue { phase in
      guard case .running(let running) = phase else { return nil }
      phase = .stopped
      return running
    }
  }

  /// Stops the server like ``stop()``, but throws if the export at exit fails instead of logging the failure.
  /// - Throws: ``HearthError`` if the export fails.
  func stopAndExport() async throws(HearthError) {
    guard let running = markStopped() else { return }
    await drain(running)
    var failure: HearthError?
    if let dataDirectory = running.dataDirectory, let path = configuration.exportOnExit {
      do { try await dataDirectory.export(to: path) } catch {
        failure = HearthError("The automatic export to \(path) failed (--export-on-exit): \(error)")
      }
    }
    await close(running)
    if let failure { throw failure }
  }

  /// Reads the rules files again and puts the rules in force. If any file has an error, logs it and changes nothing.
  public func reloadRules() async {
    let running: Running? = phase.withLockedValue { phase in
      if case .running(let running) = phase { running } else { nil }
    }
    let count = configuration.rulesFiles.count + configuration.databaseRulesFiles.count
    guard let running, count > 0 else { return }
    do {
      let rules = try FirestoreRules(configuration, log: log)
      let databaseRules = try DatabaseRules(configuration)
      try await rules.release(on: running.firestore)
      try await databaseRules.publish(on: running.realtime.engine)
      log.notice("the rules files were read again", metadata: ["files": "\(count)"])
    } catch {
      log.error("the rules stay unchanged: \(error)")
    }
  }

  /// Reads the index files again and builds new indexes. If any file has an error, logs it and changes
  /// nothing.
  public func reloadIndexes() async {
    let engine: FirestoreEngine? = phase.withLockedValue { phase in
      if case .running(let running) = phase { running.firestore } else { nil }
    }
    guard let engine else { return }
    let indexes: [(database: String, indexes: DatabaseIndexConfiguration)]
    do {
      indexes = try configuration.readIndexes(log: log)
      try engine.validate(indexes)
    } catch {
      return log.error("the indexes stay unchanged: \(error)")
    }
    do {
      try await engine.setIndexes(indexes)
      log.notice("the index files were read again", metadata: ["files": "\(configuration.indexFiles.count)"])
    } catch {
      log.error("the index files were read again, but not all indexes could be set: \(error)")
    }
  }

  static let firestoreName = "Cloud Firestore"
  static let databaseName = "Realtime Database"
  static let authName = "Authentication"
  static let hubName = "Emulator hub"

  /// The version that this server reports to tools.
  static let version = "0.1.0"

  private func open() async throws(HearthError) -> Running {
    try configuration.validate()
    let indexes = try configuration.readIndexes(log: log)
    let rules = try FirestoreRules(configuration, log: log)
    let databaseRules = try DatabaseRules(configuration)
    let store = try await configuration.storage.open(
      acceptsClockJump: configuration.acceptsClockJump, log: log)
    let identity: IdentityAssembly
    do throws(HearthError) {
      identity = try await IdentityAssembly(configuration, store: store, log: log)
    } catch {
      try? await store.close()
      throw error
    }
    let policy: any AccessPolicy<FirestoreAccess> = configuration.emulator ? OpenPolicy() : LockedPolicy()
    var options = FirestoreEngine.Options(createsDatabases: configuration.emulator)
    options.requiresIndexes = configuration.indexMode == .strict
    options.limits = configuration.limits.firestore
    options.sortMemory = max(SystemMemory.bytes / 8, EngineLimits.maximumSortBytes)
    let raised = configuration.limits.raised
    if !raised.isEmpty {
      log.notice("limits are raised", metadata: ["limits": "\(raised.joined(separator: " "))"])
    }
    let makePolicy: @Sendable (FirestoreRuleset) -> FirestoreRulesPolicy = {
      [explains = log.logLevel <= .debug, isEmulator = configuration.emulator] in
      FirestoreRulesPolicy($0, explainsDenials: explains, namesStatements: isEmulator)
    }
    options.compileRules = { makePolicy(try FirestoreRuleset(compiling: $0)) }
    let denials = ServerDenials(isEmulator: configuration.emulator, log: log)
    options.observer = { denials.observer(of: $0) }
    options.report = { [log] in log.notice("\($0)") }
    options.reportDenial = { [log] database, denial in
      log.debug("denied", metadata: ["database": "\(database)", "reason": "\(denial.reason)"])
    }
    let engine = FirestoreEngine(store: store, policy: policy, options: options)
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: SystemMemory.bytes / 4)
    // The ports share one budget of connections, and a single port may use all of it.
    limits.maximumConnections = OpenFileBudget.current.connections
    limits.connections = ConnectionBudget(limits.maximumConnections)
    limits.origins = configuration.servedOrigins
    let realtime = RealtimeAssembly(
      configuration, store: store, verifier: identity.verifier, denials: denials, limits: limits, log: log)
    identity.checkCallers(of: realtime.engine)
    var running = Running(store: store, firestore: engine, realtime: realtime, identity: identity)
    do throws(HearthError) {
      try await rules.release(on: engine)
      if rules.isEmpty, configuration.emulator {
        log.notice("databases of Cloud Firestore without security rules allow every request")
      }
      do { try await realtime.engine.findRestrictedNamespaces() } catch {
        throw HearthError("The rules of the databases cannot be read: \(error)")
      }
      try await databaseRules.publish(on: realtime.engine)
      if databaseRules.isEmpty, configuration.emulator, configuration.database != nil {
        log.notice("databases of the Realtime Database without security rules allow every request")
      }
      try await engine.setIndexes(indexes)
      try Self.checkCancellation()
      try await createDatabases(engine, identity)
      if configuration.emulator {
        let dataDirectory = EmulatorDataDirectory(
          firestore: engine, realtime: configuration.database == nil ? nil : realtime.engine,
          auth: configuration.auth == nil ? nil : AuthExports(identity.service(isTLS: false)),
          project: configuration.project, version: Self.version, log: log)
        running.dataDirectory = dataDirectory
        // This check runs before clients can write data. If the export directory is invalid, their data would
        // otherwise be lost at exit.
        if let path = configuration.exportOnExit { try await checkExport(to: path, dataDirectory) }
        // The import runs before the ports open, so that no client sees a partial import.
        if let path = configuration.importedDirectory { try await load(path, dataDirectory) }
        try Self.checkCancellation()
      }
      let tls = try tls()
      let authentication = identity.verifier.map { FirestoreAuthentication.verifying($0) } ?? .emulator
      let service = RulesService(
        engine, authentication: authentication, log: log, policy: makePolicy)
      var handlers: [any FirestoreRouteHandler] = [
        service,
        DenialsHandler(
          logs: denials, firestore: engine, realtime: realtime.engine, authentication: authentication),
      ]
      if configuration.emulator { handlers.append(FirestoreEmulator(engine, feed: denials.feed, log: log)) }
      let protocols = PortProtocols.firestore(
        engine, authentication: authentication, limits: limits,
        webChannel: configuration.emulator ? .emulator : WebChannelLimits(), handlers: handlers, log: log)
      try await listen(
        configuration.firestore, protocols, tls, limits, Self.firestoreName, flag: "--firestore-port",
        in: &running)
      if let address = configuration.database {
        try await listen(
          address, realtime.protocols, tls, limits, Self.databaseName, flag: "--database-port", in: &running)
      }
      if let address = configuration.auth {
        var authLimits = limits
        authLimits.origins = limits.origins.servingEveryPage
        let service = identity.service(isTLS: tls != nil, pages: limits.origins)
        try await listen(
          address, service.protocols(authLimits), tls, authLimits, Self.authName,
          flag: "--auth-port", in: &running,
          fallsBackToAnyPort: configuration.emulator && !configuration.authPortIsFixed)
      }
      running.revocations = Task { await identity.endRevokedStreams(of: engine, realtime.engine) }
      running.issuerKeys = Task { await identity.loadIssuerKeys() }
      running.socket = await identity.openSocket(configuration.storage, limits, log: log)
      if configuration.emulator, let address = configuration.hub {
        // The hub never uses TLS, because tools contact it before they know whether this server uses TLS.
        try await listen(
          address, hub(running).protocols(limits), nil, limits, Self.hubName, flag: "--hub-port",
          in: &running,
          fallsBackToAnyPort: !configuration.hubPortIsFixed)
        if let hub = running.ports.last?.listener {
          running.locator = HubLocator(
            project: configuration.project, host: hub.host, port: hub.port, version: Self.version, log: log)
        }
      }
      try Self.checkCancellation()
      return running
    } catch {
      // The current task may be cancelled, which would disturb closing. Closing therefore runs in a new task.
      let opened = running
      await Task {
        await drain(opened)
        await close(opened)
      }.value
      throw error
    }
  }

  /// Creates the default Firestore database of every project of a production server. An emulator creates databases on
  /// first use.
  private func createDatabases(
    _ engine: FirestoreEngine, _ identity: IdentityAssembly
  ) async throws(HearthError) {
    guard !configuration.emulator else { return }
    do {
      for project in try await identity.projectIDs() {
        try await engine.createDatabase(DatabaseName(parsing: "projects/\(project)/databases/(default)"))
      }
    } catch { throw HearthError("The databases of the projects cannot be created: \(error)") }
  }

  /// Throws if the start was cancelled.
  private static func checkCancellation() throws(HearthError) {
    if Task.isCancelled { throw HearthError("The start was cancelled.") }
  }

  /// Imports a directory. The directory may be missing if the export at exit will create it, so that the
  /// first start works with the same options as later ones.
  private func load(_ path: String, _ dataDirectory: EmulatorDataDirectory) async throws(HearthError) {
    let isCreatedAtExit = path == configuration.exportOnExit
    do { try await dataDirectory.load(from: path, mayBeMissing: isCreatedAtExit) } catch {
      throw HearthError("\(error) (--import)")
    }
  }

  private func checkExport(to path: String, _ dataDirectory: EmulatorDataDirectory) async throws(HearthError)
  {
    do { try await dataDirectory.checkExport(to: path) } catch {
      throw HearthError("\(error) (--export-on-exit)")
    }
  }

  /// Makes the emulator hub, which lists the ports that are already open.
  private func hub(_ running: Running) -> EmulatorHub {
    let names = [
      Self.firestoreName: "firestore", Self.databaseName: "database", Self.authName: "auth",
    ]
    let emulators = running.ports.compactMap { running in
      names[running.listener.product].map {
        // The feed of requests is served on the Firestore port.
        let feedPort = running.listener.product == Self.firestoreName ? running.listener.port : nil
        return EmulatorHub.Emulator(
          name: $0, host: running.listener.host, port: running.listener.port, webSocketPort: feedPort)
      }
    }
    return EmulatorHub(
      emulators, dataDirectory: running.dataDirectory, version: Self.version, process: getpid())
  }

  private func tls() throws(HearthError) -> PortTLS? {
    guard let files = configuration.tls else { return nil }
    do {
      return try PortTLS(certificateFile: files.certificate, keyFile: files.key)
    } catch {
      throw HearthError("\(error) (--tls-cert, --tls-key)")
    }
  }

  private func listen(
    _ address: HearthConfiguration.Address, _ protocols: PortProtocols, _ tls: PortTLS?,
    _ limits: PortLimits, _ product: String, flag: String, in running: inout Running,
    fallsBackToAnyPort: Bool = false
  ) async throws(HearthError) {
    do {
      let port = try await ListeningPort.bind(
        host: address.host, port: address.port, protocols: protocols, tls: tls, limits: limits,
        group: MultiThreadedEventLoopGroup.singleton, log: log)
      let listener = Listener(product: product, host: port.host, port: port.port, tls: tls != nil)
      running.ports.append((listener, port))
    } catch {
      if fallsBackToAnyPort, error.reason == .addressInUse, address.port != 0 {
        let anyPort = HearthConfiguration.Address(host: address.host, port: 0)
        return try await listen(anyPort, protocols, tls, limits, product, flag: flag, in: &running)
      }
      let advice =
        switch error.reason {
        case .addressInUse: " Choose another with \(flag), or 0 for any free one."
        case .notPermitted: " Choose one above 1023 with \(flag)."
        case .addressUnavailable: " Choose another with --host."
        case .tls: " Give the key that belongs to the certificate (--tls-cert, --tls-key)."
        default: ""
        }
      throw HearthError("\(product): \(error)\(advice)")
    }
  }

  private func drain(_ running: Running) async {
    running.locator?.remove()
    let grace = TimeAmount.seconds(Int64(configuration.drainSeconds))
    await withTaskGroup(of: Void.self) { group in
      for (_, port) in running.ports { group.addTask { await port.drain(grace: grace) } }
      if let socket = running.socket { group.addTask { await socket.drain(grace: grace) } }
    }
  }

  private func close(_ running: Running) async {
    running.revocations?.cancel()
    running.issuerKeys?.cancel()
    await running.firestore.shutDown()
    await running.realtime.shutDown()
    do {
      try await running.store.close()
    } catch {
      log.error("the store did not close cleanly", metadata: ["error": "\(error)"])
    }
  }
}
