// Sets up the authentication of a production server over a store in memory, with a clock that tests advance.

import Access
import Identity
import JSON
import Locking
import OrderedStore

/// A clock that tests advance.
final class TestClock: Sendable {
  private let seconds: Guarded<Int64>

  init(_ seconds: Int64) { self.seconds = Guarded(seconds) }

  var now: Int64 { seconds.withLock { $0 } }

  func advance(_ amount: Int64) { seconds.withLock { $0 += amount } }

  var store: StoreClock { StoreClock { [self] in UInt64(now) * 1_000_000 } }
  var identity: IdentityClock { IdentityClock(store) }
}

struct IdentityFixture: Sendable {
  static let project = "demo-p"

  let clock: TestClock
  let store: IdentityStore
  let keys: SigningKeys
  let accounts: ServiceAccounts
  let revocations: RevocationList
  let verifier: TokenVerifier
  let authority: ProductionTokenAuthority

  init(_ rows: any OrderedStore, _ clock: TestClock) async throws {
    self.clock = clock
    store = IdentityStore(rows)
    keys = try await SigningKeys.open(store, clock: clock.identity)
    accounts = try await ServiceAccounts.open(store, clock: clock.identity)
    revocations = try await RevocationList.open(store, clock: clock.identity)
    verifier = TokenVerifier(
      keys: keys, accounts: accounts, revocations: revocations, clock: clock.identity)
    authority = ProductionTokenAuthority(
      keys: keys, accounts: accounts, verifier: verifier, clock: clock.identity)
  }

  /// Runs a test on a new store.
  static func with(_ body: (IdentityFixture) async throws -> Void) async throws {
    let clock = TestClock(1_800_000_000)
    let rows = try MemoryStore(StoreOptions(clock: clock.store))
    let result: Result<Void, any Error>
    do { result = .success(try await body(IdentityFixture(rows, clock))) } catch { result = .failure(error) }
    try await rows.close()
    try result.get()
  }

  /// The claims of an ID token of a user.
  func claims(_ id: String = "u1", _ change: (inout JSONObject) -> Void = { _ in }) -> JSONObject {
    var account = Account(localID: id, tenantID: nil, createdAt: clock.now * 1000)
    account.email = "ada@example.com"
    let session = RefreshToken(
      localID: id, tenantID: nil, provider: "password", signedInAt: clock.now, issuedAt: clock.now)
    var claims = IDTokenClaims.make(for: account, session, project: Self.project, now: clock.now)
    change(&claims)
    return claims
  }

  func idToken(_ id: String = "u1") throws -> String { try keys.current.encode(claims(id)) }
}
