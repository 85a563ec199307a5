// Tests the futures and publishers of FirebaseAuth for Combine, with a real server.

import FirebaseAuthCombineSwift
import Foundation
import Locking
import Testing

@testable import FirebaseAuth

#if canImport(Combine)
  import Combine
#else
  import OpenCombine
#endif

/// Waits for a future's result.
@discardableResult
private func value<T: Sendable>(of future: Future<T, any Error>) async throws -> T {
  try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<T, any Error>) in
    future.subscribe(
      Subscribers.Sink(
        receiveCompletion: { if case .failure(let error) = $0 { continuation.resume(throwing: error) } },
        receiveValue: { continuation.resume(returning: $0) }))
  }
}

@Suite("Combine publishers of accounts", .timeLimit(.minutes(2))) struct AuthPublisherTests {
  @Test("futures of sign-ins complete with the server's response, or fail with its error")
  func signIns() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let guest = try await value(of: auth.signInAnonymously()).user
      let credential = EmailAuthProvider.credential(withEmail: "a@example.org", password: "hunter22")
      #expect(try await value(of: guest.link(with: credential)).user === guest)
      #expect(try await value(of: guest.reauthenticate(with: credential)).user === guest)
      #expect(try await value(of: guest.unlink(fromProvider: "password")).providerData.isEmpty)
      let created = try await value(of: auth.createUser(withEmail: "b@example.org", password: "hunter22"))
      let signedIn = try await value(of: auth.signIn(withEmail: "b@example.org", password: "hunter22"))
      #expect(signedIn.user.uid == created.user.uid)
      #expect(
        try await value(
          of: auth.signIn(
            with: EmailAuthProvider.credential(
              withEmail: "b@example.org", password: "hunter22"))
        ).user.uid == created.user.uid)
      #expect(try await value(of: auth.signIn(withCustomToken: #"{"uid":"lea"}"#)).user.uid == "lea")
      let other = try hearth.client()
      try await value(of: other.updateCurrentUser(signedIn.user))
      #expect(other.currentUser?.uid == created.user.uid)
      #expect(
        await errorCode { try await value(of: auth.signIn(withEmail: "b@example.org", password: "x")) }
          == .wrongPassword)
      #expect(
        await errorCode {
          try await value(of: auth.createUser(withEmail: "b@example.org", password: "hunter22"))
        }
          == .emailAlreadyInUse)
    }
  }

  @Test("action codes are sent, checked and applied with futures")
  func actionCodes() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let email = "lea@example.org"
      let user = try await auth.createUser(withEmail: email, password: "hunter22").user
      try await value(of: user.sendEmailVerification())
      let verification = try await hearth.actionCode(for: email, "VERIFY_EMAIL").code
      #expect(try await value(of: auth.checkActionCode(code: verification)).email == email)
      try await value(of: auth.applyActionCode(code: verification))
      try await user.reload()
      #expect(user.isEmailVerified)
      try await value(of: auth.sendPasswordReset(withEmail: email))
      let reset = try await hearth.actionCode(for: email, "PASSWORD_RESET").code
      #expect(try await value(of: auth.verifyPasswordResetCode(reset)) == email)
      try await value(of: auth.confirmPasswordReset(withCode: reset, newPassword: "hunter33"))
      #expect(try await value(of: auth.signIn(withEmail: email, password: "hunter33")).user.uid == user.uid)
      let settings = ActionCodeSettings()
      settings.url = URL(string: "https://example.org/finish")
      settings.handleCodeInApp = true
      try await value(of: auth.sendSignInLink(toEmail: email, actionCodeSettings: settings))
      let link = try await hearth.actionCode(for: email, "EMAIL_SIGNIN").link
      #expect(try await value(of: auth.signIn(withEmail: email, link: link)).user.uid == user.uid)
      #expect(await errorCode { try await value(of: auth.applyActionCode(code: "x")) } == .invalidActionCode)
    }
  }

  @Test("a phone is enrolled as a second factor and completes a sign-in with futures")
  func secondFactor() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let (email, number) = ("lea@example.org", "+15005550006")
      let user = try await auth.createUser(withEmail: email, password: "hunter22").user
      try await hearth.update(user.uid, ["emailVerified": true])
      try await user.reload()
      _ = try await user.getIDToken(forcingRefresh: true)
      let phones = PhoneAuthProvider.provider(auth: auth)
      func assertion(_ id: String) async throws -> MultiFactorAssertion {
        PhoneMultiFactorGenerator.assertion(
          with: phones.credential(
            withVerificationID: id, verificationCode: try await hearth.verificationCode(for: number)))
      }
      let session = try await value(of: user.multiFactor.getSession())
      let id = try await value(of: phones.verifyPhoneNumber(number, multiFactorSession: session))
      try await value(of: user.multiFactor.enroll(with: try await assertion(id), displayName: "phone"))
      #expect(user.multiFactor.enrolledFactors.map(\.displayName) == ["phone"])
      try auth.signOut()
      var resolver: MultiFactorResolver?
      do { _ = try await value(of: auth.signIn(withEmail: email, password: "hunter22")) } catch {
        resolver =
          (error as NSError).userInfo[AuthErrorUserInfoMultiFactorResolverKey] as? MultiFactorResolver
      }
      let found = try #require(resolver)
      let hint = try #require(found.hints.first as? PhoneMultiFactorInfo)
      let second = try await value(
        of: phones.verifyPhoneNumber(with: hint, multiFactorSession: found.session))
      let result = try await value(of: found.resolveSignIn(with: try await assertion(second)))
      #expect(result.user.uid == user.uid)
      try await value(of: result.user.multiFactor.unenroll(withFactorUID: hint.uid))
      #expect(result.user.multiFactor.enrolledFactors.isEmpty)
    }
  }

  @Test("publishers publish the current user first, and remove their listeners when they are cancelled")
  func publishers() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let (states, tokens) = (Recorder<String?>(), Recorder<String?>())
      let cancellables = [
        auth.authStateDidChangePublisher().sink { states.record($0?.uid) },
        auth.idTokenDidChangePublisher().sink { tokens.record($0?.uid) },
      ]
      #expect(await states.next() == .some(nil))
      #expect(await tokens.next() == .some(nil))
      let user = try await auth.signInAnonymously().user
      #expect(await states.next() == user.uid)
      #expect(await tokens.next() == user.uid)
      try auth.signOut()
      #expect(await states.next() == .some(nil))
      #expect(await tokens.next() == .some(nil))
      for cancellable in cancellables { cancellable.cancel() }
      #expect(auth.state.withLock { $0.listeners.isEmpty })
    }
  }
}
