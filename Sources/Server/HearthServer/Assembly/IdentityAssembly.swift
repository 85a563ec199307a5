// The identity assembly makes the parts of a server's authentication: accounts, tokens, passwords and the auth port.

import EmulatorSuite
import Identity
import IdentityEndpoints
import Logging
import NIOPosix
import OrderedStore

/// The authentication of a server.
struct IdentityAssembly: Sendable {
  let store: IdentityStore
  private let services: IdentityServices
  private let isEmulator: Bool

  init(_ configuration: HearthConfiguration, store: any OrderedStore, log: Logger) {
    self.store = IdentityStore(store)
    isEmulator = configuration.emulator
    services = IdentityServices(
      store: self.store, mode: configuration.emulator ? .emulator : .production,
      defaultProject: configuration.project,
      hasher: PasswordHasher(configuration.emulator ? .emulator : .standard),
      tokens: EmulatorTokenAuthority(), outbound: OutboundHTTP(group: MultiThreadedEventLoopGroup.singleton),
      delivery: LogDelivery(log), providers: EmulatorProviders(), log: log)
  }

  /// The service of the auth port.
  func service(isTLS: Bool) -> IdentityService {
    IdentityService(services, handlers: isEmulator ? [AuthEmulator()] : [], isTLS: isTLS)
  }
}
