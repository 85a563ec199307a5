// The identity assembly makes the parts of a server's authentication: accounts, tokens, passwords and the auth port.

import Access
import EmulatorSuite
import FirestoreEngine
import Foundation
import Identity
import IdentityEndpoints
import Logging
import NIOCore
import NIOPosix
import OrderedStore
import Ports
import RealtimeEngine

/// The authentication of a server.
struct IdentityAssembly: Sendable {
  /// The parts that only a production server has.
  private struct Production: Sendable {
    var authority: ProductionTokenAuthority
    var revocations: RevocationList
    var issuerKeys: IssuerKeyLoader
  }

  private let services: IdentityServices
  private let production: Production?
  private let handlers: [any IdentityRouteHandler]

  /// Opens the keys and service accounts of a production server.
  init(
    _ configuration: HearthConfiguration, store: any OrderedStore, log: Logger
  ) async throws(HearthError) {
    let identity = IdentityStore(store)
    let outbound = OutboundHTTP(group: MultiThreadedEventLoopGroup.singleton)
    guard !configuration.emulator else {
      production = nil
      handlers = [AuthEmulator()]
      services = IdentityServices(
        store: identity, mode: .emulator, defaultProject: configuration.project,
        hasher: PasswordHasher(.emulator), tokens: EmulatorTokenAuthority(), outbound: outbound,
        delivery: LogDelivery(log), providers: EmulatorProviders(), log: log)
      return
    }
    let settings = configuration.authSettings
    let delivery: ConfiguredDelivery
    do throws(DeliveryFailure) {
      delivery = try ConfiguredDelivery(
        mail: settings.mail, textMessageURL: settings.textMessageURL, outbound: outbound,
        group: MultiThreadedEventLoopGroup.singleton, log: log)
    } catch {
      throw HearthError("mail.relay of --auth-config cannot be used: \(error)")
    }
    do {
      let keys = try await SigningKeys.open(identity)
      let accounts = try await ServiceAccounts.open(identity)
      let issuers = TrustedIssuers(
        settings.issuers.map { issuer in
          var issuer = issuer
          if issuer.project.isEmpty { issuer.project = configuration.project }
          return issuer
        })
      let revocations = try await RevocationList.open(
        identity, tokenSeconds: issuers.maximumTokenSeconds)
      let verifier = TokenVerifier(
        keys: keys, accounts: accounts, revocations: revocations, issuers: issuers)
      let authority = ProductionTokenAuthority(keys: keys, accounts: accounts, verifier: verifier)
      // The database of the server's own project exists from the start.
      _ = try await identity.project(configuration.project)
      production = Production(
        authority: authority, revocations: revocations,
        issuerKeys: IssuerKeyLoader(issuers, outbound: outbound, log: log))
      handlers = [PublicKeysHandler(), ServiceTokenHandler(authority)]
      services = IdentityServices(
        store: identity, mode: .production, defaultProject: configuration.project,
        hasher: PasswordHasher(.standard), tokens: authority, outbound: outbound,
        delivery: delivery,
        providers: OpenIDProviders(settings.providers, outbound: outbound),
        actionPage: settings.actionURL, log: log)
    } catch {
      throw HearthError("The accounts and keys cannot be opened: \(error)")
    }
  }

  /// Verifies the credentials of requests to the databases; nil for an emulator.
  var verifier: (any CredentialVerifier)? { production?.authority.verifier }

  /// Fetches the keys of other issuers until its task is cancelled.
  func loadIssuerKeys() async { await production?.issuerKeys.run() }

  /// Makes the Realtime engine check whether credentials are revoked: those of open connections, and those with which
  /// stored onDisconnect writes were registered.
  func checkCallers(of realtime: RealtimeEngine) {
    guard let verifier = production?.authority.verifier else { return }
    realtime.revoke { verifier.isRevoked($0) }
    realtime.revokeStored { [store = services.store] in try await store.isRevoked($0) }
  }

  /// Ends the open streams and the authentication of open connections of callers whose credentials are revoked. Runs
  /// until its task is cancelled.
  ///
  /// All revocations that arrive during one scan of the streams cause a single further scan.
  func endRevokedStreams(of firestore: FirestoreEngine, _ realtime: RealtimeEngine) async {
    guard let production else { return }
    let (revocations, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let observation = services.store.events.observe { _ in continuation.yield() }
    production.authority.accounts.observe { continuation.yield() }
    let verifier = production.authority.verifier
    // Revocations may have happened since the ports opened.
    continuation.yield()
    for await _ in revocations {
      firestore.revokeStreams { verifier.isRevoked($0) }
      realtime.revoke { verifier.isRevoked($0) }
    }
    observation.cancel()
  }

  /// The IDs of the projects that this server has.
  func projectIDs() async throws -> [String] { try await services.store.projectIDs() }

  /// The service of the auth port.
  /// - Parameter pages: the web pages that may send requests of administrators.
  func service(isTLS: Bool, pages: RequestOriginPolicy = .any) -> IdentityService {
    IdentityService(services, handlers: handlers, isTLS: isTLS, administrationPages: pages)
  }

  /// The file of the socket by which the command `hearth credentials` reaches a server, in its data directory.
  static func socketPath(inDirectory directory: String) -> String { directory + "/credentials.sock" }

  /// Opens the socket of `hearth credentials`; nil if the server has no data directory, or is an emulator.
  func openSocket(
    _ storage: HearthConfiguration.Storage, _ limits: PortLimits, log: Logger
  ) async -> ListeningPort? {
    guard let production, case .directory(let directory) = storage else { return nil }
    let path = Self.socketPath(inDirectory: directory)
    let service = IdentityService(
      services, handlers: [CredentialsHandler(production.authority.accounts)])
    let protocols = service.protocols(limits)
    do {
      // The store's lock shows that no other server uses the directory, so an existing file remains from a killed
      // server.
      try? FileManager.default.removeItem(atPath: path)
      let port = try await ListeningPort.bind(
        socketPath: path, protocols: protocols, limits: limits, group: MultiThreadedEventLoopGroup.singleton,
        log: log)
      guard chmod(path, 0o600) == 0 else {
        await port.drain(grace: .zero)
        throw HearthError("its permissions cannot be set: \(String(cString: strerror(errno)))")
      }
      return port
    } catch {
      log.warning(
        "'hearth credentials' cannot reach this server while it runs: the socket cannot be opened",
        metadata: ["file": "\(path)", "error": "\(error)"])
      return nil
    }
  }
}
