// Tests ID tokens: when they are refreshed, which errors sign the user out, and what other products receive.

import FirebaseCore
import Foundation
import Locking
import Testing

@testable import FirebaseAuth

@Suite("Token refresh", .timeLimit(.minutes(2))) struct AuthTokenTests {
  @Test("a token is refreshed when five minutes remain, and not before")
  func fiveMinutes() async throws {
    let clock = ManualClock()
    let scripted = try await ScriptedServer.start(clock: clock)
    let user = try await scripted.auth.signIn(withCustomToken: "t").user
    let first = try await user.getIDToken()
    clock.advance(by: 3299)
    #expect(try await user.getIDToken() == first)
    #expect(scripted.requestCount(of: "token") == 0)
    clock.advance(by: 1)
    let second = try await user.getIDToken()
    #expect(second != first && scripted.requestCount(of: "token") == 1)
    #expect(try await user.getIDToken() == second)
    #expect(try await user.getIDToken(forcingRefresh: true) != second)
    #expect(scripted.requestCount(of: "token") == 2)
    let request = try #require(scripted.server.requests.last { $0.operation == "token" })
    #expect(request.uri.hasPrefix("/securetoken.googleapis.com/v1/token?"))
    #expect(request.string("grant_type") == "refresh_token" && request.string("refresh_token") == "r1")
    await scripted.stop()
  }

  @Test(
    "an error that makes the tokens permanently invalid signs the user out; other errors do not",
    arguments: [
      ("USER_DISABLED", AuthErrorCode.userDisabled, true), ("USER_NOT_FOUND", .userNotFound, true),
      ("TOKEN_EXPIRED", .userTokenExpired, true), ("INVALID_REFRESH_TOKEN", .invalidUserToken, true),
      ("TOO_MANY_ATTEMPTS_TRY_LATER", .tooManyRequests, false), ("A_NEW_NAME", .internalError, false),
    ])
  func signOut(name: String, expected: AuthErrorCode, isSignedOut: Bool) async throws {
    let scripted = try await ScriptedServer.start()
    let user = try await scripted.auth.signIn(withCustomToken: "t").user
    scripted.setResponse("token", .error(name))
    #expect(await errorCode { _ = try await user.getIDToken(forcingRefresh: true) } == expected)
    #expect((scripted.auth.currentUser == nil) == isSignedOut)
    let stored = try userStore(for: scripted.app).load()
    #expect((stored == nil) == isSignedOut)
    await scripted.stop()
  }

  @Test("a rejected ID token signs the user out")
  func rejected() async throws {
    let scripted = try await ScriptedServer.start()
    let user = try await scripted.auth.signIn(withCustomToken: "t").user
    scripted.setResponse("accounts:lookup", .error("TOKEN_EXPIRED"))
    #expect(await errorCode { try await user.reload() } == .userTokenExpired)
    #expect(scripted.auth.currentUser == nil)
    await scripted.stop()
  }

  @Test("other products receive the sign-in, each new token and the sign-out")
  func source() async throws {
    let scripted = try await ScriptedServer.start()
    let states = Recorder<TokenState>()
    let observation = scripted.app.authTokens.observe { states.record($0) }
    #expect(await states.next() == .signedOut)
    #expect(try await scripted.app.authTokens.token(forcingRefresh: false) == nil)

    let user = try await scripted.auth.signIn(withCustomToken: "t").user
    let signedIn = try #require(await states.next())
    let token = try await user.getIDToken()
    #expect(signedIn == TokenState(userID: "u1", token: token))
    #expect(scripted.app.authTokens.userID == "u1" && scripted.auth.getUserID() == "u1")
    #expect(try await scripted.app.authTokens.token(forcingRefresh: false) == token)

    let fresh = try await scripted.app.authTokens.token(forcingRefresh: true)
    #expect(fresh != token)
    #expect(await states.next() == TokenState(userID: "u1", token: fresh))
    try scripted.auth.signOut()
    #expect(await states.next() == .signedOut)
    #expect(scripted.app.authTokens.userID == nil)
    observation.cancel()
    await scripted.stop()
  }

  @Test("a token that another product uses is refreshed before it expires, with retries")
  func automatic() async throws {
    let clock = ManualClock()
    let scripted = try await ScriptedServer.start(clock: clock)
    let states = Recorder<TokenState>()
    let observation = scripted.app.authTokenSource.observe { states.record($0) }
    #expect(await states.next() == .signedOut)
    try await scripted.auth.signIn(withCustomToken: "t")
    let first = try #require(await states.next())
    var delays = clock.delays.makeAsyncIterator()

    _ = try await scripted.app.authTokenSource.token(forcingRefresh: false)
    #expect(await delays.next() == 3300)
    scripted.setResponse("token", CannedResponse(status: 503, body: "unavailable"))
    clock.advance(by: 3300)
    #expect(await delays.next() == 60)
    clock.advance(by: 60)
    #expect(await delays.next() == 120)
    scripted.restore("token")
    clock.advance(by: 120)
    let second = try #require(await states.next())
    #expect(second.userID == "u1" && second.token != first.token)
    #expect(await delays.next() == 3300)
    try scripted.auth.signOut()
    observation.cancel()
    await scripted.stop()
  }

  @Test("tokens that are valid for less than five minutes are refreshed once a minute at most")
  func shortTokens() async throws {
    let clock = ManualClock()
    let scripted = try await ScriptedServer.start(clock: clock)
    scripted.setResponse("token") { _ in
      let token = (try? makeToken("u1", issued: Date(), claims: ["id": UUID().uuidString])) ?? ""
      return .ok(#"{"id_token":"\#(token)","refresh_token":"r1","expires_in":"10"}"#)
    }
    try await scripted.auth.signIn(withCustomToken: "t")
    var delays = clock.delays.makeAsyncIterator()
    _ = try await scripted.app.authTokenSource.token(forcingRefresh: false)
    #expect(await delays.next() == 3300)
    clock.advance(by: 3300)
    #expect(await delays.next() == 60)
    try scripted.auth.signOut()
    await scripted.stop()
  }
}
