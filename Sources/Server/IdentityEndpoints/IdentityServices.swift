// The parts of the server that Identity operations use.

package import Identity
package import Logging

/// The dependencies of Identity operations.
package struct IdentityServices: Sendable {
  package var store: IdentityStore
  package var mode: IdentityMode
  /// The project of requests that name none.
  package var defaultProject: String
  package var hasher: PasswordHasher
  package var clock: IdentityClock
  package var tokens: any TokenAuthority
  package var outbound: OutboundHTTP
  /// Limits the attempts to guess passwords.
  package let attemptLimiter: AttemptLimiter
  /// Limits the guesses of each client address.
  package let addressLimiter: AddressLimiter
  /// Limits the accounts that each client address creates by sign-ups.
  package let newAccountLimiter: AllowanceLimiter<ClientAddress>
  /// Limits the messages to each e-mail address and phone number.
  package let recipientLimiter: AllowanceLimiter<String>
  /// Limits the passwords of each client address that are being hashed or queued for hashing.
  package let hashLimiter: ConcurrencyLimiter
  /// Sends codes to users.
  package var delivery: any CodeDelivery
  /// The deliveries that responses do not wait for.
  package let deliveries: BackgroundDeliveries
  /// Verifies the responses of identity providers.
  package var providers: any ProviderVerifier
  /// The page that receives the links of e-mails, in production; nil if none is configured.
  package var actionPage: String?
  package var log: Logger

  /// Combines the dependencies.
  package init(
    store: IdentityStore, mode: IdentityMode, defaultProject: String, hasher: PasswordHasher,
    clock: IdentityClock = IdentityClock(), tokens: any TokenAuthority, outbound: OutboundHTTP,
    delivery: any CodeDelivery, providers: any ProviderVerifier, actionPage: String? = nil, log: Logger
  ) {
    self.store = store
    self.mode = mode
    self.defaultProject = defaultProject
    self.hasher = hasher
    self.clock = clock
    self.tokens = tokens
    self.outbound = outbound
    attemptLimiter = AttemptLimiter(isEnabled: mode == .production)
    addressLimiter = AddressLimiter(isEnabled: mode == .production)
    newAccountLimiter = AllowanceLimiter(
      isEnabled: mode == .production, allowance: Self.newAccountAllowance,
      restorationMilliseconds: Self.newAccountRestorationMilliseconds)
    recipientLimiter = AllowanceLimiter(
      isEnabled: mode == .production, allowance: Self.messageAllowance,
      restorationMilliseconds: Self.messageRestorationMilliseconds)
    hashLimiter = ConcurrencyLimiter(isEnabled: mode == .production)
    self.delivery = delivery
    deliveries = BackgroundDeliveries(log: log)
    self.providers = providers
    self.actionPage = actionPage
    self.log = log
  }

  /// Accounts that a client address can create before it must wait: 100 an hour, as in the hosted product.
  package static let newAccountAllowance: Int64 = 100
  private static let newAccountRestorationMilliseconds: Int64 = 36_000
  /// Messages that a recipient can receive before further messages must wait: twice the number of wrong codes after
  /// which attempts must wait (`AttemptLimiter.freeFailures`). The allowance is restored at 20 messages an hour.
  package static let messageAllowance: Int64 = 20
  package static let messageRestorationMilliseconds: Int64 = 180_000

  /// Whether the server runs as an emulator.
  package var isEmulator: Bool { mode == .emulator }

  /// The address of the page that receives the links of e-mails. Without a configured page, a production server sends
  /// no links.
  /// - Parameter base: the address that the client used, which only an emulator trusts.
  func actionURL(base: String) -> String { actionPage ?? (isEmulator ? base + "/emulator/action" : "") }

  /// Sends a code by e-mail.
  func deliver(_ code: OutOfBandCode, language: String) async throws {
    try await delivery.sendEmail(code, language: language)
  }

  /// Sends a code by e-mail without waiting, so that neither the time nor the result of a request depends on it.
  /// Failures are logged.
  func deliverInBackground(_ code: OutOfBandCode, language: String) {
    let delivery = delivery
    Task { try? await delivery.sendEmail(code, language: language) }
  }
}
