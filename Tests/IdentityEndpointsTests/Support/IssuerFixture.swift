// Sets up the token verifier of a production server that accepts tokens of other issuers. A small server on loopback
// publishes their keys. Tests advance the clock.

import Identity
import IdentityEndpoints
import JSON
import Logging
import NIOConcurrencyHelpers
import NIOPosix
import OrderedStore

struct IssuerFixture: Sendable {
  static let project = "demo-p"
  static let issuer = "https://issuer.example"
  static let otherIssuer = "https://other.example"
  static let log = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  /// Publishes the keys of both issuers.
  let receiver: HTTPReceiver
  /// The key of the first issuer.
  let key: SigningKey
  let store: IdentityStore
  /// The keys of the server itself.
  let keys: SigningKeys
  let issuers: TrustedIssuers
  let loader: IssuerKeyLoader
  let verifier: TokenVerifier
  let authority: ProductionTokenAuthority
  private let time: NIOLockedValueBox<Int64>

  /// Runs a test with two issuers. The keys of the first issuer are published at `/keys`, the keys of the second at
  /// `/other`.
  static func with(_ body: (IssuerFixture) async throws -> Void) async throws {
    let time = NIOLockedValueBox<Int64>(1_800_000_000)
    let clock = StoreClock { UInt64(time.withLockedValue { $0 }) * 1_000_000 }
    let rows = try MemoryStore(StoreOptions(clock: clock))
    let receiver = try await HTTPReceiver.start()
    let result: Result<Void, any Error>
    do {
      result = .success(try await body(IssuerFixture(rows, IdentityClock(clock), time, receiver)))
    } catch {
      result = .failure(error)
    }
    await receiver.stop()
    try await rows.close()
    try result.get()
  }

  private init(
    _ rows: any OrderedStore, _ clock: IdentityClock, _ time: NIOLockedValueBox<Int64>,
    _ receiver: HTTPReceiver
  ) async throws {
    self.receiver = receiver
    self.time = time
    key = try SigningKey.make(at: 1_800_000_000)
    store = IdentityStore(rows)
    keys = try await SigningKeys.open(store, clock: clock)
    issuers = TrustedIssuers([
      .init(
        issuer: Self.issuer, audiences: ["app", "app2"], project: Self.project,
        keysURL: receiver.baseURL + "/keys"),
      .init(
        issuer: Self.otherIssuer, audiences: ["app"], project: "demo-other",
        keysURL: receiver.baseURL + "/other"),
    ])
    let accounts = try await ServiceAccounts.open(store, clock: clock)
    let revocations = try await RevocationList.open(
      store, clock: clock, tokenSeconds: issuers.maximumTokenSeconds)
    verifier = TokenVerifier(
      keys: keys, accounts: accounts, revocations: revocations, issuers: issuers, clock: clock)
    authority = ProductionTokenAuthority(keys: keys, accounts: accounts, verifier: verifier, clock: clock)
    loader = IssuerKeyLoader(
      issuers, outbound: OutboundHTTP(group: MultiThreadedEventLoopGroup.singleton), clock: clock,
      timeoutSeconds: 1, log: Self.log)
    try publish([key])
  }

  var now: Int64 { time.withLockedValue { $0 } }

  func advance(_ seconds: Int64) { time.withLockedValue { $0 += seconds } }

  /// Publishes keys as a JSON Web Key Set.
  func publish(_ keys: [SigningKey], at name: String = "keys") throws {
    let set = JSONValue.object(["keys": .array(try keys.map { .object(try $0.publicKey.jwk) })])
    receiver.respond(to: name, with: .init(status: 200, body: set.json()))
  }

  /// The claims of a user of the issuer.
  func claims(_ change: (inout JSONObject) -> Void = { _ in }) -> JSONObject {
    var claims: JSONObject = [
      "iss": .string(Self.issuer), "aud": .string("app"), "sub": .string("u1"), "iat": .int(now),
      "exp": .int(now + 3600), "role": .string("editor"),
    ]
    change(&claims)
    return claims
  }

  func token(_ change: (inout JSONObject) -> Void = { _ in }) throws -> String {
    try key.encode(claims(change))
  }

  /// A token with any header, signed by the issuer's key.
  func token(header: JSONObject) throws -> String {
    let text = JSONWebToken.encode(header, claims())
    return text + "." + Base64.encode(try key.sign(Array(text.utf8)), .urlSafe, padded: false)
  }
}
