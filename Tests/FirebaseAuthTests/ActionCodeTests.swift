// Tests action codes of e-mails with a real server: verification, password resets, changes of the address,
// and sign-in links.

import Foundation
import Testing

@testable import FirebaseAuth

@Suite("Action codes on a server", .timeLimit(.minutes(2))) struct ActionCodeTests {
  @Test("an address is verified with an action code, which is valid once")
  func verification() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let user = try await auth.createUser(withEmail: "a@example.org", password: "hunter22").user
      let settings = ActionCodeSettings()
      settings.url = URL(string: "https://example.org/done?x=1")
      try await user.sendEmailVerification(with: settings)
      let (code, link) = try await hearth.actionCode(for: "a@example.org", "VERIFY_EMAIL")
      let url = try #require(ActionCodeURL(link: link))
      #expect(url.operation == .verifyEmail && url.code == code)
      #expect(url.continueURL?.absoluteString == "https://example.org/done?x=1")
      let info = try await auth.checkActionCode(code)
      #expect(info.operation == .verifyEmail && info.email == "a@example.org" && info.previousEmail == nil)
      try await auth.applyActionCode(code)
      #expect(!user.isEmailVerified)
      try await user.reload()
      #expect(user.isEmailVerified && user.emailVerified())
      #expect(await errorCode { try await auth.applyActionCode(code) } == .invalidActionCode)
      let token = try await user.getIDTokenResult(forcingRefresh: true)
      #expect(token.claims["email_verified"] as? Bool == true)
    }
  }

  @Test("a password is reset with an action code")
  func reset() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      try await auth.createUser(withEmail: "a@example.org", password: "hunter22")
      try await auth.sendPasswordReset(withEmail: "a@example.org")
      let (code, _) = try await hearth.actionCode(for: "a@example.org", "PASSWORD_RESET")
      #expect(try await auth.verifyPasswordResetCode(code) == "a@example.org")
      #expect(
        await errorCode { try await auth.confirmPasswordReset(withCode: code, newPassword: "x") }
          == .weakPassword)
      try await auth.confirmPasswordReset(withCode: code, newPassword: "hunter33")
      #expect(
        await errorCode { _ = try await auth.verifyPasswordResetCode(code) }
          == .invalidActionCode)
      try await auth.signIn(withEmail: "a@example.org", password: "hunter33")
      #expect(
        await errorCode { try await auth.sendPasswordReset(withEmail: "b@example.org") }
          == .userNotFound)
    }
  }

  @Test("a new address is verified before it replaces the old one")
  func change() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let user = try await auth.createUser(withEmail: "a@example.org", password: "hunter22").user
      try await user.sendEmailVerification(beforeUpdatingEmail: "b@example.org")
      let (code, _) = try await hearth.actionCode(for: "a@example.org", "VERIFY_AND_CHANGE_EMAIL")
      let info = try await auth.checkActionCode(code)
      #expect(info.operation == .verifyAndChangeEmail)
      #expect(info.email == "b@example.org" && info.previousEmail == "a@example.org")
      try await auth.applyActionCode(code)
      try await auth.signIn(withEmail: "b@example.org", password: "hunter22")
      #expect(auth.currentUser?.isEmailVerified == true)
    }
  }

  @Test("a link in an e-mail signs a user in, and can be linked to an anonymous user")
  func links() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let settings = ActionCodeSettings()
      settings.url = URL(string: "https://example.org/finish")
      settings.handleCodeInApp = true
      try await auth.sendSignInLink(toEmail: "a@example.org", actionCodeSettings: settings)
      let (_, link) = try await hearth.actionCode(for: "a@example.org", "EMAIL_SIGNIN")
      #expect(auth.isSignIn(withEmailLink: link))
      #expect(
        await errorCode { _ = try await auth.signIn(withEmail: "b@example.org", link: link) }
          == .invalidEmail)
      let result = try await auth.signIn(withEmail: "a@example.org", link: link)
      #expect(result.user.email == "a@example.org" && result.user.isEmailVerified)
      #expect(result.additionalUserInfo?.isNewUser == true)

      let other = try hearth.client()
      let guest = try await other.signInAnonymously().user
      let uid = guest.uid
      try await other.sendSignInLink(toEmail: "g@example.org", actionCodeSettings: settings)
      let (_, second) = try await hearth.actionCode(for: "g@example.org", "EMAIL_SIGNIN")
      try await guest.link(with: EmailAuthProvider.credential(withEmail: "g@example.org", link: second))
      #expect(guest.uid == uid && !guest.isAnonymous && guest.email == "g@example.org")
    }
  }
}
