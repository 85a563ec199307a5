// A whole server in one object: it opens the store, puts the engines and ports over it, and takes them down again.
//
// Invariants
//   1. `start` either serves on every address, or throws and holds nothing: no port, no directory.
//   2. `stop` accepts nothing new, lets what is in flight finish within the grace period, then closes the store and
//      with it gives the directory up; every acknowledged write is on disk before that.

import EmbeddedStore
import Endpoints
import FirestoreEngine
import Foundation
public import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import OrderedStore

/// A Hearth server in this process.
public final class HearthServer: Sendable {
  /// An address that the server listens on.
  public struct Listener: Sendable, Equatable {
    /// What listens: `Cloud Firestore`, `Realtime Database` or `Emulator hub`.
    public var product: String
    /// The address, as bound.
    public var host: String
    /// The port, as bound.
    public var port: Int
    /// Whether it speaks TLS.
    public var tls: Bool

    /// The address as a URL, such as `http://127.0.0.1:8080`.
    public var url: String {
      let host = host.contains(":") ? "[\(host)]" : host
      return "\(tls ? "https" : "http")://\(host):\(port)"
    }
  }

  /// Everything that runs while the server does.
  private struct Running: Sendable {
    var store: any OrderedStore
    var firestore: FirestoreEngine
    var realtime: RealtimeAssembly
    var suite: EmulatorSuite?
    var locator: HubLocator?
    var ports: [(listener: Listener, port: ListeningPort)] = []
  }

  private enum Phase {
    case idle
    case starting
    case running(Running)
    case stopped
  }

  /// What the server was made with.
  public let configuration: HearthConfiguration
  private let log: Logger
  private let phase = NIOLockedValueBox(Phase.idle)

  /// Makes a server; nothing is opened before ``start()``.
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
  /// - Throws: ``HearthError`` that says what to change; nothing stays open then. Also if it was started before, or its
  ///   task is cancelled meanwhile: nothing is exported then, since half of an import would take the place of the whole.
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

  /// The addresses the server listens on; empty while it does not run.
  public var listeners: [Listener] {
    phase.withLockedValue { phase in
      if case .running(let running) = phase { running.ports.map(\.listener) } else { [] }
    }
  }

  /// The port of Cloud Firestore; nil while the server does not run.
  public var firestorePort: Int? { listeners.first { $0.product == Self.firestoreName }?.port }

  /// The port of the emulators' hub; nil while the server does not run or has none.
  public var hubPort: Int? { listeners.first { $0.product == Self.hubName }?.port }

  /// The port of the Realtime Database; nil while the server does not run or does not serve it.
  public var databasePort: Int? { listeners.first { $0.product == Self.databaseName }?.port }

  /// Stops: drains every port, closes the store. Returns when everything is closed; later calls do nothing.
  public func stop() async {
    do throws(HearthError) { try await stopAndExport() } catch { log.error("\(error)") }
  }

  /// As ``stop()``, for a server that nobody was told of: what lies where it would export stays.
  func stopWithoutExport() async {
    guard let running = takeRunning() else { return }
    await drain(running)
    await close(running)
  }

  private func takeRunning() -> Running? {
    phase.withLockedValue { phase in
      guard case .running(let running) = phase else { return nil }
      phase = .stopped
      return running
    }
  }

  /// As ``stop()``; tells whether an export at the end failed.
  func stopAndExport() async throws(HearthError) {
    guard let running = takeRunning() else { return }
    await drain(running)
    var failure: HearthError?
    if let suite = running.suite, let path = configuration.exportOnExit {
      do { try await suite.export(to: path) } catch {
        failure = HearthError("The automatic export to \(path) failed (--export-on-exit): \(error)")
      }
    }
    await close(running)
    if let failure { throw failure }
  }

  /// Reads the index files again and builds what is new. What is wrong in any file is logged, and changes nothing.
  public func reloadIndexes() async {
    let engine: FirestoreEngine? = phase.withLockedValue { phase in
      if case .running(let running) = phase { running.firestore } else { nil }
    }
    guard let engine else { return }
    let indexes: [(database: String, indexes: IndexConfiguration)]
    do {
      indexes = try configuration.readIndexes(log: log)
      try engine.validate(indexes)
    } catch {
      return log.error("the indexes stay as they are: \(error)")
    }
    do {
      try await engine.setIndexes(indexes)
      log.notice("the index files were read again", metadata: ["files": "\(configuration.indexFiles.count)"])
    } catch {
      log.error("the index files were read again, but not all could be done: \(error)")
    }
  }

  static let firestoreName = "Cloud Firestore"
  static let databaseName = "Realtime Database"
  static let hubName = "Emulator hub"

  /// The version of this server, as tools are told it.
  static let version = "0.1.0"

  private func open() async throws(HearthError) -> Running {
    try configuration.validate()
    let indexes = try configuration.readIndexes(log: log)
    let store = try await configuration.storage.open(log: log)
    let policy: any AccessPolicy = configuration.emulator ? EmulatorPolicy() : ProductionPolicy()
    var options = FirestoreEngine.Options(createsDatabases: configuration.emulator)
    options.requiresIndexes = configuration.indexes == .strict
    options.limits = configuration.limits.firestore
    options.sortMemory = max(SystemMemory.bytes / 8, EngineLimits.sortBytes)
    let raised = configuration.limits.raised
    if !raised.isEmpty {
      log.notice("limits are raised", metadata: ["limits": "\(raised.joined(separator: " "))"])
    }
    options.report = { [log] in log.notice("\($0)") }
    let engine = FirestoreEngine(store: store, policy: policy, options: options)
    var limits = PortLimits()
    limits.memory = MemoryBudget(limit: SystemMemory.bytes / 4)
    // Each port may take them all.
    limits.maximumConnections = OpenFiles.current.connections
    limits.connections = ConnectionBudget(limits.maximumConnections)
    let realtime = RealtimeAssembly(configuration, store: store, limits: limits, log: log)
    var running = Running(store: store, firestore: engine, realtime: realtime)
    do throws(HearthError) {
      try await realtime.reportUnenforcedRules(log)
      try await engine.setIndexes(indexes)
      try Self.goOn()
      if configuration.emulator {
        let suite = EmulatorSuite(
          firestore: engine, realtime: configuration.database == nil ? nil : realtime.engine,
          project: configuration.project, version: Self.version, log: log)
        running.suite = suite
        // Before there is anything that would be lost at the end.
        if let path = configuration.exportOnExit { try await checkExport(to: path, suite) }
        // Before anyone is served, so that nobody sees half of it.
        if let path = configuration.importedDirectory { try await load(path, suite) }
        try Self.goOn()
      }
      let tls = try tls()
      let protocols = PortProtocols.firestore(
        engine, authentication: configuration.emulator ? .emulator : .refuseAll, limits: limits, log: log)
      try await listen(
        configuration.firestore, protocols, tls, limits, Self.firestoreName, flag: "--firestore-port",
        in: &running)
      if let address = configuration.database {
        try await listen(
          address, realtime.protocols, tls, limits, Self.databaseName, flag: "--database-port", in: &running)
      }
      if configuration.emulator, let address = configuration.hub {
        // In clear also where the databases speak TLS: tools ask it before they know anything of this server.
        try await listen(
          address, hub(running).protocols(limits), nil, limits, Self.hubName, flag: "--hub-port",
          in: &running,
          orAnyPort: !configuration.hubPortIsFixed)
        if let hub = running.ports.last?.listener {
          running.locator = HubLocator(
            project: configuration.project, host: hub.host, port: hub.port, version: Self.version, log: log)
        }
      }
      try Self.goOn()
      return running
    } catch {
      // In a task of its own: that of the start may be cancelled, and what is open has to be closed all the same.
      let opened = running
      await Task {
        await drain(opened)
        await close(opened)
      }.value
      throw error
    }
  }

  /// Ends a start that nobody waits for any more.
  private static func goOn() throws(HearthError) {
    if Task.isCancelled { throw HearthError("The start was cancelled.") }
  }

  /// A directory that is made by the export at the end may be missing: so that the first start needs no other options.
  private func load(_ path: String, _ suite: EmulatorSuite) async throws(HearthError) {
    let isYetToCome = path == configuration.exportOnExit
    do { try await suite.load(from: path, mayBeMissing: isYetToCome) } catch {
      throw HearthError("\(error) (--import)")
    }
  }

  private func checkExport(to path: String, _ suite: EmulatorSuite) async throws(HearthError) {
    do { try await suite.checkExport(to: path) } catch { throw HearthError("\(error) (--export-on-exit)") }
  }

  /// The hub that tells where the ports are which listen already.
  private func hub(_ running: Running) -> EmulatorHub {
    let emulators = running.ports.map { running in
      EmulatorHub.Emulator(
        name: running.listener.product == Self.firestoreName ? "firestore" : "database",
        host: running.listener.host, port: running.listener.port)
    }
    return EmulatorHub(emulators, suite: running.suite, version: Self.version, process: getpid())
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
    _ limits: PortLimits, _ product: String, flag: String, in running: inout Running, orAnyPort: Bool = false
  ) async throws(HearthError) {
    do {
      let port = try await ListeningPort.bind(
        host: address.host, port: address.port, protocols: protocols, tls: tls, limits: limits,
        group: EventLoops.shared, log: log)
      let listener = Listener(product: product, host: port.host, port: port.port, tls: tls != nil)
      running.ports.append((listener, port))
    } catch {
      if orAnyPort, error.reason == .addressInUse, address.port != 0 {
        let other = HearthConfiguration.Address(host: address.host, port: 0)
        return try await listen(other, protocols, tls, limits, product, flag: flag, in: &running)
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
    }
  }

  private func close(_ running: Running) async {
    await running.firestore.shutDown()
    await running.realtime.shutDown()
    do {
      try await running.store.close()
    } catch {
      log.error("the store did not close cleanly", metadata: ["error": "\(error)"])
    }
  }
}
