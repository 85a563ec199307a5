// Sends tokens on the connection: the ID token of the signed-in user, and the App Check token.
//
// After the hello the connection sends nothing else until the server has accepted the ID token. Without an
// accepted token, requests would run without a user, and the server would reject writes permanently.
//
// Invariant: a rejected or revoked token is not sent again. The connection closes and opens with a new one.

import Foundation
import RealtimeModel
import RealtimeWire

/// The tokens of a connection.
struct ConnectionTokens {
  /// The ID token; nil if no user is signed in.
  var auth: String?
  /// The App Check token; nil without App Check.
  var appCheck: String?
  /// Whether the server rejected the ID token, so that a new one is needed.
  var mustRefreshAuth = false
  /// Whether the server rejected the App Check token.
  var mustRefreshAppCheck = false
  /// The number of the last authentication request. Responses to earlier ones are ignored.
  var lastRequest: Int64?
  /// The number of rejections since the last accepted token.
  var rejections = 0

  /// The number of consecutive rejections after which attempts are slow.
  static let maximumFastRejections = 3
  /// The delay in milliseconds before each slow attempt.
  static let slowDelay: Int64 = 30_000
}

extension ServerConnection {
  /// Receives the tokens that the action `fetchTokens` requested. If the provider of the ID token fails, the
  /// client does not connect: without the token the server would deny the user's data.
  mutating func tokensFetched(
    _ generation: Int, auth: Result<String?, any Error>, appCheck: String?, at now: Int64
  ) {
    guard generation == self.generation, state == .fetchingTokens else { return }
    switch auth {
    case .failure(let error):
      actions.append(
        .report(
          .logMessage(isError: true, "The ID token could not be fetched: \(error.localizedDescription)")))
      closed(at: now)
    case .success(let token):
      tokens?.auth = token
      tokens?.appCheck = appCheck
      tokens?.mustRefreshAuth = false
      tokens?.mustRefreshAppCheck = false
      open()
    }
  }

  /// The user signed in or out, or received a new token.
  mutating func authChanged(_ token: String?) {
    guard tokens != nil, tokens?.auth != token else { return }
    tokens?.auth = token
    switch state {
    case .connected, .authenticating: break
    default: return
    }
    if let token {
      authenticate(token)
    } else {
      tokens?.lastRequest = nil
      request(.unauthenticate, .other)
      actions.append(.report(.authenticated(false)))
      if case .authenticating(let since, let serverTime) = state { becomeConnected(since, serverTime) }
    }
  }

  /// The App Check token changed; nil if there is none any more.
  mutating func appCheckChanged(_ token: String?) {
    guard tokens != nil, tokens?.appCheck != token else { return }
    tokens?.appCheck = token
    tokens?.mustRefreshAppCheck = false
    switch state {
    case .connected, .authenticating: request(token.map { .appCheck(token: $0) } ?? .dropAppCheck, .other)
    default: break
    }
  }

  // MARK: Opening

  /// The server has sent its hello.
  mutating func helloReceived(serverTime: Int64, at now: Int64) {
    if let token = tokens?.appCheck { request(.appCheck(token: token), .other) }
    if let token = tokens?.auth {
      state = .authenticating(since: now, serverTime: serverTime)
      authenticate(token)
    } else {
      becomeConnected(now, serverTime)
    }
  }

  private mutating func becomeConnected(_ now: Int64, _ serverTime: Int64) {
    state = .connected(since: now)
    actions.append(.report(.connected(serverTime: serverTime)))
    restore()
  }

  private mutating func authenticate(_ token: String) {
    tokens?.lastRequest = nextNumber
    // Tokens that are not JSON Web Tokens, such as the emulator's `owner`, use a different action.
    let isOpaque = token.split(separator: ".", omittingEmptySubsequences: false).count != 3
    request(.authenticate(AuthenticateRequest(credential: token, isOpaque: isOpaque)), .authentication)
  }

  // MARK: Responses

  mutating func authenticationAnswered(_ number: Int64, _ error: RealtimeError?, at now: Int64) {
    guard tokens?.lastRequest == number else { return }
    if let error { return authenticationFailed(error, at: now) }
    tokens?.rejections = 0
    actions.append(.report(.authenticated(true)))
    if case .authenticating(let since, let serverTime) = state {
      becomeConnected(now, serverTime + now - since)
    }
  }

  /// The server rejected or revoked the ID token. The connection closes and opens again with a new token.
  mutating func authenticationFailed(_ error: RealtimeError, at now: Int64) {
    actions.append(.report(.logMessage(isError: true, "The server rejected the ID token: \(error)")))
    actions.append(.report(.authenticated(false)))
    guard tokens != nil else { return }
    tokens?.auth = nil
    tokens?.mustRefreshAuth = true
    tokens?.rejections += 1
    let isSlow = (tokens?.rejections ?? 0) >= ConnectionTokens.maximumFastRejections
    if isSlow {
      let text =
        "The tokens of this app are not valid for this database. Check the project of the app's options."
      actions.append(.report(.logMessage(isError: true, text)))
    }
    actions.append(.close)
    closed(at: now, delay: isSlow ? ConnectionTokens.slowDelay : 0)
  }

  /// The server rejected or revoked the App Check token. A new one is sent on the same connection.
  mutating func appCheckFailed(_ error: RealtimeError) {
    actions.append(.report(.logMessage(isError: true, "The server rejected the App Check token: \(error)")))
    guard tokens != nil else { return }
    tokens?.appCheck = nil
    tokens?.mustRefreshAppCheck = true
    actions.append(.refreshAppCheck)
  }
}
