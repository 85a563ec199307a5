// Tests that the guesses of one client address are limited over all accounts, and that the limiter's memory is bounded.

import Identity
import IdentityEndpoints
import JSON
import NIOCore
import Testing

@Suite("Limits per client address", .serialized)
struct AddressLimitTests {
  private static let accounts = "/identitytoolkit.googleapis.com/v1/accounts"

  private func address(_ peer: String, _ forwarded: String...) throws -> ClientAddress? {
    ClientAddress(peer: try SocketAddress(ipAddress: peer, port: 1), forwardedFor: forwarded)
  }

  /// Counts an attempt.
  /// - Returns: whether it is admitted.
  private func attempt(_ limiter: AddressLimiter, _ address: ClientAddress?, at now: Int64) -> Bool {
    do throws(IdentityError) { try limiter.begin(address, at: now) } catch {
      #expect(error.message.hasPrefix("TOO_MANY_ATTEMPTS_TRY_LATER"))
      return false
    }
    return true
  }

  @Test("The first 64 bits of an IPv6 address identify a client; IPv4-mapped addresses count as IPv4")
  func networks() throws {
    #expect(try address("2001:db8:1:2::1") == address("2001:db8:1:2:ffff::9"))
    #expect(try address("2001:db8:1:2::1") != address("2001:db8:1:3::1"))
    #expect(try address("::ffff:203.0.113.7") == address("203.0.113.7"))
    #expect(try address("203.0.113.7") != address("203.0.113.8"))
    #expect(ClientAddress(peer: nil, forwardedFor: []) == nil)
    let socket = try SocketAddress(unixDomainSocketPath: "/tmp/x")
    #expect(ClientAddress(peer: socket, forwardedFor: ["203.0.113.7"]) == nil)
  }

  @Test(
    "Only a local peer, which may be a proxy, can name another address; the last named address is used")
  func proxies() throws {
    let client = try address("203.0.113.7")
    for proxy in ["127.0.0.1", "::1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "fd00::1", "fe80::1"] {
      #expect(try address(proxy, "198.51.100.1, 203.0.113.7") == client, "\(proxy)")
      #expect(try address(proxy, "198.51.100.1", "203.0.113.7") == client, "\(proxy)")
      #expect(try address(proxy, "nonsense") == address(proxy), "\(proxy)")
      #expect(try address(proxy, "") == address(proxy), "\(proxy)")
    }
    #expect(try address("127.0.0.1", "[2001:db8::1]") == address("2001:db8::2"))
    for peer in ["198.51.100.1", "172.32.0.1", "2001:db8::1", "::2"] {
      #expect(try address(peer, "203.0.113.7") == address(peer), "\(peer)")
    }
  }

  @Test("An address must wait once it has used its allowance, which is restored over time")
  func allowance() throws {
    let limiter = AddressLimiter(isEnabled: true)
    let (client, other) = (try address("203.0.113.7"), try address("203.0.113.8"))
    for _ in 0..<AddressLimiter.allowance { #expect(attempt(limiter, client, at: 1000)) }
    #expect(!attempt(limiter, client, at: 1000))
    #expect(attempt(limiter, other, at: 1000))
    for _ in 0..<200 { #expect(attempt(limiter, nil, at: 1000)) }
    let restored = 1000 + AddressLimiter.restorationMilliseconds
    #expect(!attempt(limiter, client, at: restored - 1))
    #expect(attempt(limiter, client, at: restored))
    #expect(!attempt(limiter, client, at: restored))
    // A clock that is set back restores nothing.
    #expect(!attempt(limiter, client, at: 0))
    let emulator = AddressLimiter(isEnabled: false)
    for _ in 0..<1000 { #expect(attempt(emulator, client, at: 0)) }
    #expect(emulator.count == 0)
  }

  @Test("Attempts in progress use the allowance, and the refund of a successful attempt restores one attempt")
  func refund() throws {
    let limiter = AddressLimiter(isEnabled: true)
    let client = try address("203.0.113.7")
    for _ in 0..<AddressLimiter.allowance { #expect(attempt(limiter, client, at: 0)) }
    #expect(!attempt(limiter, client, at: 0))
    limiter.refund(client, at: 0)
    #expect(attempt(limiter, client, at: 0))
    #expect(!attempt(limiter, client, at: 0))
    // Refunds restore no more than the attempts took.
    for _ in 0..<AddressLimiter.allowance { limiter.refund(client, at: 0) }
    #expect(limiter.count == 0)
    limiter.refund(client, at: 0)
    for _ in 0..<AddressLimiter.allowance { #expect(attempt(limiter, client, at: 0)) }
    #expect(!attempt(limiter, client, at: 0))
  }

  @Test("Many addresses take bounded memory and do not restore the allowance of a blocked one")
  func boundedMemory() throws {
    let limiter = AddressLimiter(isEnabled: true, maximumRecords: 100)
    let client = try address("203.0.113.7")
    for _ in 0..<AddressLimiter.allowance { _ = attempt(limiter, client, at: 0) }
    for number in 0..<5000 {
      _ = attempt(limiter, try address("198.51.\(number / 256).\(number % 256)"), at: 0)
      #expect(limiter.count <= 100)
    }
    #expect(!attempt(limiter, client, at: 0))
  }

  @Test("A client that tries many accounts is blocked; other addresses and administrators are not")
  func endpoint() async throws {
    try await ProductionServer.with { server in
      func post(_ operation: String, _ body: JSONObject, from address: String) async throws -> String? {
        try await server.auth.post(
          Self.accounts + ":" + operation, body, headers: [("x-forwarded-for", address)]
        ).error
      }
      func signIn(_ email: String, _ password: String, from address: String) async throws -> String? {
        try await post(
          "signInWithPassword", ["email": .string(email), "password": .string(password)], from: address)
      }
      let ada: JSONObject = ["email": .string("ada@example.com"), "password": .string("opensesame")]
      #expect(try await post("signUp", ada, from: "203.0.113.7") == nil)
      // Successful sign-ins do not use the allowance.
      #expect(try await signIn("ada@example.com", "opensesame", from: "203.0.113.7") == nil)
      #expect(
        try await signIn("no@example.com", "opensesame", from: "203.0.113.7") == "INVALID_LOGIN_CREDENTIALS")
      for _ in 0..<50 {
        #expect(try await post("signUp", ada, from: "203.0.113.7") == "EMAIL_EXISTS")
      }
      let code: JSONObject = ["oobCode": .string("guess")]
      for _ in 0..<49 {
        #expect(try await post("resetPassword", code, from: "203.0.113.7") == "INVALID_OOB_CODE")
      }
      for operation in ["signUp", "resetPassword", "signInWithPassword", "createAuthUri", "sendOobCode"] {
        // On a slow machine the allowance has grown by a few attempts since the first one.
        var error: String?
        for _ in 0..<20 where error?.hasPrefix("TOO_MANY_ATTEMPTS_TRY_LATER") != true {
          error = try await post(operation, ada, from: "203.0.113.7")
        }
        #expect(error?.hasPrefix("TOO_MANY_ATTEMPTS_TRY_LATER") == true, "\(operation) \(error ?? "")")
      }
      #expect(try await signIn("ada@example.com", "opensesame", from: "203.0.113.8") == nil)
      let admin = try await server.accessToken(server.account("admin"))
      let reply = try await server.auth.send(
        "POST", "/identitytoolkit.googleapis.com/v1/projects/demo-prod/accounts",
        headers: bearer(admin) + [("x-forwarded-for", "203.0.113.7")],
        body: Array(#"{"email":"bob@example.com"}"#.utf8))
      #expect(reply.status == 200)
    }
  }
}
