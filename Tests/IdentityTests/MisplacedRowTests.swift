// Tests that a stored account is returned only for the ID of its row.

import Testing

@testable import Identity

@Suite("Rows of accounts at another ID")
struct MisplacedRowTests {
  @Test("A row with the account of another ID or tenant is corrupt", arguments: [nil, "t1"] as [String?])
  func misplaced(tenant: String?) async throws {
    try await IdentityFixture.with { fixture in
      let database = try await fixture.store.project(IdentityFixture.project)
      let account = Account(localID: "u1", tenantID: nil, createdAt: 0)
      try await database.write { transaction in
        try transaction.put(account)
        try transaction.set(IdentityKeyLayout.key(.account, tenant ?? "", "u2"), account.storedForm)
      }
      let stored = try await database.read { try $0.account("u1", in: nil)?.localID }
      #expect(stored == "u1")
      await #expect(throws: CorruptRow.self) {
        try await database.read { _ = try $0.account("u2", in: tenant) }
      }
    }
  }
}
