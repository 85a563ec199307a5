// Tests the credentials of calls: a call's token belongs to the user whose writes the client sends, and
// errors contain no tokens.

import FirebaseCore
import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

/// A token provider that completes requests when the test calls `complete`.
private final class ManualProvider: TokenProvider {
  private let waiting = Locked<[@Sendable (Result<String?, any Error>) -> Void]>([])

  func token(forcingRefresh: Bool, completion: @escaping @Sendable (Result<String?, any Error>) -> Void) {
    waiting.change { $0.append(completion) }
  }

  func complete(_ result: Result<String?, any Error>) {
    let all = waiting.change { waiting in
      defer { waiting = [] }
      return waiting
    }
    for completion in all { completion(result) }
  }
}

@Suite("Call credentials", .timeLimit(.minutes(1))) struct CallCredentialsTests {
  private typealias Outcome = Result<[(String, String)], FirestoreError>

  private let provider = ManualProvider()
  private let source = TokenSource()
  private let outcomes = Locked<[Outcome]>([])

  private func credentials() -> CallCredentials {
    source.register(provider, state: TokenState(userID: "ann", token: nil))
    let credentials = CallCredentials(auth: source)
    credentials.headers { outcome in outcomes.change { $0.append(outcome) } }
    return credentials
  }

  @Test("a token that arrives after a switch to another user's queue fails the call")
  func switchDuringFetch() throws {
    let credentials = credentials()
    source.publish(TokenState(userID: "bob", token: nil))
    credentials.user = "bob"
    provider.complete(.success("ann-1"))
    guard case .failure(let error)? = outcomes.change({ $0 }).first else {
      Issue.record("the call got the token of the previous user")
      return
    }
    #expect(error.code == .unavailable)
  }

  @Test("a token that arrives before the client has switched to the new user's queue fails the call")
  func switchAfterFetch() throws {
    let credentials = credentials()
    source.publish(TokenState(userID: "bob", token: nil))
    provider.complete(.success("bob-1"))
    guard case .failure(let error)? = outcomes.change({ $0 }).first else {
      Issue.record("the call got the token of the next user")
      return
    }
    #expect(error.code == .unavailable && credentials.user == "ann")
  }

  @Test("the error of a failed refresh contains its description but not its details")
  func redactedError() throws {
    let credentials = credentials()
    provider.complete(
      .failure(
        NSError(
          domain: "d", code: 5,
          userInfo: [NSLocalizedDescriptionKey: "The refresh failed.", "request": "refresh_token=secret"])))
    guard case .failure(let error)? = outcomes.change({ $0 }).first else {
      Issue.record("the call got headers")
      return
    }
    #expect(error.code == .unknown && error.message.contains("The refresh failed."))
    #expect(!error.message.contains("secret") && credentials.user == "ann")
  }
}
