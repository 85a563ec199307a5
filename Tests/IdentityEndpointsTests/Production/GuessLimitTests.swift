// Tests that guesses of passwords and second factors count before the server checks them. Also tests that the limiter
// bounds its memory without ending the wait of an account.

import Foundation
import Identity
import IdentityEndpoints
import JSON
import NIOConcurrencyHelpers
import Testing

@Suite("Limits of guesses per account", .serialized)
struct GuessLimitTests {
  private static let toolkit = "/identitytoolkit.googleapis.com"
  private static let ada: JSONObject = [
    "email": .string("ada@example.com"), "password": .string("opensesame"),
  ]

  private func key(_ name: String, _ factor: AttemptLimiter.Factor = .password) -> AttemptLimiter.Key {
    AttemptLimiter.Key(factor, project: "p", tenant: "", account: name)
  }

  /// Begins an attempt, and returns whether the limiter admits it.
  private func tryBegin(_ limiter: AttemptLimiter, _ key: AttemptLimiter.Key, at now: Int64 = 0) -> Bool {
    do throws(IdentityError) { try limiter.begin(key, at: now) } catch {
      #expect(error.message.hasPrefix("TOO_MANY_ATTEMPTS_TRY_LATER"))
      return false
    }
    return true
  }

  @Test("Attempts in progress count as failures until their result is known")
  func inProgress() {
    let limiter = AttemptLimiter(isEnabled: true)
    let ada = key("ada")
    for _ in 0..<AttemptLimiter.freeFailures { #expect(tryBegin(limiter, ada)) }
    #expect(!tryBegin(limiter, ada))
    #expect(tryBegin(limiter, key("bob")) && tryBegin(limiter, key("ada", .secondFactor)))
    limiter.end(ada, .undecided, at: 0)
    #expect(tryBegin(limiter, ada))
    for _ in 0..<AttemptLimiter.freeFailures { limiter.end(ada, .wrong, at: 0) }
    #expect(!tryBegin(limiter, ada, at: 999))
    // After ten failures an account has one attempt at a time.
    #expect(tryBegin(limiter, ada, at: 1000))
    #expect(!tryBegin(limiter, ada, at: 1000))
    limiter.end(ada, .wrong, at: 1000)
    #expect(!tryBegin(limiter, ada, at: 2999))
    #expect(tryBegin(limiter, ada, at: 3000))
    limiter.end(ada, .correct, at: 3000)
    for _ in 0..<AttemptLimiter.freeFailures { #expect(tryBegin(limiter, ada, at: 3000)) }
    #expect(!tryBegin(limiter, ada, at: 3000))
  }

  @Test("A success does not reset the attempts that are in progress")
  func success() {
    let limiter = AttemptLimiter(isEnabled: true)
    for _ in 0..<AttemptLimiter.freeFailures { #expect(tryBegin(limiter, key("ada"))) }
    limiter.end(key("ada"), .correct, at: 0)
    #expect(tryBegin(limiter, key("ada")))
    #expect(!tryBegin(limiter, key("ada")))
  }

  @Test("Guesses for many accounts take bounded memory, and a blocked account stays blocked")
  func boundedMemory() {
    let limiter = AttemptLimiter(isEnabled: true, maximumRecords: 100)
    for _ in 0..<AttemptLimiter.freeFailures {
      #expect(tryBegin(limiter, key("ada")))
      limiter.end(key("ada"), .wrong, at: 0)
    }
    #expect(tryBegin(limiter, key("pending")))
    for number in 0..<5000 {
      #expect(tryBegin(limiter, key("account \(number)")))
      limiter.end(key("account \(number)"), .wrong, at: 0)
      #expect(limiter.count <= 100)
    }
    #expect(!tryBegin(limiter, key("ada"), at: 999))
    limiter.end(key("pending"), .wrong, at: 0)
  }

  @Test("Of 64 concurrent password guesses the server checks at most ten, also for an unknown address")
  func parallelPasswords() async throws {
    try await ProductionServer.with { server in
      #expect(try await server.auth.post(Self.toolkit + "/v1/accounts:signUp", Self.ada).status == 200)
      for email in ["ada@example.com", "unknown@example.com"] {
        let errors = try await withThrowingTaskGroup(of: String?.self) { group in
          for number in 0..<64 {
            group.addTask {
              try await server.auth.post(
                Self.toolkit + "/v1/accounts:signInWithPassword",
                ["email": .string(email), "password": .string("wrong \(number)")],
                headers: [("x-forwarded-for", "203.0.113.\(number)")]
              ).error
            }
          }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        let decided = errors.filter { $0 == "INVALID_LOGIN_CREDENTIALS" }.count
        #expect((1...AttemptLimiter.freeFailures).contains(decided), "\(email) \(decided)")
        #expect(errors.allSatisfy { $0 != nil })
      }
    }
  }

  @Test("Of 64 concurrent guesses of a time-based code the server checks at most ten")
  func parallelSecondFactors() async throws {
    try await ProductionServer.with { server in
      let admin = try await server.accessToken(server.account("admin"))
      let project = Self.toolkit + "/v2/projects/demo-prod"
      let configured = try await server.auth.send(
        "PATCH", project + "/config?updateMask=mfa", headers: bearer(admin),
        body: Array(
          #"{"mfa":{"state":"ENABLED","providerConfigs":[{"state":"ENABLED","totpProviderConfig":{}}]}}"#.utf8
        ))
      #expect(configured.status == 200, "\(configured.error ?? "")")
      let signUp = try await server.auth.post(Self.toolkit + "/v1/accounts:signUp", Self.ada)
      let id = try #require(signUp["localId"]?.string)
      let verified = try await server.auth.send(
        "POST", Self.toolkit + "/v1/projects/demo-prod/accounts:update", headers: bearer(admin),
        body: Array(#"{"localId":"\#(id)","emailVerified":true}"#.utf8))
      #expect(verified.status == 200, "\(verified.error ?? "")")
      let idToken = signUp["idToken"] ?? .null
      let start = try await server.auth.post(
        Self.toolkit + "/v2/accounts/mfaEnrollment:start",
        ["idToken": idToken, "totpEnrollmentInfo": .object([:])])
      let info = try #require(start["totpSessionInfo"], "\(start.error ?? "")")
      let secret = Self.base32(try #require(info["sharedSecretKey"]?.string))
      let now = Int64(Date().timeIntervalSince1970)
      let enrolled = try await server.auth.post(
        Self.toolkit + "/v2/accounts/mfaEnrollment:finalize",
        [
          "idToken": idToken,
          "totpVerificationInfo": .object([
            "sessionInfo": info["sessionInfo"] ?? .null,
            "verificationCode": .string(TimeBasedCode.code(secret: secret, step: now / TimeBasedCode.period)),
          ]),
        ])
      #expect(enrolled.status == 200, "\(enrolled.error ?? "")")
      let signIn = try await server.auth.post(Self.toolkit + "/v1/accounts:signInWithPassword", Self.ada)
      let pending = try #require(signIn["mfaPendingCredential"], "\(signIn.error ?? "")")
      let factor = try #require(signIn["mfaInfo"]?.array?.first?["mfaEnrollmentId"])
      let errors = try await withThrowingTaskGroup(of: String?.self) { group in
        for number in 0..<64 {
          group.addTask {
            try await server.auth.post(
              Self.toolkit + "/v2/accounts/mfaSignIn:finalize",
              [
                "mfaPendingCredential": pending, "mfaEnrollmentId": factor,
                "totpVerificationInfo": .object(["verificationCode": .string("x\(number)")]),
              ], headers: [("x-forwarded-for", "203.0.113.\(number)")]
            ).error
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      let decided = errors.filter { $0 == "INVALID_CODE" }.count
      let rejected = errors.filter { $0?.hasPrefix("TOO_MANY_ATTEMPTS_TRY_LATER") == true }.count
      #expect((1...AttemptLimiter.freeFailures).contains(decided) && decided + rejected == 64, "\(errors)")
    }
  }

  @Test("The limit on wrong codes covers all sessions of a phone number, and no other number")
  func phoneNumbers() async throws {
    let delivery = CodeRecorder()
    let server = try await ProductionCalls(delivery: delivery)
    func signIn(_ number: String, isCorrect: Bool) async throws -> String? {
      let session = try await server.sendVerificationCode(["phoneNumber": .string(number)])
      let code = delivery.codes.withLockedValue { $0[number] } ?? ""
      do {
        _ = try await server.signInWithPhoneNumber([
          "sessionInfo": session["sessionInfo"] ?? .null, "code": .string(isCorrect ? code : "x"),
        ])
        return nil
      } catch let error as IdentityError { return String(error.message.prefix { $0 != " " }) }
    }
    for _ in 0..<AttemptLimiter.freeFailures {
      #expect(try await signIn("+15550100", isCorrect: false) == "INVALID_CODE")
    }
    #expect(try await signIn("+15550100", isCorrect: true) == "TOO_MANY_ATTEMPTS_TRY_LATER")
    #expect(try await signIn("+15550101", isCorrect: true) == nil)
    server.seconds.withLockedValue { $0 += 1 }
    #expect(try await signIn("+15550100", isCorrect: true) == nil)
  }

  /// Decodes Base32 without padding.
  private static func base32(_ text: String) -> [UInt8] {
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)
    var bytes: [UInt8] = []
    var (bits, count) = (0, 0)
    for byte in text.utf8 {
      bits = (bits << 5 | (digits.firstIndex(of: byte) ?? 0)) & 0xFFFF
      count += 5
      guard count >= 8 else { continue }
      count -= 8
      bytes.append(UInt8(bits >> count & 0xFF))
    }
    return bytes
  }
}
