// Tests token sources: the tokens that the products of one app share.

import FirebaseCore
import Locking
import Testing

/// A provider that gives the same result to every request, and records whether each request forces a refresh.
private final class FixedProvider: TokenProvider {
  private let result: Guarded<Result<String?, any Error>>
  let forcedRefreshes = Guarded<[Bool]>([])

  init(_ result: Result<String?, any Error>) {
    self.result = Guarded(result)
  }

  func token(forcingRefresh: Bool, completion: @escaping @Sendable (Result<String?, any Error>) -> Void) {
    forcedRefreshes.withLock { $0.append(forcingRefresh) }
    completion(result.withLock { $0 })
  }
}

private struct ProviderError: Error {}

@Suite("Token sources", .timeLimit(.minutes(1)))
struct TokenSourceTests {
  /// Collects the states that an observer receives.
  private func observe(_ source: TokenSource) -> (AsyncStream<TokenState>, TokenObservation) {
    let (stream, continuation) = AsyncStream<TokenState>.makeStream()
    return (stream, source.observe { continuation.yield($0) })
  }

  @Test("a source without a provider is signed out and has no token")
  func noProvider() async throws {
    let source = TokenSource()
    #expect(source.userID == nil && source.latest == .signedOut)
    #expect(try await source.token(forcingRefresh: true) == nil)
  }

  @Test("an observer receives the current state first, then each change once and in order")
  func order() async throws {
    let source = TokenSource()
    let provider = FixedProvider(.success("t"))
    let (states, observation) = observe(source)
    source.register(provider, state: TokenState(userID: "a", token: "1"))
    source.publish(TokenState(userID: "a", token: "1"))
    for number in 2...100 { source.publish(TokenState(userID: "a", token: "\(number)")) }
    source.unregister(provider)
    source.unregister(provider)
    source.publish(TokenState(userID: "b", token: "end"))

    var received: [TokenState] = []
    for await state in states {
      received.append(state)
      if state.userID == "b" { break }
    }
    #expect(received.first == .signedOut)
    #expect(received.dropFirst().prefix(100).map(\.token) == (1...100).map { "\($0)" })
    #expect(received.suffix(2).map(\.userID) == [nil, "b"] && received.count == 103)
    observation.cancel()
  }

  @Test("a cancelled observer receives no further states, and a later observer receives the latest state")
  func cancel() async throws {
    let source = TokenSource()
    let early = Guarded<[TokenState]>([])
    let (states, continuation) = AsyncStream<TokenState>.makeStream()
    let observation = source.observe { state in
      early.withLock { $0.append(state) }
      continuation.yield(state)
    }
    var iterator = states.makeAsyncIterator()
    #expect(await iterator.next() == .signedOut)
    observation.cancel()
    source.publish(TokenState(userID: "a", token: "1"))
    let (late, other) = observe(source)
    var lateIterator = late.makeAsyncIterator()
    #expect(await lateIterator.next() == TokenState(userID: "a", token: "1"))
    // Deliveries are serial, so the cancelled observer would have received the state before the later
    // observer.
    #expect(early.withLock { $0 } == [.signedOut])
    other.cancel()
  }

  @Test("publishing returns after the change was delivered, and an observer may publish")
  func publication() {
    let source = TokenSource()
    let received = Guarded<[String?]>([])
    let observation = source.observe { state in
      received.withLock { $0.append(state.token) }
      if state.token == "1" { source.publish(TokenState(userID: "a", token: "2")) }
    }
    source.publish(TokenState(userID: "a", token: "1"))
    #expect(received.withLock { $0.prefix(2) } == [nil, "1"])
    source.publish(TokenState(userID: "a", token: "3"))
    #expect(received.withLock { $0 } == [nil, "1", "2", "3"])
    observation.cancel()
  }

  @Test("a request gets the provider's token or its error, and passes whether to force a refresh")
  func requests() async throws {
    let source = TokenSource()
    let provider = FixedProvider(.success("t"))
    source.register(provider, state: .signedOut)
    #expect(try await source.token(forcingRefresh: false) == "t")
    #expect(try await source.token(forcingRefresh: true) == "t")
    #expect(provider.forcedRefreshes.withLock { $0 } == [false, true])
    let failing = FixedProvider(.failure(ProviderError()))
    source.register(failing, state: .signedOut)
    source.unregister(provider)
    await #expect(throws: ProviderError.self) { try await source.token(forcingRefresh: false) }
  }
}
