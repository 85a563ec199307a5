// Tests that a production server removes expired codes that were never used.

import Identity
import IdentityEndpoints
import JSON
import NIOConcurrencyHelpers
import Testing

@Suite("Expired codes")
struct ExpiredCodeTests {
  private struct Delivery: CodeDelivery {
    func sendEmail(_ code: OutOfBandCode, language: String) async throws {}
    func sendTextMessage(_ session: PhoneSession, language: String) async throws {}
  }

  /// Sends a code by e-mail and one by text message.
  private func sendCodes(_ server: ProductionCalls, _ number: Int) async throws {
    let email = JSONValue.string("user-\(number)@example.com")
    _ = try await server.signUp(["email": email, "password": .string("opensesame")])
    _ = try await server.sendCode(["requestType": .string("PASSWORD_RESET"), "email": email])
    _ = try await server.sendVerificationCode(["phoneNumber": .string("+1555555010\(number)")])
  }

  @Test(
    "A new code removes codes that expired over a day ago; until then, using an expired code reports it"
  )
  func removal() async throws {
    let server = try await ProductionCalls(delivery: Delivery())
    let database = try await server.store.project(ProductionServer.project)
    func counts() async throws -> [Int] {
      try await database.read { [try $0.codes(in: nil).count, try $0.phoneSessions(in: nil).count] }
    }
    for number in 0..<3 { try await sendCodes(server, number) }
    server.seconds.withLockedValue { $0 += 2 * 3600 }
    let code = try await server.code(.passwordReset)
    await #expect(throws: IdentityError.rejected("EXPIRED_OOB_CODE")) {
      try await server.resetPassword(["oobCode": code, "newPassword": .string("another one")])
    }
    let session = try #require(try await database.read { try $0.phoneSessions(in: nil).first })
    await #expect(throws: IdentityError.rejected("SESSION_EXPIRED")) {
      try await server.signInWithPhoneNumber([
        "sessionInfo": .string(session.session), "code": .string(session.code),
      ])
    }
    try await sendCodes(server, 3)
    // The use of an expired verification has removed it.
    #expect(try await counts() == [4, 3])
    server.seconds.withLockedValue { $0 += 86_400 }
    try await sendCodes(server, 4)
    #expect(try await counts() == [2, 2])
  }
}
