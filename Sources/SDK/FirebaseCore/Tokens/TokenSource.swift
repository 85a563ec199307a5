// A token source for the products of one app: the signed-in user, the token to send, and every change of
// both.
//
// Each app has its sources from the start, with or without a provider. Therefore a product may observe a
// source before FirebaseAuth is used. It receives a later sign-in as a change.
//
// Invariant: each observer receives the current state first, and then every change, in order and never
// concurrently. `publish(_:)` returns after the delivery, so that an app's write after a sign-in belongs to
// the new user.

import Dispatch
import Locking

/// The user and the token at one moment.
package struct TokenState: Equatable, Sendable {
  /// The user's ID; nil if no user is signed in. Always nil for App Check.
  package var userID: String?
  /// The token. It may have expired. To get a valid token, call `TokenSource.token(forcingRefresh:)`.
  package var token: String?

  /// The state without a user and a token.
  package static let signedOut = TokenState(userID: nil, token: nil)

  package init(userID: String?, token: String?) {
    self.userID = userID
    self.token = token
  }
}

/// The source of one type of tokens for the products of one app.
///
/// ```swift
/// let observation = app.authTokens.observe { state in
///   // The user or the token changed: send the new token, or end the connection's authentication.
/// }
/// let token = try await app.authTokens.token(forcingRefresh: false)
/// ```
///
/// Safe to use from any thread.
package final class TokenSource: Sendable {
  package typealias Observer = @Sendable (TokenState) -> Void

  private struct State {
    var provider: (any TokenProvider)?
    var latest = TokenState.signedOut
    var observers: [Int: Observer] = [:]
    var nextObserver = 0
  }

  private let state = Guarded(State())
  private let queue = DispatchQueue(label: "com.google.firebase.tokens")
  private static let queueOwner = DispatchSpecificKey<ObjectIdentifier>()

  package init() {
    queue.setSpecific(key: Self.queueOwner, value: ObjectIdentifier(self))
  }

  // MARK: For products that send tokens

  /// The ID of the signed-in user; nil if no user is signed in.
  package var userID: String? { state.withLock { $0.latest.userID } }

  /// The latest state.
  package var latest: TokenState { state.withLock { $0.latest } }

  /// Gets the token to send.
  ///
  /// - Parameters:
  ///   - forcingRefresh: whether to request a new token, for instance after the server rejected the current one.
  ///   - completion: receives the token, nil without a signed-in user or without a provider, or the
  ///     provider's error.
  package func token(
    forcingRefresh: Bool, completion: @escaping @Sendable (Result<String?, any Error>) -> Void
  ) {
    guard let provider = state.withLock({ $0.provider }) else { return completion(.success(nil)) }
    provider.token(forcingRefresh: forcingRefresh, completion: completion)
  }

  /// Gets the token to send.
  ///
  /// - Parameter forcingRefresh: whether to request a new token, for instance after the server rejected the current one.
  /// - Returns: the token; nil without a signed-in user or without a provider.
  /// - Throws: the provider's error, such as a network error of the refresh.
  package func token(forcingRefresh: Bool) async throws -> String? {
    try await withCheckedThrowingContinuation { continuation in
      token(forcingRefresh: forcingRefresh) { continuation.resume(with: $0) }
    }
  }

  /// Adds an observer. It receives the current state soon after, and then every change.
  ///
  /// A sign-in or sign-out waits until its observers return. An observer must not block, and must not wait
  /// for a token.
  ///
  /// - Returns: the observation, which ends when it is cancelled or released.
  package func observe(_ observer: @escaping Observer) -> TokenObservation {
    let number = state.withLock { state in
      let number = state.nextObserver
      state.nextObserver += 1
      state.observers[number] = observer
      let latest = state.latest
      // Enqueued under the lock, so that no change is delivered before the first state.
      queue.async { [weak self] in self?.deliver(latest, to: number) }
      return number
    }
    return TokenObservation { [weak self] in self?.remove(number) }
  }

  private func deliver(_ latest: TokenState, to number: Int) {
    state.withLock { $0.observers[number] }?(latest)
  }

  private func remove(_ number: Int) {
    // The observer is released outside the lock, because releasing its captures may run other code.
    _ = state.withLock { $0.observers.removeValue(forKey: number) }
  }

  // MARK: For providers

  /// Registers the provider of this source, with its first state.
  package func register(_ provider: any TokenProvider, state first: TokenState) {
    state.withLock { $0.provider = provider }
    enqueue(first)
  }

  /// Removes a provider, for instance when its app is deleted. Observers receive a signed-out state.
  package func unregister(_ provider: any TokenProvider) {
    let isRemoved = state.withLock { state in
      guard state.provider === provider else { return false }
      state.provider = nil
      return true
    }
    if isRemoved { enqueue(.signedOut) }
  }

  /// Delivers a state to the observers, unless it equals the latest state. Returns after the observers have
  /// returned.
  package func publish(_ new: TokenState) {
    enqueue(new)
    // If an observer publishes, it already runs on the queue. Its change is delivered after the observer
    // returns.
    if DispatchQueue.getSpecific(key: Self.queueOwner) != ObjectIdentifier(self) { queue.sync {} }
  }

  /// Delivers a state to the observers asynchronously, unless it equals the latest state.
  private func enqueue(_ new: TokenState) {
    state.withLock { state in
      guard state.latest != new else { return }
      state.latest = new
      for number in state.observers.keys.sorted() {
        queue.async { [weak self] in self?.deliver(new, to: number) }
      }
    }
  }
}
