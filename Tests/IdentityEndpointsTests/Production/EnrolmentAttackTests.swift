// Tests that the enrolment of a second factor does not bypass the limits of codes and recent sign-ins. Also tests the
// limits of messages, new accounts and hashes.

import Identity
import JSON
import NIOConcurrencyHelpers
import NIOCore
import Testing

@testable import IdentityEndpoints

@Suite("Enrolment of second factors and messages under attack", .serialized)
struct EnrolmentAttackTests {
  private static let accounts = "/identitytoolkit.googleapis.com/v1/accounts"
  private static let email = "ada@example.com"
  private static let number = "+15550100"

  private func signUp(_ server: ProductionCalls, isVerified: Bool) async throws -> JSONValue {
    let created = try await server.signUp([
      "email": .string(Self.email), "password": .string("opensesame"),
    ])
    try await server.change(Self.email) { $0.isEmailVerified = isVerified }
    return created["idToken"] ?? .null
  }

  /// The code of the error of an enrolment; nil for a success.
  private func enrol(
    _ server: ProductionCalls, _ idToken: JSONValue, _ session: JSONValue?, _ code: String
  ) async throws -> String? {
    do {
      _ = try await server.finalizeEnrolment([
        "idToken": idToken,
        "phoneVerificationInfo": .object(["sessionInfo": session ?? .null, "code": .string(code)]),
      ])
      return nil
    } catch let error as IdentityError { return String(error.message.prefix { $0 != " " }) }
  }

  private func startEnrolment(_ server: ProductionCalls, _ idToken: JSONValue) async throws -> JSONValue? {
    let started = try await server.startEnrolment([
      "idToken": idToken, "phoneEnrollmentInfo": .object(["phoneNumber": .string(Self.number)]),
    ])
    return started["phoneSessionInfo"]?["sessionInfo"]
  }

  @Test("An enrolment does not show whether the code of a sign-in is correct", arguments: [false, true])
  func oracle(_ isVerified: Bool) async throws {
    let delivery = CodeRecorder()
    let server = try await ProductionCalls(delivery: delivery)
    let idToken = try await signUp(server, isVerified: isVerified)
    let session = try await server.sendVerificationCode(["phoneNumber": .string(Self.number)])["sessionInfo"]
    let code = delivery.codes.withLockedValue { $0[Self.number] } ?? ""
    let expected = isVerified ? "INVALID_SESSION_INFO" : "UNVERIFIED_EMAIL"
    for guess in [code, "x"] { #expect(try await enrol(server, idToken, session, guess) == expected) }
    _ = try await server.signInWithPhoneNumber(["sessionInfo": session ?? .null, "code": .string(code)])
  }

  @Test("The limit on wrong codes of enrolments covers all sessions of a phone number")
  func guesses() async throws {
    let delivery = CodeRecorder()
    let server = try await ProductionCalls(delivery: delivery)
    let idToken = try await signUp(server, isVerified: true)
    for _ in 0..<AttemptLimiter.freeFailures {
      #expect(try await enrol(server, idToken, startEnrolment(server, idToken), "x") == "INVALID_CODE")
    }
    let session = try await startEnrolment(server, idToken)
    let code = delivery.codes.withLockedValue { $0[Self.number] } ?? ""
    #expect(try await enrol(server, idToken, session, code) == "TOO_MANY_ATTEMPTS_TRY_LATER")
    server.advance(1)
    #expect(try await enrol(server, idToken, session, code) == nil)
  }

  @Test("Second factors are added and removed only within five minutes of the sign-in")
  func recentSignIn() async throws {
    let delivery = CodeRecorder()
    let server = try await ProductionCalls(delivery: delivery)
    let idToken = try await signUp(server, isVerified: true)
    let session = try await startEnrolment(server, idToken)
    let code = delivery.codes.withLockedValue { $0[Self.number] } ?? ""
    try await server.change(Self.email) {
      $0.secondFactors = [
        Account.SecondFactor(id: "f", displayName: nil, enrolledAt: "", kind: .phone("+15550101"))
      ]
    }
    server.advance(301)
    #expect(try await enrol(server, idToken, session, code) == "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
    let withdrawal: JSONObject = ["idToken": idToken, "mfaEnrollmentId": .string("f")]
    await #expect(throws: IdentityError.rejected("CREDENTIAL_TOO_OLD_LOGIN_AGAIN")) {
      try await server.withdrawEnrolment(withdrawal)
    }
    server.advance(-1)
    _ = try await server.withdrawEnrolment(withdrawal)
    #expect(try await server.account(Self.email)?.secondFactors.isEmpty == true)
  }

  @Test("Every operation that sends a message uses the allowance of the client address")
  func messages() {
    let tables = [IdentityOperation.version1, IdentityOperation.version2, IdentityOperation.version3]
    for name in [
      "accounts:sendOobCode", "accounts:sendVerificationCode", "accounts/mfaEnrollment:start",
      "accounts/mfaSignIn:start", "getOobConfirmationCode", "sendVerificationCode",
    ] {
      let operation = tables.compactMap { $0[name]?["POST"] }.first
      guard case .always? = operation?.guessPolicy else {
        Issue.record("\(name) is not counted")
        continue
      }
    }
  }

  @Test("Messages to one recipient are limited, whether or not it has an account")
  func recipients() async throws {
    let server = try await ProductionCalls(delivery: CodeRecorder())
    _ = try await signUp(server, isVerified: true)
    func send(_ email: String) async throws -> String? {
      do {
        _ = try await server.sendCode(["requestType": .string("PASSWORD_RESET"), "email": .string(email)])
        return nil
      } catch let error as IdentityError { return String(error.message.prefix { $0 != " " }) }
    }
    func sendText() async throws -> String? {
      do {
        _ = try await server.sendVerificationCode(["phoneNumber": .string(Self.number)])
        return nil
      } catch let error as IdentityError { return String(error.message.prefix { $0 != " " }) }
    }
    for _ in 0..<IdentityServices.messageAllowance {
      #expect(try await send(Self.email) == nil)
      #expect(try await send("unknown@example.com") == nil)
      #expect(try await sendText() == nil)
    }
    for _ in 0..<2 {
      #expect(try await send(Self.email) == "TOO_MANY_ATTEMPTS_TRY_LATER")
      #expect(try await send("unknown@example.com") == "TOO_MANY_ATTEMPTS_TRY_LATER")
      #expect(try await sendText() == "TOO_MANY_ATTEMPTS_TRY_LATER")
    }
    #expect(try await send("other@example.com") == nil)
    server.advance(IdentityServices.messageRestorationMilliseconds / 1000)
    #expect(try await send(Self.email) == nil)
    #expect(try await sendText() == nil)
  }

  @Test("A sign-up with a weak password does not show whether the address has an account")
  func weakPassword() async throws {
    let server = try await ProductionCalls()
    _ = try await signUp(server, isVerified: true)
    let anonymous = try await server.signUp([:])["idToken"] ?? .null
    for email in [Self.email, "free@example.com"] {
      let body: JSONObject = ["email": .string(email), "password": .string("a")]
      var update = body
      update["idToken"] = anonymous
      let updated = update
      let weak = IdentityError.rejected("WEAK_PASSWORD", "Password should be at least 6 characters")
      await #expect(throws: weak) { try await server.signUp(body) }
      await #expect(throws: weak) { try await server.update(updated) }
    }
  }

  @Test(
    "An address can create 100 accounts and must then wait; it can still sign in, and other addresses can sign up"
  )
  func newAccounts() async throws {
    try await ProductionServer.with { server in
      func post(_ operation: String, _ body: JSONObject, from address: String) async throws -> AuthReply {
        try await server.auth.post(
          Self.accounts + ":" + operation, body, headers: [("x-forwarded-for", address)])
      }
      let ada: JSONObject = ["email": .string(Self.email), "password": .string("opensesame")]
      #expect(try await post("signUp", ada, from: "203.0.113.7").status == 200)
      // A failed sign-up does not use the allowance of new accounts.
      #expect(try await post("signUp", ada, from: "203.0.113.7").error == "EMAIL_EXISTS")
      for _ in 1..<IdentityServices.newAccountAllowance {
        #expect(try await post("signUp", [:], from: "203.0.113.7").status == 200)
      }
      // On a slow machine the allowance has grown by a few accounts.
      var error: String?
      for _ in 0..<20 where error?.hasPrefix("TOO_MANY_ATTEMPTS_TRY_LATER") != true {
        error = try await post("signUp", [:], from: "203.0.113.7").error
      }
      #expect(error?.hasPrefix("TOO_MANY_ATTEMPTS_TRY_LATER") == true, "\(error ?? "")")
      #expect(try await post("signInWithPassword", ada, from: "203.0.113.7").status == 200)
      #expect(try await post("signUp", [:], from: "203.0.113.8").status == 200)
    }
  }

  @Test("One address can occupy at most a quarter of the queue for hashes")
  func hashes() throws {
    let limiter = ConcurrencyLimiter(isEnabled: true)
    func address(_ text: String) throws -> ClientAddress? {
      ClientAddress(peer: try SocketAddress(ipAddress: text, port: 1), forwardedFor: [])
    }
    let (client, other) = (try address("203.0.113.7"), try address("203.0.113.8"))
    for _ in 0..<ConcurrencyLimiter.maximumInProgress { #expect(limiter.begin(client)) }
    #expect(!limiter.begin(client))
    #expect(limiter.begin(other) && limiter.begin(nil))
    limiter.end(client)
    #expect(limiter.begin(client) && !limiter.begin(client))
  }
}
