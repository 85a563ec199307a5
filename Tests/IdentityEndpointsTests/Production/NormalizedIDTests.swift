// Tests that user IDs are compared as bytes, like the keys of their rows. Swift compares strings by canonical
// equivalence, so two spellings of one text would otherwise count as one account.

import Identity
import JSON
import Testing

@testable import IdentityEndpoints

@Suite("User IDs that differ in their Unicode normalization")
struct NormalizedIDTests {
  private static let composed = JSONValue.string("\u{E9}")
  private static let decomposed = JSONValue.string("e\u{301}")
  private static let provider: JSONObject = [
    "providerId": .string("oidc.example"), "rawId": .string("r1"),
  ]

  /// Creates one account with an address, a phone number and a provider, and one without any.
  private func server() async throws -> ProductionCalls {
    let server = try await ProductionCalls()
    let first: JSONObject = [
      "localId": Self.composed, "email": .string("a@example.com"), "phoneNumber": .string("+15550001"),
      "providerUserInfo": .array([.object(Self.provider)]),
    ]
    for user in [first, ["localId": Self.decomposed]] {
      let response = try await server.batchCreate(["users": .array([.object(user)])])
      #expect(response["error"]?.array == [])
    }
    return server
  }

  @Test(
    "An import gives no account the address, number or provider of another one",
    arguments: [
      ["email": .string("a@example.com")], ["phoneNumber": .string("+15550001")],
      ["providerUserInfo": .array([.object(NormalizedIDTests.provider)])],
    ] as [JSONObject])
  func batchCreate(members: JSONObject) async throws {
    let server = try await server()
    var user = members
    user["localId"] = Self.decomposed
    let response = try await server.batchCreate([
      "users": .array([.object(user)]), "allowOverwrite": .bool(true),
    ])
    #expect(response["error"]?.array?.count == 1)
  }

  @Test("A provider's user that is linked to one account is not linked to another")
  func linkedProvider() async throws {
    let server = try await server()
    await #expect(throws: IdentityError.rejected("FEDERATED_USER_ID_ALREADY_LINKED")) {
      _ = try await server.update(
        ["localId": Self.decomposed, "linkProviderUserInfo": .object(Self.provider)], isPrivileged: true)
    }
  }

  @Test("A lookup of two IDs that differ only in normalization returns both accounts")
  func lookup() async throws {
    let response = try await server().lookup(["localId": .array([Self.composed, Self.decomposed])])
    #expect(response["users"]?.array?.count == 2)
  }
}
