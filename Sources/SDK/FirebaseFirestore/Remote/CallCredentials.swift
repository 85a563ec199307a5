// The credentials of calls: tokens that identify the user and the app.
//
// Invariant: a call carries the token of the user whose writes the client sends. While another user signs in, calls fail
// until the client has switched to the new user's queue.

import FirebaseCore
import Foundation
import FirestoreModel
import Locking

/// Provides the headers with the tokens of an app.
final class CallCredentials: Sendable {
  private struct State {
    var user: UserID = nil
    /// Whether the server rejected the last tokens, so that the next call requests new ones.
    var isRejected = false
  }

  private let auth: TokenSource
  private let appCheck: TokenSource
  private let state: Guarded<State>

  init(auth: TokenSource = TokenSource(), appCheck: TokenSource = TokenSource()) {
    self.auth = auth
    self.appCheck = appCheck
    state = Guarded(State(user: auth.userID))
  }

  /// The user whose writes the client sends.
  var user: UserID {
    get { state.withLock { $0.user } }
    set { state.withLock { $0.user = newValue } }
  }

  /// The user who is signed in now.
  var signedInUser: UserID { auth.userID }

  /// Observes sign-ins and sign-outs. The observer receives the current user first.
  func observeUser(_ observer: @escaping @Sendable (UserID) -> Void) -> TokenObservation {
    auth.observe { observer($0.userID) }
  }

  /// Called when the server has rejected the tokens. The next call requests new tokens.
  func reject() { state.withLock { $0.isRejected = true } }

  /// Fetches the headers of a call; may be called on any thread. It fails with UNKNOWN if the user's token
  /// cannot be fetched, and with UNAVAILABLE while the user changes. If no App Check token is available, the
  /// call has none, and the server decides whether to accept it.
  func headers(_ completion: @escaping @Sendable (Result<[(String, String)], FirestoreError>) -> Void) {
    let (user, isForced) = state.withLock { state in
      defer { state.isRejected = false }
      return (state.user, state.isRejected)
    }
    auth.token(forcingRefresh: isForced) { [self] result in
      let token: String?
      switch result {
      case .success(let found): token = found
      case .failure(let error):
        completion(
          .failure(
            FirestoreError(.unknown, "The user's token cannot be fetched: \(error.localizedDescription)")))
        return
      }
      guard auth.userID == user, self.user == user else {
        completion(.failure(.unavailable("The user changed.")))
        return
      }
      appCheck.token(forcingRefresh: isForced) { result in
        var headers: [(String, String)] = []
        if let token { headers.append(("authorization", "Bearer \(token)")) }
        if case .success(let appCheckToken?) = result {
          headers.append(("x-firebase-appcheck", appCheckToken))
        }
        completion(.success(headers))
      }
    }
  }
}
