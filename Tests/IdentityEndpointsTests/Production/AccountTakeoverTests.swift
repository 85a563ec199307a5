// Tests that only the owner of an address has access to its account on a production server. Codes, sessions and
// credentials of an attacker who created the account, or of an earlier owner, have no effect.

import Identity
import JSON
import NIOConcurrencyHelpers
import Testing

@testable import IdentityEndpoints

@Suite("Takeover of accounts")
struct AccountTakeoverTests {
  private static let victim = "victim@example.com"
  private static let attacker = "attacker@example.com"

  /// The ways in which an account passes to another owner, or in which the session that requested a code ends.
  enum Change: CaseIterable { case reset, emailLink, recreation, password }

  private func signUp(_ server: ProductionCalls, _ email: String = victim) async throws -> JSONObject {
    try await server.signUp(["email": .string(email), "password": .string("opensesame")])
  }

  /// Completes a password reset or a sign-in by the link of an e-mail, as the reader of the victim's mailbox.
  private func claim(_ server: ProductionCalls, by purpose: OutOfBandCode.Purpose) async throws {
    let email = JSONValue.string(Self.victim)
    _ = try await server.sendCode(["requestType": .string(purpose.rawValue), "email": email])
    let code = try await server.code(purpose)
    if purpose == .signIn {
      _ = try await server.signInWithEmailLink(["email": email, "oobCode": code])
    } else {
      _ = try await server.resetPassword(["oobCode": code, "newPassword": .string("of the owner")])
    }
  }

  @Test(
    "A code that confirms a new address becomes invalid when the session that requested it ends",
    arguments: Change.allCases)
  func changeOfAddress(_ change: Change) async throws {
    let server = try await ProductionCalls(delivery: CodeRecorder())
    let created = try await signUp(server)
    let idToken = created["idToken"] ?? .null
    _ = try await server.sendCode([
      "requestType": .string("VERIFY_AND_CHANGE_EMAIL"), "idToken": idToken,
      "newEmail": .string(Self.attacker),
    ])
    let code = try await server.code(.changeEmail)
    server.advance(10)
    switch change {
    case .reset: try await claim(server, by: .passwordReset)
    case .emailLink: try await claim(server, by: .signIn)
    case .recreation:
      _ = try await server.delete(["idToken": idToken])
      _ = try await signUp(server)
    case .password: _ = try await server.update(["idToken": idToken, "password": .string("of the owner")])
    }
    await #expect(throws: IdentityError.rejected("INVALID_OOB_CODE")) {
      try await server.update(["oobCode": code])
    }
    #expect(try await server.account(Self.victim) != nil)
    #expect(try await server.account(Self.attacker) == nil)
  }

  @Test("A verification of an address is valid only for the account for which it was requested")
  func verification() async throws {
    let server = try await ProductionCalls(delivery: CodeRecorder())
    let idToken = try await signUp(server)["idToken"] ?? .null
    _ = try await server.sendCode(["requestType": .string("VERIFY_EMAIL"), "idToken": idToken])
    _ = try await server.delete(["idToken": idToken])
    _ = try await signUp(server)
    let code = try await server.code(.verifyEmail)
    await #expect(throws: IdentityError.rejected("INVALID_OOB_CODE")) {
      try await server.update(["oobCode": code])
    }
  }

  @Test(
    "A change of a proven address can be undone after a thief has set a password, which the undo removes"
  )
  func undo() async throws {
    let server = try await ProductionCalls(delivery: CodeRecorder())
    let created = try await signUp(server)
    try await server.change(Self.victim) { $0.isEmailVerified = true }
    _ = try await server.sendCode([
      "requestType": .string("VERIFY_AND_CHANGE_EMAIL"), "idToken": created["idToken"] ?? .null,
      "newEmail": .string(Self.attacker),
    ])
    _ = try await server.update(["oobCode": server.code(.changeEmail)])
    server.advance(10)
    _ = try await server.update(
      ["localId": created["localId"] ?? .null, "password": .string("of the thief")], isPrivileged: true)
    _ = try await server.update(["oobCode": server.code(.recoverEmail)])
    #expect(try await server.account(Self.victim)?.localID == created["localId"]?.string)
    #expect(try await server.account(Self.victim)?.password == nil)
    #expect(try await server.account(Self.attacker) == nil)
  }

  @Test("The undo of a second change of the address removes a password that was set between the changes")
  func undoOfSecondChange() async throws {
    let server = try await ProductionCalls(delivery: CodeRecorder())
    let created = try await signUp(server)
    let id = created["localId"] ?? .null
    _ = try await server.update(["localId": id, "email": .string(Self.attacker)], isPrivileged: true)
    _ = try await server.update(["localId": id, "password": .string("of the thief")], isPrivileged: true)
    server.advance(10)
    _ = try await server.update(["localId": id, "email": .string("second@example.com")], isPrivileged: true)
    _ = try await server.update(["oobCode": server.code(.recoverEmail)])
    let account = try #require(try await server.account(Self.victim))
    #expect(account.localID == id.string)
    #expect(account.password == nil)
  }

  @Test("An earlier owner cannot undo a change after another owner has proven the address")
  func undoOfEarlierOwner() async throws {
    let server = try await ProductionCalls(delivery: CodeRecorder())
    let id = try await signUp(server, Self.attacker)["localId"] ?? .null
    _ = try await server.update(["localId": id, "email": .string(Self.victim)], isPrivileged: true)
    let code = try await server.code(.recoverEmail)
    #expect(code != .null)
    server.advance(10)
    try await claim(server, by: .passwordReset)
    await #expect(throws: IdentityError.rejected("INVALID_OOB_CODE")) {
      try await server.update(["oobCode": code])
    }
    #expect(try await server.account(Self.victim) != nil)
  }

  @Test("The changes of two accounts that had the same address are undone independently")
  func sharedInitialAddress() async throws {
    let server = try await ProductionCalls(delivery: CodeRecorder())
    var codes: [JSONValue] = []
    for email in ["b@example.com", "c@example.com"] {
      let id = try await signUp(server)["localId"] ?? .null
      _ = try await server.update(["localId": id, "email": .string(email)], isPrivileged: true)
      codes.append(try await server.code(.recoverEmail))
    }
    try await server.store.project(ProductionServer.project).write { transaction in
      guard let first = try transaction.reader.account(email: "b@example.com", in: nil) else { return }
      try transaction.remove(first)
    }
    let (first, second) = (codes[0], codes[1])
    await #expect(throws: IdentityError.rejected("INVALID_OOB_CODE")) {
      try await server.update(["oobCode": first])
    }
    _ = try await server.update(["oobCode": second])
    #expect(try await server.account(Self.victim) != nil)
    #expect(try await server.account("c@example.com") == nil)
  }

  @Test(
    "Proving an address by a code removes the credentials that were added before the proof",
    arguments: [OutOfBandCode.Purpose.passwordReset, .signIn])
  func credentials(_ purpose: OutOfBandCode.Purpose) async throws {
    let server = try await ProductionCalls(delivery: CodeRecorder())
    let refreshToken = try await signUp(server)["refreshToken"] ?? .null
    let before = try #require(try await server.account(Self.victim)?.password)
    try await server.change(Self.victim) {
      $0.phoneNumber = "+15550100"
      $0.link(Account.Provider(id: "google.com", rawID: "attacker"))
      $0.secondFactors = [
        Account.SecondFactor(id: "f", displayName: nil, enrolledAt: "", kind: .phone("+15550101"))
      ]
    }
    server.advance(10)
    try await claim(server, by: purpose)
    let account = try #require(try await server.account(Self.victim))
    #expect(account.isEmailVerified == true && account.password != before)
    #expect((account.password == nil) == (purpose == .signIn))
    #expect(account.phoneNumber == nil && account.providers == [] && account.secondFactors.isEmpty)
    await #expect(throws: IdentityError.rejected("TOKEN_EXPIRED")) {
      try await server.refreshToken([
        "grantType": .string("refresh_token"), "refreshToken": refreshToken,
      ])
    }
  }

  @Test("A sign-in by a link keeps the credentials of an account with a proven address")
  func provenCredentials() async throws {
    let server = try await ProductionCalls(delivery: CodeRecorder())
    _ = try await signUp(server)
    try await server.change(Self.victim) { $0.isEmailVerified = true }
    let before = try await server.account(Self.victim)
    server.advance(10)
    try await claim(server, by: .signIn)
    let after = try await server.account(Self.victim)
    #expect(after?.password == before?.password && after?.validSince == before?.validSince)
  }

  @Test("A refresh token of the project is not valid in a tenant")
  func tenant() async throws {
    let server = try await ProductionCalls()
    let created = try await server.signUp([:])
    let id = try #require(created["localId"]?.string)
    let database = try await server.store.project(ProductionServer.project)
    try await database.write { transaction in
      try transaction.put(TenantSettings.allowingAllMethods("t1"))
      try transaction.put(Account(localID: id, tenantID: "t1", createdAt: 0))
    }
    let body: JSONObject = [
      "grantType": .string("refresh_token"), "refreshToken": created["refreshToken"] ?? .null,
    ]
    #expect(try await server.refreshToken(body)["user_id"]?.string == id)
    var tenantBody = body
    tenantBody["tenantId"] = .string("t1")
    let request = tenantBody
    await #expect(throws: IdentityError.rejected("INVALID_REFRESH_TOKEN")) {
      try await server.refreshToken(request)
    }
  }

  @Test("A refresh token of a deleted account is not valid for a new account with its ID")
  func recreation() async throws {
    let server = try await ProductionCalls()
    let created = try await server.signUp([:])
    _ = try await server.delete(["idToken": created["idToken"] ?? .null])
    server.advance(10)
    _ = try await server.signUp(["localId": created["localId"] ?? .null], isPrivileged: true)
    await #expect(throws: IdentityError.rejected("TOKEN_EXPIRED")) {
      try await server.refreshToken([
        "grantType": .string("refresh_token"), "refreshToken": created["refreshToken"] ?? .null,
      ])
    }
  }
}
