// Tests providers with a real server: credentials of identity providers and phones, and second factors.

import Crypto
import Foundation
import Testing

@testable import FirebaseAuth

@Suite("Providers on a server", .timeLimit(.minutes(2))) struct ProviderTests {
  private func googleCredential(_ subject: String, _ email: String) -> AuthCredential {
    GoogleAuthProvider.credential(withIDToken: googleToken(subject, email: email), accessToken: "access")
  }

  @Test("a sign-in with a Google account returns the profile and the credential")
  func signIn() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let result = try await auth.signIn(with: googleCredential("123", "lea@gmail.com"))
      #expect(result.user.email == "lea@gmail.com" && result.user.isEmailVerified && !result.user.isAnonymous)
      let info = try #require(result.additionalUserInfo)
      #expect(info.providerID == "google.com" && info.isNewUser && info.profile?["name"] as? String == "Lea")
      #expect(result.credential?.provider == "google.com")
      let data = try #require(result.user.providerData.first)
      #expect(data.providerID == "google.com" && data.uid == "123" && data.email == "lea@gmail.com")
      #expect(try await result.user.getIDTokenResult().signInProvider == "google.com")
      #expect(
        try await auth.signIn(with: googleCredential("123", "lea@gmail.com")).additionalUserInfo?.isNewUser
          == false)
      let broken = GoogleAuthProvider.credential(withIDToken: "x", accessToken: "y")
      #expect(await errorCode { try await auth.signIn(with: broken) } == .invalidCredential)
    }
  }

  @Test(
    "a provider is linked and unlinked; linking another account's provider gives an error with its credential"
  )
  func linking() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let user = try await auth.createUser(withEmail: "a@example.org", password: "hunter22").user
      try await user.link(with: googleCredential("123", "lea@gmail.com"))
      #expect(Set(user.providerData.map(\.providerID)) == ["password", "google.com"])
      #expect(
        await errorCode { try await user.link(with: googleCredential("123", "lea@gmail.com")) }
          == .providerAlreadyLinked)

      let other = try hearth.client()
      let guest = try await other.signInAnonymously().user
      do {
        try await guest.link(with: googleCredential("123", "lea@gmail.com"))
        Issue.record("the link succeeded")
      } catch {
        #expect(AuthErrorCode(of: error) == .credentialAlreadyInUse)
        let updated = (error as NSError).userInfo[AuthErrorUserInfoUpdatedCredentialKey] as? OAuthCredential
        #expect(try await other.signIn(with: try #require(updated)).user.uid == user.uid)
      }
      #expect(try await user.unlink(fromProvider: "google.com") === user)
      #expect(user.providerData.map(\.providerID) == ["password"])
      #expect(await errorCode { _ = try await user.unlink(fromProvider: "google.com") } == .noSuchProvider)
    }
  }

  @Test("the code in a message completes a sign-in with a phone number and links a phone number")
  func phones() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let provider = PhoneAuthProvider.provider(auth: auth)
      let verification = try await provider.verifyPhoneNumber("+15555550100")
      let code = try await hearth.verificationCode(for: "+15555550100")
      let wrong = provider.credential(withVerificationID: verification, verificationCode: "x")
      #expect(await errorCode { try await auth.signIn(with: wrong) } == .invalidVerificationCode)
      let right = provider.credential(withVerificationID: verification, verificationCode: code)
      let result = try await auth.signIn(with: right)
      #expect(result.user.phoneNumber == "+15555550100" && result.additionalUserInfo?.isNewUser == true)
      #expect(
        await errorCode { _ = try await provider.verifyPhoneNumber("5") } == .invalidPhoneNumber)

      let user = try await auth.createUser(withEmail: "a@example.org", password: "hunter22").user
      let second = try await provider.verifyPhoneNumber("+15555550101")
      let secondCode = try await hearth.verificationCode(for: "+15555550101")
      try await user.link(with: provider.credential(withVerificationID: second, verificationCode: secondCode))
      #expect(user.phoneNumber == "+15555550101")
    }
  }

  @Test("a phone is enrolled as a second factor, completes a sign-in, and is removed")
  func secondFactors() async throws {
    try await HearthFixture.run { hearth in
      let auth = try hearth.client()
      let user = try await auth.createUser(withEmail: "a@example.org", password: "hunter22").user
      try await hearth.update(user.uid, ["emailVerified": true])
      try await user.reload()
      let provider = PhoneAuthProvider.provider(auth: auth)
      let session = try await user.multiFactor.session()
      let enrollment = try await provider.verifyPhoneNumber("+15555550100", multiFactorSession: session)
      let first = provider.credential(
        withVerificationID: enrollment,
        verificationCode: try await hearth.verificationCode(for: "+15555550100"))
      try await user.multiFactor.enroll(
        with: PhoneMultiFactorGenerator.assertion(with: first), displayName: "my phone")
      #expect(user.multiFactor.enrolledFactors.map(\.displayName) == ["my phone"])
      try auth.signOut()

      var resolver: MultiFactorResolver?
      do { try await auth.signIn(withEmail: "a@example.org", password: "hunter22") } catch {
        resolver =
          (error as NSError).userInfo[AuthErrorUserInfoMultiFactorResolverKey] as? MultiFactorResolver
      }
      let found = try #require(resolver)
      let hint = try #require(found.hints.first as? PhoneMultiFactorInfo)
      let verification = try await provider.verifyPhoneNumber(with: hint, multiFactorSession: found.session)
      let second = provider.credential(
        withVerificationID: verification,
        verificationCode: try await hearth.verificationCode(for: "+15555550100"))
      let result = try await found.resolveSignIn(with: PhoneMultiFactorGenerator.assertion(with: second))
      #expect(result.user.uid == user.uid)
      #expect(try await result.user.getIDTokenResult().signInSecondFactor == "phone")
      try await result.user.multiFactor.unenroll(with: hint)
      #expect(result.user.multiFactor.enrolledFactors.isEmpty)
      try await auth.signIn(withEmail: "a@example.org", password: "hunter22")
    }
  }

  /// The one-time password at a time (RFC 6238: HMAC-SHA1, six digits, steps of 30 seconds).
  private func oneTimePassword(_ base32: String, at date: Date) throws -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)
    var bits = 0
    var value = 0
    var key: [UInt8] = []
    for character in base32.utf8 {
      let digit = try #require(alphabet.firstIndex(of: character))
      value = (value << 5 | digit) & 0xFFFF
      bits += 5
      if bits >= 8 {
        bits -= 8
        key.append(UInt8(truncatingIfNeeded: value >> bits))
      }
    }
    let step = UInt64(date.timeIntervalSince1970 / 30)
    let message = (0..<8).map { UInt8(truncatingIfNeeded: step >> (56 - 8 * UInt64($0))) }
    let hash = Array(HMAC<Insecure.SHA1>.authenticationCode(for: message, using: SymmetricKey(data: key)))
    let offset = Int(hash[19] & 0x0F)
    let number = hash[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
    return String(format: "%06d", Int(number % 1_000_000))
  }

  @Test("one-time passwords are enrolled as a second factor and complete a sign-in")
  func oneTimePasswords() async throws {
    try await HearthFixture.run { hearth in
      try await hearth.admin(
        "PATCH", "identitytoolkit.googleapis.com/v2/projects/\(hearth.project)/config?updateMask=mfa",
        [
          "mfa": [
            "state": "ENABLED",
            "providerConfigs": [["state": "ENABLED", "totpProviderConfig": ["adjacentIntervals": 5]]],
          ] as [String: Any]
        ])
      let auth = try hearth.client()
      let user = try await auth.createUser(withEmail: "a@example.org", password: "hunter22").user
      try await hearth.update(user.uid, ["emailVerified": true])
      let session = try await user.multiFactor.session()
      let secret = try await TOTPMultiFactorGenerator.generateSecret(with: session)
      let key = secret.sharedSecretKey()
      let url = secret.generateQRCodeURL(withAccountName: "a@example.org", issuer: "Tea & Co")
      #expect(
        url
          == "otpauth://totp/Tea%20%26%20Co:a@example.org?secret=\(key)&issuer=Tea%20%26%20Co&algorithm=SHA1&digits=6&period=30"
      )
      // Each password is valid once, in a range of steps around its time.
      let now = Date()
      let wrong = TOTPMultiFactorGenerator.assertionForEnrollment(with: secret, oneTimePassword: "x")
      #expect(
        await errorCode { try await user.multiFactor.enroll(with: wrong, displayName: nil) }
          == .invalidVerificationCode)
      let assertion = TOTPMultiFactorGenerator.assertionForEnrollment(
        with: secret, oneTimePassword: try oneTimePassword(key, at: now))
      try await user.multiFactor.enroll(with: assertion, displayName: "app")
      let factor = try #require(user.multiFactor.enrolledFactors.first)
      #expect(factor.factorID == "totp" && factor.displayName == "app")

      var resolver: MultiFactorResolver?
      do { try await auth.signIn(withEmail: "a@example.org", password: "hunter22") } catch {
        resolver =
          (error as NSError).userInfo[AuthErrorUserInfoMultiFactorResolverKey] as? MultiFactorResolver
      }
      let found = try #require(resolver)
      let hint = try #require(found.hints.first)
      let result = try await found.resolveSignIn(
        with: TOTPMultiFactorGenerator.assertionForSignIn(
          withEnrollmentID: hint.uid,
          oneTimePassword: try oneTimePassword(key, at: now.addingTimeInterval(60))))
      #expect(try await result.user.getIDTokenResult().signInSecondFactor == "totp")
    }
  }
}
