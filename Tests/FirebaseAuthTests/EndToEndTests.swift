// Tests accounts end to end with a real server: passwords, anonymous users, custom tokens, changes, and other
// devices.

import FirebaseCore
import Foundation
import Testing

@testable import FirebaseAuth

@Suite("Accounts on a server", .timeLimit(.minutes(2))) struct AuthEndToEndTests {
  @Test("a password account is created and signed in to, and errors have the documented codes")
  func passwords() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let created = try await auth.createUser(withEmail: "Lea@Example.org", password: "hunter22")
      #expect(
        created.additionalUserInfo?.isNewUser == true && created.additionalUserInfo?.providerID == "password")
      #expect(created.user === auth.currentUser && created.user.email == "lea@example.org")
      #expect(
        !created.user.isAnonymous && !created.user.isEmailVerified && created.user.providerID == "Firebase")
      #expect(created.user.providerData.map(\.providerID) == ["password"])
      #expect(created.user.metadata.creationDate.map { abs($0.timeIntervalSinceNow) < 60 } == true)
      try auth.signOut()
      #expect(auth.currentUser == nil)

      let signedIn = try await auth.signIn(withEmail: "lea@example.org", password: "hunter22")
      #expect(signedIn.user.uid == created.user.uid && signedIn.additionalUserInfo?.isNewUser == false)
      let token = try await signedIn.user.getIDTokenResult()
      #expect(token.signInProvider == "password" && token.claims["sub"] as? String == created.user.uid)

      #expect(
        await errorCode { try await auth.signIn(withEmail: "lea@example.org", password: "x") }
          == .wrongPassword)
      #expect(
        await errorCode { try await auth.signIn(withEmail: "lea@example.org", password: "") }
          == .wrongPassword)
      #expect(
        await errorCode { try await auth.signIn(withEmail: "no@example.org", password: "x") } == .userNotFound
      )
      #expect(await errorCode { try await auth.signIn(withEmail: "no", password: "x") } == .invalidEmail)
      #expect(
        await errorCode { try await auth.createUser(withEmail: "lea@example.org", password: "hunter22") }
          == .emailAlreadyInUse)
      #expect(
        await errorCode { try await auth.createUser(withEmail: "b@example.org", password: "x") }
          == .weakPassword)
      #expect(
        await errorCode { try await auth.createUser(withEmail: "b@example.org", password: "") }
          == .weakPassword)
      #expect(
        await errorCode { try await auth.createUser(withEmail: "", password: "hunter22") } == .missingEmail)
      #expect(auth.currentUser === signedIn.user)
    }
  }

  @Test(
    "an anonymous user keeps its ID when a password is linked, and a second anonymous sign-in does nothing")
  func guests() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let guest = try await auth.signInAnonymously().user
      #expect(guest.isAnonymous && guest.anonymous() && guest.providerData.isEmpty)
      #expect(try await auth.signInAnonymously().user === guest)
      #expect(try await guest.getIDTokenResult().signInProvider == "anonymous")
      let uid = guest.uid

      let credential = EmailAuthProvider.credential(withEmail: "g@example.org", password: "hunter22")
      let linked = try await guest.link(with: credential)
      #expect(
        linked.user === guest && guest.uid == uid && !guest.isAnonymous && guest.email == "g@example.org")
      #expect(try await guest.getIDTokenResult().signInProvider == "password")
      #expect(await errorCode { try await guest.link(with: credential) } == .providerAlreadyLinked)
      let other = try hearth.client()
      #expect(try await other.signIn(with: credential).user.uid == uid)
      let second = try await other.signInAnonymously().user
      #expect(await errorCode { try await second.link(with: credential) } == .emailAlreadyInUse)
    }
  }

  @Test(
    "after a custom token sign-in, the ID token has the token's claims and those that an administrator set")
  func customTokens() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let first = try await auth.signIn(withCustomToken: #"{"uid":"lea","claims":{"level":3}}"#)
      #expect(
        first.user.uid == "lea" && first.additionalUserInfo?.isNewUser == true && !first.user.isAnonymous)
      let claims = try await first.user.getIDTokenResult().claims
      #expect(claims["level"] as? Int == 3)
      #expect(await errorCode { try await auth.signIn(withCustomToken: "x") } == .invalidCustomToken)
      try await hearth.update("lea", ["customAttributes": #"{"role":"editor"}"#])
      #expect(try await first.user.getIDTokenResult().claims["role"] == nil)
      let refreshed = try await first.user.getIDTokenResult(forcingRefresh: true).claims
      #expect(refreshed["role"] as? String == "editor" && refreshed["level"] as? Int == 3)
      #expect(
        try await auth.signIn(withCustomToken: #"{"uid":"lea"}"#).additionalUserInfo?.isNewUser == false)
    }
  }

  @Test("another client receives changes of the name, picture, address and password")
  func changes() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let user = try await auth.createUser(withEmail: "a@example.org", password: "hunter22").user
      let change = user.createProfileChangeRequest()
      change.displayName = "Lea"
      change.photoURL = URL(string: "https://example.org/lea.png")
      try await change.commitChanges()
      #expect(user.displayName == "Lea" && user.photoURL?.absoluteString == "https://example.org/lea.png")
      let other = try hearth.client()
      let seen = try await other.signIn(withEmail: "a@example.org", password: "hunter22").user
      #expect(seen.displayName == "Lea" && seen !== user)

      let removal = user.createProfileChangeRequest()
      removal.photoURL = nil
      try await removal.commitChanges()
      #expect(user.photoURL == nil && user.displayName == "Lea")
      try await seen.reload()
      #expect(seen.photoURL == nil)

      try await user.updatePassword(to: "hunter33")
      #expect(await errorCode { try await user.updatePassword(to: "x") } == .weakPassword)
      #expect(
        await errorCode { try await other.signIn(withEmail: "a@example.org", password: "hunter22") }
          == .wrongPassword)
      try await user.reload()
      let credential = EmailAuthProvider.credential(withEmail: "a@example.org", password: "hunter33")
      #expect(try await user.reauthenticate(with: credential).user === user)
      try await hearth.client().createUser(withEmail: "b@example.org", password: "hunter22")
      let foreign = EmailAuthProvider.credential(withEmail: "b@example.org", password: "hunter22")
      #expect(await errorCode { try await user.reauthenticate(with: foreign) } == .userMismatch)
      let unknown = EmailAuthProvider.credential(withEmail: "c@example.org", password: "hunter22")
      #expect(await errorCode { try await user.reauthenticate(with: unknown) } == .userMismatch)
      #expect(auth.currentUser === user)
    }
  }

  @Test("a deleted, disabled or revoked user is signed out when its token is next used")
  func lostAccounts() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let first = try await auth.createUser(withEmail: "a@example.org", password: "hunter22").user
      let other = try hearth.client()
      let elsewhere = try await other.signIn(withEmail: "a@example.org", password: "hunter22").user
      try await first.delete()
      #expect(auth.currentUser == nil)
      // For a deleted user a server may report an invalid token or an unknown user. Both sign the user out.
      let deleted = await errorCode { _ = try await elsewhere.getIDToken(forcingRefresh: true) }
      #expect(deleted == .userNotFound || deleted == .invalidUserToken)
      #expect(other.currentUser == nil)

      let disabled = try await auth.createUser(withEmail: "b@example.org", password: "hunter22").user
      try await hearth.update(disabled.uid, ["disableUser": true])
      #expect(await errorCode { _ = try await disabled.getIDToken(forcingRefresh: true) } == .userDisabled)
      #expect(auth.currentUser == nil)
      #expect(
        await errorCode { try await auth.signIn(withEmail: "b@example.org", password: "hunter22") }
          == .userDisabled)

      let revoked = try await auth.createUser(withEmail: "c@example.org", password: "hunter22").user
      try await hearth.update(revoked.uid, ["validSince": "\(Int(Date().timeIntervalSince1970) + 60)"])
      #expect(await errorCode { try await revoked.reload() } == .userTokenExpired)
      #expect(auth.currentUser == nil)
    }
  }

  @Test("a user of an earlier run is signed in, and gets new tokens from the server")
  func restart() async throws {
    try await HearthFixture.run { hearth in
      let name = "restart-\(UUID().uuidString)"
      let auth = try hearth.client(name)
      let uid = try await auth.signInAnonymously().user.uid
      _ = await auth.app?.delete()
      let again = try hearth.client(name)
      let user = try #require(again.currentUser)
      #expect(user.uid == uid && user.isAnonymous)
      #expect(try await user.getIDTokenResult(forcingRefresh: true).claims["sub"] as? String == uid)
      try await user.reload()
      #expect(user.isAnonymous)
      try again.signOut()
    }
  }

  @Test("useServer connects to a server at a base URL")
  func server() async throws {
    try await HearthFixture.run { hearth in
      let auth = Auth.auth(app: try makeApp(project: hearth.project))
      auth.useServer(at: try #require(URL(string: "http://127.0.0.1:\(hearth.port)/")))
      let user = try await auth.signInAnonymously().user
      let token = try await user.getIDToken()
      #expect(try await user.getIDToken(forcingRefresh: true).isEmpty == false && !token.isEmpty)
      try await user.delete()
    }
  }

  @Test(
    "a tenant's user has tokens of the tenant, and the project itself does not have the account")
  func tenants() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      auth.tenantID = "tenant-1"
      let user = try await auth.createUser(withEmail: "a@example.org", password: "hunter22").user
      #expect(user.tenantID == "tenant-1")
      let firebase =
        try await user.getIDTokenResult(forcingRefresh: true).claims["firebase"] as? [String: Any]
      #expect(firebase?["tenant"] as? String == "tenant-1")
      auth.tenantID = nil
      #expect(
        await errorCode { try await auth.signIn(withEmail: "a@example.org", password: "hunter22") }
          == .userNotFound)
      #expect(await errorCode { try await auth.updateCurrentUser(user) } == .tenantIDMismatch)
    }
  }
}
