// The Realtime Database assembly makes the parts of a server's Realtime Database: its engine, its access
// policy and its endpoint.

import Logging
import OrderedStore
import Ports
import RealtimeEndpoints
import RealtimeEngine

/// The Realtime Database of a server.
struct RealtimeAssembly: Sendable {
  let engine: RealtimeEngine
  /// The protocols of its port.
  let protocols: PortProtocols

  init(_ configuration: HearthConfiguration, store: any OrderedStore, limits: PortLimits, log: Logger) {
    let policy: any AccessPolicy = configuration.emulator ? EmulatorPolicy() : ProductionPolicy()
    engine = RealtimeEngine(
      store: store, policy: policy, limits: configuration.limits.realtime,
      report: { log.error("\($0)") })
    let endpoint = RealtimeEndpoint(
      engine: engine, authentication: configuration.emulator ? .emulator : .refuseAll,
      defaultNamespace: "\(configuration.project)-default-rtdb",
      limits: RealtimeEndpointLimits(data: configuration.limits.realtime), log: log)
    protocols = endpoint.protocols(limits)
  }

  /// Logs the databases whose rules are stored but not enforced.
  func reportUnenforcedRules(_ log: Logger) async throws(HearthError) {
    let namespaces: [String]
    do {
      namespaces = try await engine.namespacesWithUnenforcedRules()
    } catch { throw HearthError("The rules of the databases cannot be read: \(error)") }
    for namespace in namespaces {
      log.warning("\(RealtimeEndpoint.unenforcedRules)", metadata: ["namespace": "\(namespace)"])
    }
  }

  /// Shuts the engine down. The caller has drained the port before.
  func shutDown() async { await engine.shutdown() }
}
