// Tests that sensitive changes of an account need a recent sign-in, with a clock that the tests move.

import Identity
import JSON
import Logging
import NIOHTTP1
import NIOPosix
import NIOConcurrencyHelpers
import OrderedStore
import Ports
import Testing

@testable import IdentityEndpoints

@Suite("Recent sign-in")
struct RecentSignInTests {
  private let seconds = NIOLockedValueBox<Int64>(1_800_000_000)

  /// Makes the service of a production server.
  private func service() async throws -> IdentityService {
    let clock = StoreClock { [seconds] in UInt64(seconds.withLockedValue { $0 }) * 1_000_000 }
    let store = IdentityStore(try MemoryStore(StoreOptions(clock: clock)))
    let time = IdentityClock(clock)
    let keys = try await SigningKeys.open(store, clock: time)
    let accounts = try await ServiceAccounts.open(store, clock: time)
    let verifier = TokenVerifier(
      keys: keys, accounts: accounts, revocations: try await RevocationList.open(store, clock: time),
      clock: time)
    return IdentityService(
      IdentityServices(
        store: store, mode: .production, defaultProject: "demo-prod", hasher: PasswordHasher(.standard),
        clock: time,
        tokens: ProductionTokenAuthority(keys: keys, accounts: accounts, verifier: verifier, clock: time),
        outbound: OutboundHTTP(group: MultiThreadedEventLoopGroup.singleton),
        delivery: UnconfiguredDelivery(), providers: EmulatorProviders(), log: Logger(label: "test")))
  }

  private func signUp(_ service: IdentityService, _ body: JSONObject) async throws -> JSONObject {
    let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/")
    let call = try await service.makeCall(
      HTTPRequest(head: head, target: try RequestTarget(head.uri)), project: "demo-prod", tenant: nil,
      isPrivileged: false, body: RequestBody(converted: try FieldKind.convert(body, RequestFields.signUp)))
    return try await call.signUp()
  }

  @Test("A password is added to an account only within five minutes of the sign-in of the ID token")
  func addedPassword() async throws {
    let service = try await service()
    let anonymous = try await signUp(service, [:])
    let body: JSONObject = [
      "idToken": anonymous["idToken"] ?? .null, "email": .string("ada@example.com"),
      "password": .string("opensesame"),
    ]
    seconds.withLockedValue { $0 += 301 }
    await #expect(throws: IdentityError.rejected("CREDENTIAL_TOO_OLD_LOGIN_AGAIN")) {
      try await signUp(service, body)
    }
    seconds.withLockedValue { $0 -= 1 }
    #expect(try await signUp(service, body)["localId"] == anonymous["localId"])
  }
}
