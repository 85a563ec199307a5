// Tests that expired codes and verifications of phone numbers do not accumulate.

import Identity
import Testing

@Suite("Expired rows")
struct ExpiredRowTests {
  private static let tenants: [String?] = [nil, "t1", "t2"]

  /// Stores `count` codes and `count` verifications of phone numbers in each tenant.
  private func store(
    _ count: Int, _ database: IdentityDatabase, at now: Int64, removingExpiredAt time: Int64?
  ) async throws {
    for number in 0..<count {
      try await database.write { transaction in
        for tenant in Self.tenants {
          let code = OutOfBandCode(
            code: RandomText.code(54), purpose: number.isMultiple(of: 2) ? .passwordReset : .recoverEmail,
            email: "ada@example.com", newEmail: nil, link: "", createdAt: now)
          try transaction.put(code, in: tenant, removingExpiredAt: time)
          try transaction.put(
            PhoneSession(phoneNumber: "+15555550100", createdAt: now), in: tenant, removingExpiredAt: time)
        }
      }
    }
  }

  private func counts(_ database: IdentityDatabase) async throws -> (codes: [Int], sessions: [Int]) {
    try await database.read { reader in
      (
        try Self.tenants.map { try reader.codes(in: $0).count },
        try Self.tenants.map { try reader.phoneSessions(in: $0).count }
      )
    }
  }

  @Test("Storing new codes removes the expired codes of all tenants, and no other codes")
  func removal() async throws {
    try await IdentityFixture.with { fixture in
      let database = try await fixture.store.project(IdentityFixture.project)
      let first = fixture.clock.now * 1000
      try await store(100, database, at: first, removingExpiredAt: nil)
      #expect(try await counts(database) == ([100, 100, 100], [100, 100, 100]))
      // The codes of password resets and text messages have expired, those that recover an address have not.
      let second = first + 86_400_000
      try await store(100, database, at: second, removingExpiredAt: second)
      #expect(try await counts(database) == ([150, 150, 150], [100, 100, 100]))
      let third = second + 31 * 86_400_000
      try await store(100, database, at: third, removingExpiredAt: third)
      #expect(try await counts(database) == ([100, 100, 100], [100, 100, 100]))
    }
  }
}
