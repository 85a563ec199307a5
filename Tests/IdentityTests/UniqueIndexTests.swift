// Tests that a transaction changes an index row only on behalf of the account that the row names.

import Testing

@testable import Identity

@Suite("Index rows of accounts")
struct UniqueIndexTests {
  /// A unique property of an account.
  enum Property: CaseIterable, Sendable {
    case email, phoneNumber, provider, passkey

    func set(_ account: inout Account) {
      switch self {
      case .email: account.email = "a@example.com"
      case .phoneNumber: account.phoneNumber = "+15550001"
      case .provider: account.link(Account.Provider(id: "oidc.example", rawID: "r1"))
      case .passkey: account.passkeys = [.init(credentialID: "k1", name: nil)]
      }
    }
  }

  private static func account(_ id: String, _ property: Property? = nil) -> Account {
    var account = Account(localID: id, tenantID: nil, createdAt: 0)
    property?.set(&account)
    return account
  }

  @Test("An account cannot take the index row of another one", arguments: Property.allCases)
  func rejectsTakenRow(property: Property) async throws {
    try await IdentityFixture.with { fixture in
      let database = try await fixture.store.project(IdentityFixture.project)
      try await database.write { try $0.put(Self.account("u1", property)) }
      await #expect(throws: CorruptRow.self) {
        try await database.write { try $0.put(Self.account("u2", property)) }
      }
      #expect(try await database.read { try $0.account("u2", in: nil) == nil })
    }
  }

  @Test("One transaction can move an index row from one account to another", arguments: Property.allCases)
  func movesRow(property: Property) async throws {
    try await IdentityFixture.with { fixture in
      let database = try await fixture.store.project(IdentityFixture.project)
      try await database.write { try $0.put(Self.account("u1", property)) }
      try await database.write { transaction in
        try transaction.put(Self.account("u1"))
        try transaction.put(Self.account("u2", property))
      }
      try await database.write { try $0.remove(Self.account("u2", property)) }
      try await database.write { try $0.put(Self.account("u1", property)) }
    }
  }

  @Test("A change of an account keeps an index row that names another account", arguments: Property.allCases)
  func keepsRowOfOtherAccount(property: Property) async throws {
    try await IdentityFixture.with { fixture in
      let database = try await fixture.store.project(IdentityFixture.project)
      let other = Self.account("u2", property)
      for change in 0..<2 {
        try await database.write { transaction in
          try transaction.put(Self.account("u1", property))
          try transaction.set(IdentityKeyLayout.key(.account, "", "u2"), other.storedForm)
          if change == 0 { try transaction.put(Self.account("u2")) } else { try transaction.remove(other) }
        }
        await #expect(throws: CorruptRow.self, "the row still names u1") {
          try await database.write { try $0.put(Self.account("u3", property)) }
        }
      }
    }
  }
}
