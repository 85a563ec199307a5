// The operations of a production server over a store in memory, without a port: with a clock that tests move, and a delivery
// of their choice.

import Identity
import JSON
import Logging
import NIOConcurrencyHelpers
import NIOHTTP1
import NIOPosix
import OrderedStore
import Ports

@testable import IdentityEndpoints

struct ProductionCalls: Sendable {
  /// The time in seconds since the Unix epoch.
  let seconds: NIOLockedValueBox<Int64>
  let store: IdentityStore
  private let service: IdentityService

  init(delivery: any CodeDelivery = UnconfiguredDelivery()) async throws {
    let seconds = NIOLockedValueBox<Int64>(1_800_000_000)
    self.seconds = seconds
    let clock = StoreClock { UInt64(seconds.withLockedValue { $0 }) * 1_000_000 }
    store = IdentityStore(try MemoryStore(StoreOptions(clock: clock)))
    let time = IdentityClock(clock)
    let keys = try await SigningKeys.open(store, clock: time)
    let accounts = try await ServiceAccounts.open(store, clock: time)
    let verifier = TokenVerifier(
      keys: keys, accounts: accounts, revocations: try await RevocationList.open(store, clock: time),
      clock: time)
    service = IdentityService(
      IdentityServices(
        store: store, mode: .production, defaultProject: ProductionServer.project,
        hasher: PasswordHasher(.standard), clock: time,
        tokens: ProductionTokenAuthority(keys: keys, accounts: accounts, verifier: verifier, clock: time),
        outbound: OutboundHTTP(group: MultiThreadedEventLoopGroup.singleton), delivery: delivery,
        providers: EmulatorProviders(), log: Logger(label: "test")))
  }

  /// Makes the call of a client.
  private func call(_ body: JSONObject, _ fields: [String: FieldKind]) async throws -> IdentityCall {
    let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/")
    return try await service.makeCall(
      HTTPRequest(head: head, target: try RequestTarget(head.uri)), project: ProductionServer.project,
      tenant: nil, isPrivileged: false, body: RequestBody(converted: try FieldKind.convert(body, fields)))
  }

  func signUp(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.signUp).signUp()
  }

  func sendVerificationCode(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.verificationCode).sendVerificationCode()
  }

  func signInWithPhoneNumber(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.phoneNumber).signInWithPhoneNumber()
  }

  func sendCode(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.sendCode).sendCode()
  }
}
