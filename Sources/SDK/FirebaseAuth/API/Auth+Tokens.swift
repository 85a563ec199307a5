// Provides ID tokens to other products, and refreshes them before they expire.

public import FirebaseCore
import Foundation
import Locking

extension Auth: TokenProvider {
  /// The delays in seconds before repeated attempts of an automatic refresh. They are those of Google's SDK.
  static let retryDelays: [TimeInterval] = [60, 120, 240, 480, 960]

  /// Gets the ID token for another product. The first call starts the automatic refresh.
  package func token(
    forcingRefresh: Bool, completion: @escaping @Sendable (Result<String?, any Error>) -> Void
  ) {
    let isFirst = state.withLock { state in
      defer { state.refreshesAutomatically = true }
      return !state.refreshesAutomatically
    }
    if isFirst { scheduleAutomaticRefresh(after: 0) }
    Task {
      // Reads the user under the lock of changes, so that no product receives a user's token before the
      // notification of the sign-in.
      let user = changeLock.withLock { currentUser }
      guard let user else { return completion(.success(nil)) }
      do {
        completion(.success(try await user.token(forcingRefresh: forcingRefresh)))
      } catch {
        completion(.failure(authError(error)))
      }
    }
  }

  /// Gets the ID token of the signed-in user. Google's SDK provides it to other products through its interop
  /// protocol.
  ///
  /// - Parameters:
  ///   - forceRefresh: whether to request a new token even if the current one has not expired.
  ///   - callback: receives the token, nil if no user is signed in, or the error, on the main queue.
  public func getToken(
    forcingRefresh forceRefresh: Bool, completion callback: @escaping (String?, (any Error)?) -> Void
  ) {
    let handler = MainQueueHandler<(String?, (any Error)?)> { callback($0.0, $0.1) }
    token(forcingRefresh: forceRefresh) { result in
      DispatchQueue.main.async {
        switch result {
        case .success(let token): handler((token, nil))
        case .failure(let error): handler((nil, error))
        }
      }
    }
  }

  /// The ID of the signed-in user; nil if no user is signed in.
  public func getUserID() -> String? {
    currentUser?.uid
  }

  /// Schedules the refresh of the current token five minutes before it expires, so that the connections of
  /// the databases stay authenticated.
  ///
  /// - Parameter minimum: the minimum delay in seconds. It limits the rate of requests if tokens are valid
  ///   for less than five minutes.
  func scheduleAutomaticRefresh(after minimum: TimeInterval) {
    let previous = state.withLock { state in
      let previous = state.automaticRefresh
      state.automaticRefresh = nil
      if state.refreshesAutomatically, let user = state.user {
        state.automaticRefresh = Task { [weak self, weak user, clock] in
          var delay = user.map { $0.remainingValidity(at: clock.now()) } ?? 0
          delay = max(minimum, delay)
          var retries = Auth.retryDelays[...]
          while (try? await clock.sleep(delay)) != nil {
            guard let user, let self, self.currentUser === user else { return }
            let old = user.record.tokens.idToken
            if (try? await user.token(forcingRefresh: false)) == nil {
              delay = retries.popFirst() ?? Auth.retryDelays.last ?? 960
            } else if user.record.tokens.idToken == old {
              delay = max(1, user.remainingValidity(at: clock.now()))
            } else {
              // The change of the token has scheduled the next refresh.
              return
            }
          }
        }
      }
      return previous
    }
    previous?.cancel()
  }
}

extension User {
  /// The seconds until the token must be refreshed. Zero or less means that it must be refreshed now.
  fileprivate func remainingValidity(at now: Date) -> TimeInterval {
    record.tokens.expiration.map { $0.timeIntervalSince(now) - UserTokens.minimumValidity } ?? 0
  }
}

/// Starts the authentication of an app when another product first needs a token.
final class AuthComponent: TokenComponent {
  static func start(for app: FirebaseApp) {
    // Without an API key the app cannot sign in users.
    guard let apiKey = app.options.apiKey, !apiKey.isEmpty else { return }
    _ = Auth.auth(app: app)
  }
}
