// Tests that the response to a request for an e-mail does not depend on whether and how the e-mail is sent.

import Identity
import IdentityEndpoints
import JSON
import NIOConcurrencyHelpers
import Testing

@Suite("Private delivery of codes")
struct PrivateDeliveryTests {
  /// A delivery that is held until the test releases it, and then fails.
  private final class HeldDelivery: CodeDelivery {
    private struct Failure: Error {}

    let codes = NIOLockedValueBox<[OutOfBandCode]>([])
    private let gate = AsyncStream<Void>.makeStream()

    func sendEmail(_ code: OutOfBandCode, language: String) async throws {
      codes.withLockedValue { $0.append(code) }
      for await _ in gate.stream {}
      throw Failure()
    }

    func sendTextMessage(_ session: PhoneSession, language: String) async throws {}

    func release() { gate.continuation.finish() }
  }

  @Test(
    "The response does not wait for the delivery, and a failure of the delivery does not reach the client")
  func heldDelivery() async throws {
    let delivery = HeldDelivery()
    let server = try await ProductionCalls(delivery: delivery)
    var tokens: [JSONValue] = []
    for email in ["ada@example.com", "bob@example.com"] {
      let reply = try await server.signUp(["email": .string(email), "password": .string("opensesame")])
      tokens.append(reply["idToken"] ?? .null)
    }
    var replies: [JSONObject] = []
    for email in ["ada@example.com", "unknown@example.com"] {
      replies.append(
        try await server.sendCode(["requestType": .string("PASSWORD_RESET"), "email": .string(email)]))
    }
    #expect(replies.map { $0["email"]?.string } == ["ada@example.com", "unknown@example.com"])
    replies = []
    for email in ["bob@example.com", "free@example.com"] {
      replies.append(
        try await server.sendCode([
          "requestType": .string("VERIFY_AND_CHANGE_EMAIL"), "idToken": tokens[0], "newEmail": .string(email),
        ]))
    }
    #expect(replies[0] == replies[1] && replies[0]["email"]?.string == "ada@example.com")
    while delivery.codes.withLockedValue({ $0.count }) < 2 { await Task.yield() }
    delivery.release()
    let codes = delivery.codes.withLockedValue { $0 }
    #expect(Set(codes.map { $0.newEmail ?? $0.email }) == ["ada@example.com", "free@example.com"])
  }

  @Test("Deliveries in progress are bounded, also for addresses to which nothing is sent")
  func maximumDeliveries() async throws {
    let delivery = HeldDelivery()
    let server = try await ProductionCalls(delivery: delivery)
    // Several recipients, because the messages to each are limited.
    let emails = (0..<4).map { "ada-\($0)@example.com" }
    for email in emails {
      _ = try await server.signUp(["email": .string(email), "password": .string("opensesame")])
    }
    for number in 0..<BackgroundDeliveries.maximumInProgress {
      _ = try await server.sendCode([
        "requestType": .string("PASSWORD_RESET"), "email": .string(emails[number % emails.count]),
      ])
    }
    for email in [emails[0], "unknown@example.com"] {
      await #expect(throws: IdentityError.unavailable("Too many e-mails are being sent.")) {
        try await server.sendCode(["requestType": .string("PASSWORD_RESET"), "email": .string(email)])
      }
    }
    delivery.release()
  }
}
