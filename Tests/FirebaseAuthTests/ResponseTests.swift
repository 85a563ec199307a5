// Tests responses that a Hearth server never sends: each one becomes an error with a code, and nothing traps.

import FirebaseCore
import Foundation
#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif
import HearthServer
import ServerFixture
import Testing

@testable import FirebaseAuth

@Suite("Responses", .timeLimit(.minutes(2))) struct ResponseTests {
  @Test("an unreachable server causes a network error")
  func unreachable() async throws {
    let server = try await CannedServer.start { _ in .ok("{}") }
    let port = server.port
    await server.stop()
    let auth = Auth.auth(app: try makeApp())
    auth.useEmulator(withHost: "127.0.0.1", port: port)
    #expect(await errorCode { try await auth.signInAnonymously() } == .networkError)
    #expect(auth.currentUser == nil)
  }

  @Test(
    "a response that cannot be parsed causes an internal error with its cause",
    arguments: [
      CannedResponse(body: "<html>"), CannedResponse(body: ""), CannedResponse(body: "[]"),
      CannedResponse(body: "{}"),
      CannedResponse(body: #"{"idToken":5}"#), CannedResponse(body: #"{"idToken":"","refreshToken":""}"#),
      CannedResponse(status: 404, body: "<html>not found</html>"), CannedResponse(status: 500, body: ""),
      CannedResponse(status: 400, body: #"{"error":"no object"}"#),
      CannedResponse(status: 302, headers: ["Location": "http://127.0.0.1:9/"], body: ""),
      .error("A_NEW_NAME : detail"),
    ])
  func unreadable(response: CannedResponse) async throws {
    let scripted = try await ScriptedServer.start()
    scripted.setResponse("accounts:signUp", response)
    do {
      try await scripted.auth.signInAnonymously()
      Issue.record("the sign-in succeeded")
    } catch {
      let error = error as NSError
      #expect(error.domain == AuthErrorDomain && error.code == AuthErrorCode.internalError.rawValue)
      let cause = try #require(error.userInfo[NSUnderlyingErrorKey] as? NSError)
      #expect(cause.domain == "FIRAuthInternalErrorDomain")
    }
    #expect(scripted.auth.currentUser == nil)
    await scripted.stop()
  }

  @Test("a response that exceeds the size limit ends the request")
  func tooLarge() async throws {
    let scripted = try await ScriptedServer.start()
    scripted.setResponse(
      "accounts:signUp",
      .ok(#"{"x":""# + String(repeating: "x", count: HTTPClient.maximumResponseBytes) + #""}"#))
    #expect(await errorCode { try await scripted.auth.signInAnonymously() } == .networkError)
    await scripted.stop()
  }

  @Test("a request that is cancelled at any time ends")
  func cancelled() async throws {
    let server = try await CannedServer.start { _ in .ok("{}") }
    let url = try #require(URL(string: "http://127.0.0.1:\(server.port)/"))
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<200 {
        group.addTask {
          let request = Task { try await HTTPClient.shared.send(URLRequest(url: url)) }
          for _ in 0..<(number % 20) { await Task.yield() }
          request.cancel()
          do {
            #expect(try await request.value.status == 200)
          } catch {
            #expect((error as? URLError)?.code == .cancelled)
          }
        }
      }
    }
    await server.stop()
  }

  @Test("a server whose certificate the system does not trust causes a network error")
  func untrusted() async throws {
    let authority = try CertificateAuthority()
    defer { authority.remove() }
    let files = try authority.issue()
    var configuration = HearthConfiguration.forTesting()
    configuration.auth = .init(port: 0)
    configuration.tls = .init(certificate: files.certificate, key: files.key)
    let server = HearthServer(configuration)
    try await server.start()
    let auth = Auth.auth(app: try makeApp())
    let port = try #require(server.authPort)
    auth.useServer(at: try #require(URL(string: "https://localhost:\(port)/")))
    #expect(await errorCode { try await auth.signInAnonymously() } == .networkError)
    await server.stop()
  }

  @Test("a failed account lookup fails the sign-in, and the previous user stays signed in")
  func failedLookup() async throws {
    let scripted = try await ScriptedServer.start()
    try await scripted.auth.signIn(withCustomToken: "t")
    let user = try #require(scripted.auth.currentUser)
    scripted.setResponse("accounts:lookup", .ok("{}"))
    #expect(await errorCode { try await scripted.auth.signIn(withCustomToken: "t") } == .internalError)
    #expect(scripted.auth.currentUser === user)
    await scripted.stop()
  }

  @Test("a request contains the API key, the app, the language, the tenant and the App Check token")
  func request() async throws {
    let scripted = try await ScriptedServer.start()
    scripted.auth.languageCode = "fr"
    scripted.auth.tenantID = "t-1"
    let provider = FixedAppCheck()
    scripted.app.appCheckTokens.register(provider, state: .signedOut)
    try await scripted.auth.signIn(withEmail: "a@b.c", password: "secret")
    let request = try #require(scripted.server.requests.first)
    #expect(request.uri == "/identitytoolkit.googleapis.com/v1/accounts:signInWithPassword?key=fake-api-key")
    #expect(
      request.headers["x-firebase-gmpid"] == "1:1:ios:ab" && request.headers["x-firebase-locale"] == "fr")
    #expect(request.headers["x-firebase-appcheck"] == "app-check")
    #expect(request.headers["content-type"] == "application/json")
    #expect(request.string("tenantId") == "t-1" && request.string("email") == "a@b.c")
    #expect(scripted.auth.currentUser?.tenantID == "t-1")
    await scripted.stop()
  }

  private final class FixedAppCheck: TokenProvider {
    func token(forcingRefresh: Bool, completion: @escaping @Sendable (Result<String?, any Error>) -> Void) {
      completion(.success("app-check"))
    }
  }

  @Test(
    "signing in to an account with other sign-in methods gives an error with its address and a credential")
  func needsConfirmation() async throws {
    let scripted = try await ScriptedServer.start()
    scripted.setResponse(
      "accounts:signInWithIdp",
      .ok(
        #"{"needConfirmation":true,"email":"a@b.c","providerId":"google.com","oauthIdToken":"i","verifiedProvider":["password"]}"#
      ))
    let credential = GoogleAuthProvider.credential(withIDToken: "i", accessToken: "a+b&c")
    do {
      try await scripted.auth.signIn(with: credential)
      Issue.record("the sign-in succeeded")
    } catch {
      let error = error as NSError
      #expect(error.code == AuthErrorCode.accountExistsWithDifferentCredential.rawValue)
      #expect(error.userInfo[AuthErrorUserInfoEmailKey] as? String == "a@b.c")
      let updated = error.userInfo[AuthErrorUserInfoUpdatedCredentialKey] as? OAuthCredential
      #expect(updated?.idToken == "i" && updated?.provider == "google.com")
    }
    let form = try #require(scripted.server.requests.first?.string("postBody"))
    #expect(form == "providerId=google.com&id_token=i&access_token=a%2Bb%26c")
    await scripted.stop()
  }

  @Test("an error inside a successful response is thrown, with a credential to sign in instead")
  func errorWithinSuccess() async throws {
    let scripted = try await ScriptedServer.start()
    try await scripted.auth.signInAnonymously()
    let user = try #require(scripted.auth.currentUser)
    scripted.setResponse(
      "accounts:signInWithIdp",
      .ok(
        #"{"errorMessage":"FEDERATED_USER_ID_ALREADY_LINKED","providerId":"github.com","oauthAccessToken":"x","email":"a@b.c"}"#
      ))
    do {
      try await user.link(with: GitHubAuthProvider.credential(withToken: "x"))
      Issue.record("the link succeeded")
    } catch {
      let error = error as NSError
      #expect(error.code == AuthErrorCode.credentialAlreadyInUse.rawValue)
      #expect(
        (error.userInfo[AuthErrorUserInfoUpdatedCredentialKey] as? OAuthCredential)?.accessToken == "x")
    }
    #expect(scripted.auth.currentUser === user)
    await scripted.stop()
  }

  @Test("linking another account's phone number gives an error with a credential of the temporary proof")
  func temporaryProof() async throws {
    let scripted = try await ScriptedServer.start()
    try await scripted.auth.signInAnonymously()
    let user = try #require(scripted.auth.currentUser)
    scripted.setResponse(
      "accounts:signInWithPhoneNumber", .ok(#"{"temporaryProof":"proof","phoneNumber":"+15550100"}"#))
    let provider = PhoneAuthProvider.provider(auth: scripted.auth)
    let credential = provider.credential(withVerificationID: "v", verificationCode: "123456")
    var updated: PhoneAuthCredential?
    do { try await user.link(with: credential) } catch {
      #expect(AuthErrorCode(of: error) == .credentialAlreadyInUse)
      updated = (error as NSError).userInfo[AuthErrorUserInfoUpdatedCredentialKey] as? PhoneAuthCredential
    }
    scripted.restore("accounts:signInWithPhoneNumber")
    try await scripted.auth.signIn(with: try #require(updated))
    let last = try #require(
      scripted.server.requests.last { $0.operation == "accounts:signInWithPhoneNumber" })
    #expect(last.string("temporaryProof") == "proof" && last.string("phoneNumber") == "+15550100")
    #expect(last.string("operation") == "SIGN_UP_OR_IN" && last.json["idToken"] == nil)
    await scripted.stop()
  }
}
