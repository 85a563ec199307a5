// Puts the Realtime Database over the store: its engine, the policy of this way of running, and its endpoint.

import Endpoints
import Logging
import OrderedStore
import RealtimeEngine

/// The Realtime Database of a server.
struct RealtimeAssembly: Sendable {
  let engine: RealtimeEngine
  /// What its port speaks.
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

  /// Says which databases have rules that are kept and not enforced, before anyone is served.
  func reportUnenforcedRules(_ log: Logger) async throws(HearthError) {
    let namespaces: [String]
    do {
      namespaces = try await engine.namespacesWithUnenforcedRules()
    } catch { throw HearthError("The rules of the databases cannot be read: \(error)") }
    for namespace in namespaces {
      log.warning("\(RealtimeEndpoint.unenforcedRules)", metadata: ["namespace": "\(namespace)"])
    }
  }

  /// Ends what the engine does; its port is drained before.
  func shutDown() async { await engine.shutdown() }
}
