// Calls the operations of a production server over a store in memory, without a port. Tests advance the clock, and
// choose how codes are delivered.

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

  /// Makes the call of a client or an administrator.
  private func call(
    _ body: JSONObject, _ fields: [String: FieldKind], isPrivileged: Bool = false
  ) async throws -> IdentityCall {
    let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/")
    return try await service.makeCall(
      HTTPRequest(head: head, target: try RequestTarget(head.uri)), project: ProductionServer.project,
      tenant: nil, isPrivileged: isPrivileged,
      body: RequestBody(converted: try FieldKind.convert(body, fields)))
  }

  func signUp(_ body: JSONObject, isPrivileged: Bool = false) async throws -> JSONObject {
    try await call(body, RequestFields.signUp, isPrivileged: isPrivileged).signUp()
  }

  func update(_ body: JSONObject, isPrivileged: Bool = false) async throws -> JSONObject {
    try await call(body, RequestFields.update, isPrivileged: isPrivileged).update()
  }

  func batchCreate(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.batchCreate, isPrivileged: true).batchCreate()
  }

  func lookup(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.lookup, isPrivileged: true).lookup()
  }

  func delete(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.delete).deleteAccount()
  }

  func resetPassword(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.resetPassword).resetPassword()
  }

  func signInWithEmailLink(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.emailLink).signInWithEmailLink()
  }

  func refreshToken(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.token).refreshToken()
  }

  func startEnrolment(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.multiFactorEnrolment).startEnrolment()
  }

  func finalizeEnrolment(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.multiFactorEnrolment).finalizeEnrolment()
  }

  func withdrawEnrolment(_ body: JSONObject) async throws -> JSONObject {
    try await call(body, RequestFields.multiFactorEnrolment).withdrawEnrolment()
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

  /// The newest stored code of a purpose.
  func code(_ purpose: OutOfBandCode.Purpose) async throws -> JSONValue {
    let codes = try await store.project(ProductionServer.project).read { try $0.codes(in: nil) }
    return (codes.last { $0.purpose == purpose }?.code).map { .string($0) } ?? .null
  }

  /// The stored account with an address.
  func account(_ email: String) async throws -> Account? {
    try await store.project(ProductionServer.project).read { try $0.account(email: email, in: nil) }
  }

  /// Changes a stored account with an address.
  func change(_ email: String, _ body: @escaping @Sendable (inout Account) -> Void) async throws {
    try await store.project(ProductionServer.project).write { transaction in
      guard var account = try transaction.reader.account(email: email, in: nil) else { return }
      body(&account)
      try transaction.put(account)
    }
  }

  /// Advances the clock by seconds.
  func advance(_ duration: Int64) { seconds.withLockedValue { $0 += duration } }
}

/// Records the codes of text messages by phone number.
final class CodeRecorder: CodeDelivery {
  let codes = NIOLockedValueBox<[String: String]>([:])

  func sendEmail(_ code: OutOfBandCode, language: String) async throws {}

  func sendTextMessage(_ session: PhoneSession, language: String) async throws {
    codes.withLockedValue { $0[session.phoneNumber] = session.code }
  }
}
