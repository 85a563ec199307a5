// The Realtime Database assembly makes the parts of a server's Realtime Database: its engine, its access
// policies and its endpoint.

import Access
import Logging
import OrderedStore
import Ports
import RealtimeEndpoints
import RealtimeEngine
import SecurityRules

/// The Realtime Database of a server.
struct RealtimeAssembly: Sendable {
  let engine: RealtimeEngine
  /// The protocols of its port.
  let protocols: PortProtocols

  /// - Parameters:
  ///   - verifier: verifies the credentials of callers; nil for an emulator, which trusts them.
  ///   - denials: the logs that receive the denied operations.
  init(
    _ configuration: HearthConfiguration, store: any OrderedStore, verifier: (any CredentialVerifier)?,
    denials: ServerDenials, limits: PortLimits, log: Logger
  ) {
    let policy: any AccessPolicy<RealtimeAccess> = configuration.emulator ? OpenPolicy() : LockedPolicy()
    engine = RealtimeEngine(
      store: store,
      policies: PolicyDirectory(default: policy, observer: { denials.observer(ofNamespace: $0) }),
      rules: { RealtimeRulesPolicy.policy(of: $0) },
      project: { [project = configuration.project] in Self.project(of: $0, default: project) },
      limits: configuration.limits.realtime, report: { log.error("\($0)") })
    let secrets = configuration.authSettings.databaseSecrets
    let authentication = verifier.map { verifier in
      RealtimeAuthentication.verifying(
        secrets.isEmpty
          ? verifier : DatabaseSecrets(secrets, project: configuration.project, others: verifier))
    }
    let endpoint = RealtimeEndpoint(
      engine: engine, authentication: authentication ?? .emulator,
      defaultNamespace: "\(configuration.project)-default-rtdb", recordsCoverage: configuration.emulator,
      limits: RealtimeEndpointLimits(data: configuration.limits.realtime), log: log)
    protocols = endpoint.protocols(limits)
  }

  /// The project of a namespace. `P` and `P-default-rtdb` belong to the project `P`, other names to the server's project.
  private static func project(of namespace: String, default project: String) -> String {
    let suffix = "-default-rtdb"
    guard namespace != project, namespace.hasSuffix(suffix), namespace != suffix else { return project }
    return String(namespace.dropLast(suffix.count))
  }

  /// Shuts the engine down. The caller has drained the port before.
  func shutDown() async { await engine.shutdown() }
}
