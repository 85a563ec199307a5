// Tests the signatures of public declarations: they have the types that apps rely on. Compiling this file is
// the test.

import FirebaseAuth
import FirebaseCore
import Foundation
import Testing

private typealias ResultHandler = ((AuthDataResult?, (any Error)?) -> Void)?
private typealias ErrorHandler = (((any Error)?) -> Void)?

@Suite("Signatures of FirebaseAuth") struct AuthSignatureTests {
  @Test("the declarations of Auth")
  func auth() {
    let _: () -> Auth = Auth.auth
    let _: (FirebaseApp) -> Auth = Auth.auth(app:)
    let _: KeyPath<Auth, FirebaseApp?> = \.app
    let _: KeyPath<Auth, User?> = \.currentUser
    let _: ReferenceWritableKeyPath<Auth, String?> = \.languageCode
    let _: ReferenceWritableKeyPath<Auth, String?> = \.tenantID
    let _: (Auth) -> (String, String, ResultHandler) -> Void = Auth.createUser(withEmail:password:completion:)
    let _: (Auth) -> (String, String) async throws -> AuthDataResult = Auth.createUser(withEmail:password:)
    let _: (Auth) -> (String, String, ResultHandler) -> Void = Auth.signIn(withEmail:password:completion:)
    let _: (Auth) -> (String, String) async throws -> AuthDataResult = Auth.signIn(withEmail:password:)
    let _: (Auth) -> (String, String, ResultHandler) -> Void = Auth.signIn(withEmail:link:completion:)
    let _: (Auth) -> (String, String) async throws -> AuthDataResult = Auth.signIn(withEmail:link:)
    let _: (Auth) -> (AuthCredential, ResultHandler) -> Void = Auth.signIn(with:completion:)
    let _: (Auth) -> (AuthCredential) async throws -> AuthDataResult = Auth.signIn(with:)
    let _: (Auth) -> (ResultHandler) -> Void = Auth.signInAnonymously(completion:)
    let _: (Auth) -> () async throws -> AuthDataResult = Auth.signInAnonymously
    let _: (Auth) -> (String, ResultHandler) -> Void = Auth.signIn(withCustomToken:completion:)
    let _: (Auth) -> (String) async throws -> AuthDataResult = Auth.signIn(withCustomToken:)
    let _: (Auth) -> (String, ErrorHandler) -> Void = Auth.sendPasswordReset(withEmail:completion:)
    let _: (Auth) -> (String, ActionCodeSettings?, ErrorHandler) -> Void =
      Auth.sendPasswordReset(withEmail:actionCodeSettings:completion:)
    let _: (Auth) -> (String, ActionCodeSettings?) async throws -> Void =
      Auth.sendPasswordReset(withEmail:actionCodeSettings:)
    let _: (Auth) -> (String, ActionCodeSettings, ErrorHandler) -> Void =
      Auth.sendSignInLink(toEmail:actionCodeSettings:completion:)
    let _: (Auth) -> (String, String, @escaping ((any Error)?) -> Void) -> Void =
      Auth.confirmPasswordReset(withCode:newPassword:completion:)
    let _: (Auth) -> (String) async throws -> ActionCodeInfo = Auth.checkActionCode
    let _: (Auth) -> (String) async throws -> String = Auth.verifyPasswordResetCode
    let _: (Auth) -> (String) async throws -> Void = Auth.applyActionCode
    let _: (Auth) -> () throws -> Void = Auth.signOut
    let _: (Auth) -> (String) -> Bool = Auth.isSignIn(withEmailLink:)
    let _: (Auth) -> (@escaping (Auth, User?) -> Void) -> any NSObjectProtocol = Auth
      .addStateDidChangeListener
    let _: (Auth) -> (any NSObjectProtocol) -> Void = Auth.removeStateDidChangeListener
    let _: (Auth) -> (@escaping (Auth, User?) -> Void) -> any NSObjectProtocol = Auth
      .addIDTokenDidChangeListener
    let _: (Auth) -> (any NSObjectProtocol) -> Void = Auth.removeIDTokenDidChangeListener
    let _: (Auth) -> (String, Int) -> Void = Auth.useEmulator(withHost:port:)
    let _: (Auth) -> () -> String? = Auth.getUserID
    let _: AuthStateDidChangeListenerHandle? = nil
    let _: IDTokenDidChangeListenerHandle? = nil
    #expect(Auth.authStateDidChangeNotification.rawValue == "FIRAuthStateDidChangeNotification")
  }

  @Test("the declarations of User")
  func user() {
    let _: [KeyPath<User, Bool>] = [\.isAnonymous, \.isEmailVerified]
    let _: [KeyPath<User, String>] = [\.uid, \.providerID]
    let _: [KeyPath<User, String?>] = [\.displayName, \.email, \.phoneNumber, \.refreshToken, \.tenantID]
    let _: KeyPath<User, URL?> = \.photoURL
    let _: KeyPath<User, [any UserInfo]> = \.providerData
    let _: KeyPath<User, UserMetadata> = \.metadata
    let _: KeyPath<User, MultiFactor> = \.multiFactor
    let _: (User) -> (String, ErrorHandler) -> Void = User.updatePassword(to:completion:)
    let _: (User) -> (String) async throws -> Void = User.updatePassword(to:)
    let _: (User) -> () -> UserProfileChangeRequest = User.createProfileChangeRequest
    let _: (User) -> (ErrorHandler) -> Void = User.reload(completion:)
    let _: (User) -> () async throws -> Void = User.reload
    let _: (User) -> (AuthCredential, ResultHandler) -> Void = User.reauthenticate(with:completion:)
    let _: (User) -> (AuthCredential) async throws -> AuthDataResult = User.reauthenticate(with:)
    let _: (User) -> (((String?, (any Error)?) -> Void)?) -> Void = User.getIDToken(completion:)
    let _: (User) -> (Bool, ((String?, (any Error)?) -> Void)?) -> Void =
      User.getIDTokenForcingRefresh(_:completion:)
    let _: (User) -> (Bool) async throws -> String = User.getIDToken(forcingRefresh:)
    let _: (User) -> (Bool) async throws -> String = User.idTokenForcingRefresh
    let _: (User) -> (((AuthTokenResult?, (any Error)?) -> Void)?) -> Void = User.getIDTokenResult(
      completion:)
    let _: (User) -> (Bool) async throws -> AuthTokenResult = User.getIDTokenResult(forcingRefresh:)
    let _: (User) -> (AuthCredential, ResultHandler) -> Void = User.link(with:completion:)
    let _: (User) -> (AuthCredential) async throws -> AuthDataResult = User.link(with:)
    let _: (User) -> (String, ((User?, (any Error)?) -> Void)?) -> Void = User.unlink(
      fromProvider:completion:)
    let _: (User) -> (String) async throws -> User = User.unlink(fromProvider:)
    let _: (User) -> (ActionCodeSettings?, ErrorHandler) -> Void = User.sendEmailVerification(
      with:completion:)
    let _: (User) -> (ActionCodeSettings?) async throws -> Void = User.sendEmailVerification(with:)
    let _: (User) -> (String, ActionCodeSettings?) async throws -> Void =
      User.sendEmailVerification(beforeUpdatingEmail:actionCodeSettings:)
    let _: (User) -> (ErrorHandler) -> Void = User.delete(completion:)
    let _: (User) -> () async throws -> Void = User.delete
    let _: [ReferenceWritableKeyPath<UserProfileChangeRequest, String?>] = [\.displayName]
    let _: (UserProfileChangeRequest) -> (ErrorHandler) -> Void = UserProfileChangeRequest.commitChanges(
      completion:)
  }

  @Test("the declarations of results, providers and constants")
  func values() {
    let _: KeyPath<AuthDataResult, User> = \.user
    let _: KeyPath<AuthDataResult, AdditionalUserInfo?> = \.additionalUserInfo
    let _: KeyPath<AuthDataResult, OAuthCredential?> = \.credential
    let _: KeyPath<AdditionalUserInfo, [String: Any]?> = \.profile
    let _: [KeyPath<AuthTokenResult, Date>] = [\.expirationDate, \.authDate, \.issuedAtDate]
    let _: KeyPath<AuthTokenResult, [String: Any]> = \.claims
    let _: (String, String) -> AuthCredential = EmailAuthProvider.credential(withEmail:password:)
    let _: (String, String) -> AuthCredential = EmailAuthProvider.credential(withEmail:link:)
    let _: (String, String) -> AuthCredential = GoogleAuthProvider.credential(withIDToken:accessToken:)
    let _: (String) -> AuthCredential = FacebookAuthProvider.credential(withAccessToken:)
    let _: (String) -> AuthCredential = GitHubAuthProvider.credential(withToken:)
    let _: (String, String) -> AuthCredential = TwitterAuthProvider.credential(withToken:secret:)
    let _: (AuthProviderID, String, String?) -> OAuthCredential =
      OAuthProvider.credential(providerID:idToken:accessToken:)
    let _: (String, String?, PersonNameComponents?) -> OAuthCredential =
      OAuthProvider.appleCredential(withIDToken:rawNonce:fullName:)
    let _:
      (PhoneAuthProvider) -> (String, (any AuthUIDelegate)?, (@MainActor (String?, (any Error)?) -> Void)?) ->
        Void =
        PhoneAuthProvider.verifyPhoneNumber(_:uiDelegate:completion:)
    #expect(EmailAuthProvider.id == "password" && GoogleAuthProvider.id == "google.com")
    #expect(FacebookAuthProvider.id == "facebook.com" && GitHubAuthProvider.id == "github.com")
    #expect(TwitterAuthProvider.id == "twitter.com" && PhoneAuthProvider.id == "phone")
    #expect(
      AuthProviderID.apple.rawValue == "apple.com" && AuthProviderID.custom("oidc.x").rawValue == "oidc.x")
    #expect(AuthErrors.domain == AuthErrorDomain && AuthErrorDomain == "FIRAuthErrorDomain")
    let settings = ActionCodeSettings()
    settings.url = URL(string: "https://example.org")
    settings.handleCodeInApp = true
    settings.setIOSBundleID("org.example")
    settings.setAndroidPackageName("org.example", installIfNotAvailable: true, minimumVersion: "12")
    #expect(settings.androidInstallIfNotAvailable && settings.iOSBundleID == "org.example")
  }
}
