// Tests the current user: listeners, restarts, second factors and archives.

import FirebaseCore
import Foundation
import Locking
import Testing

@testable import FirebaseAuth

@Suite("Current user", .timeLimit(.minutes(2))) struct CurrentUserTests {
  @Test("listeners receive the current user first; state listeners are then called only for another user")
  func listeners() async throws {
    let scripted = try await ScriptedServer.start()
    let auth = scripted.auth
    let states = Recorder<String?>()
    let tokens = Recorder<String?>()
    let notifications = Recorder<Bool>()
    let observer = NotificationCenter.default.addObserver(
      forName: Auth.authStateDidChangeNotification, object: auth, queue: nil
    ) { _ in
      dispatchPrecondition(condition: .onQueue(.main))
      notifications.record(true)
    }
    let stateHandle = auth.addStateDidChangeListener { receivedAuth, user in
      dispatchPrecondition(condition: .onQueue(.main))
      #expect(receivedAuth === auth)
      states.record(user?.uid)
    }
    let tokenHandle = auth.addIDTokenDidChangeListener { _, user in tokens.record(user?.uid) }
    #expect(await states.next() == .some(nil))
    #expect(await tokens.next() == .some(nil))

    let user = try await auth.signIn(withCustomToken: "t").user
    #expect(await states.next() == "u1")
    #expect(await tokens.next() == "u1")
    #expect(await notifications.next() == true)
    _ = try await user.getIDToken(forcingRefresh: true)
    #expect(await tokens.next() == "u1")
    try auth.signOut()
    #expect(await tokens.next() == .some(nil))
    // The refresh must not call the state listener.
    #expect(await states.next() == .some(nil))

    auth.removeStateDidChangeListener(stateHandle)
    auth.removeIDTokenDidChangeListener(tokenHandle)
    NotificationCenter.default.removeObserver(observer)
    #expect(auth.state.withLock { $0.listeners.isEmpty })
    await scripted.stop()
  }

  @Test("the sequences yield the current user first, and end when their task is cancelled")
  func sequences() async throws {
    let scripted = try await ScriptedServer.start()
    let auth = scripted.auth
    try await auth.signIn(withCustomToken: "t")
    let users = Recorder<String?>()
    let task = Task {
      for await user in auth.authStateChanges { users.record(user?.uid) }
    }
    #expect(await users.next() == "u1")
    try auth.signOut()
    #expect(await users.next() == .some(nil))
    task.cancel()
    await task.value
    for await user in auth.idTokenChanges {
      #expect(user == nil)
      break
    }
    #expect(auth.state.withLock { $0.listeners.isEmpty })
    await scripted.stop()
  }

  @Test("completion handlers are called on the main queue, with a result or an error")
  func completions() async throws {
    let scripted = try await ScriptedServer.start()
    let outcomes = Recorder<String>()
    scripted.auth.signInAnonymously { result, error in
      dispatchPrecondition(condition: .onQueue(.main))
      outcomes.record("\(result?.user.uid ?? "-") \(error == nil)")
    }
    #expect(await outcomes.next() == "u1 true")
    scripted.setResponse("accounts:signInWithPassword", .error("INVALID_PASSWORD"))
    scripted.auth.signIn(withEmail: "a@b.c", password: "x") { result, error in
      dispatchPrecondition(condition: .onQueue(.main))
      outcomes.record(
        "\(result == nil) \(AuthErrorCode(rawValue: (error as NSError?)?.code ?? 0) == .wrongPassword)")
    }
    #expect(await outcomes.next() == "true true")
    await scripted.stop()
  }

  @Test("a user stays signed in after a restart, even if the app does not call Auth")
  func restart() async throws {
    let scripted = try await ScriptedServer.start()
    let user = try await scripted.auth.signInAnonymously().user
    let record = user.record
    let name = scripted.app.name
    _ = await scripted.app.delete()

    let app = try makeApp(name: name)
    // `Auth.auth(app:)` has not been called. The token source starts FirebaseAuth.
    #expect(app.authTokens.userID == "u1")
    let auth = Auth.auth(app: app)
    #expect(Auth.auth(app: app) === auth)
    let restored = try #require(auth.currentUser)
    #expect(restored.record == record && restored.isAnonymous && restored !== user)
    #expect(try await app.authTokens.token(forcingRefresh: false) == record.tokens.idToken)
    #expect(restored.metadata.creationDate == Date(timeIntervalSince1970: 1_700_000_000))
    try auth.signOut()
    _ = await app.delete()
    let last = try makeApp(name: name)
    #expect(Auth.auth(app: last).currentUser == nil)
    _ = await last.delete()
    await scripted.server.stop()
  }

  @Test("an app without an API key works as if FirebaseAuth were not linked")
  func noKey() async throws {
    let name = "nokey-\(UUID().uuidString)"
    FirebaseApp.configure(name: name, options: FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1"))
    let app = try #require(FirebaseApp.app(name: name))
    #expect(try await app.authTokens.token(forcingRefresh: false) == nil)
    _ = await app.delete()
  }

  @Test("a user who cannot be stored is not signed in")
  func unwritable() async throws {
    struct ReadOnlyStore: UserStore {
      func load() throws -> UserRecord? { nil }
      func save(_ record: UserRecord?) throws {
        throw UserStoreError.system(operation: "writing", code: EROFS)
      }
    }
    let scripted = try await ScriptedServer.start()
    let app = try makeApp()
    let auth = Auth(app: app, apiKey: "key", store: ReadOnlyStore(), clock: .system)
    auth.useEmulator(withHost: "127.0.0.1", port: scripted.server.port)
    #expect(await errorCode { try await auth.signInAnonymously() } == .keychainError)
    #expect(auth.currentUser == nil && app.authTokens.userID == nil)
    await scripted.stop()
  }

  @Test("the resolver in the error of a sign-in completes the sign-in with a second factor")
  func secondFactor() async throws {
    let scripted = try await ScriptedServer.start()
    let auth = scripted.auth
    scripted.setResponse(
      "accounts:signInWithPassword",
      .ok(
        #"{"localId":"u1","mfaPendingCredential":"pending","mfaInfo":[{"mfaEnrollmentId":"e1","displayName":"phone","phoneInfo":"+*******0100","enrolledAt":"2023-11-14T22:13:20.123Z"},{"mfaEnrollmentId":"e2","totpInfo":{}}]}"#
      ))
    scripted.setResponse("accounts/mfaSignIn:start", .ok(#"{"phoneResponseInfo":{"sessionInfo":"s"}}"#))
    var resolver: MultiFactorResolver?
    do { try await auth.signIn(withEmail: "a@b.c", password: "secret") } catch {
      #expect(AuthErrorCode(of: error) == .secondFactorRequired)
      resolver = (error as NSError).userInfo[AuthErrorUserInfoMultiFactorResolverKey] as? MultiFactorResolver
    }
    let found = try #require(resolver)
    #expect(auth.currentUser == nil && found.hints.map(\.factorID) == ["phone", "totp"])
    let hint = try #require(found.hints.first as? PhoneMultiFactorInfo)
    #expect(hint.phoneNumber == "+*******0100")
    #expect(abs(hint.enrollmentDate.timeIntervalSince1970 - 1_700_000_000.123) < 0.01)
    let provider = PhoneAuthProvider.provider(auth: auth)
    let verification = try await provider.verifyPhoneNumber(with: hint, multiFactorSession: found.session)
    let credential = provider.credential(withVerificationID: verification, verificationCode: "123456")
    let result = try await found.resolveSignIn(with: PhoneMultiFactorGenerator.assertion(with: credential))
    #expect(auth.currentUser === result.user && result.user.uid == "u1")
    let last = try #require(scripted.server.requests.last { $0.operation == "accounts/mfaSignIn:finalize" })
    #expect(last.string("mfaPendingCredential") == "pending")
    #expect(
      last.json["phoneVerificationInfo"] as? [String: String] == ["sessionInfo": "s", "code": "123456"])
    await scripted.stop()
  }

  @Test("archived results have the same values after decoding, and an archive of another type gives nil")
  func archives() async throws {
    let scripted = try await ScriptedServer.start()
    scripted.setResponse(
      "accounts:signInWithIdp",
      .ok(
        #"{"localId":"u1","idToken":"\#(try makeToken())","refreshToken":"r","expiresIn":"3600","providerId":"google.com","oauthIdToken":"i","rawUserInfo":"{\"name\":\"Lea\"}","isNewUser":true,"screenName":"lea"}"#
      ))
    let result = try await scripted.auth.signIn(
      with: OAuthProvider.credential(providerID: .google, idToken: "i", rawNonce: "n"))
    let data = try NSKeyedArchiver.archivedData(withRootObject: result, requiringSecureCoding: true)
    let decoded = try #require(
      try NSKeyedUnarchiver.unarchivedObject(ofClass: AuthDataResult.self, from: data))
    #expect(decoded.user.uid == "u1" && decoded.user.record == result.user.record)
    let info = try #require(decoded.additionalUserInfo)
    #expect(info.isNewUser && info.username == "lea" && info.profile?["name"] as? String == "Lea")
    #expect(decoded.credential?.idToken == "i")
    await #expect(errorCode { _ = try await decoded.user.getIDToken() } == .nullUser)
    try await scripted.auth.updateCurrentUser(decoded.user)
    #expect(scripted.auth.currentUser === decoded.user)
    await scripted.stop()
  }
}
