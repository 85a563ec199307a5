// Tests tokens: every call carries them, a change of the user restarts the streams, and rejected tokens are
// renewed.

import FirebaseCore
import FirebaseFirestore
import Foundation
import Testing

/// Provides numbered tokens of one user.
private final class FakeProvider: TokenProvider {
  private let state: Locked<(user: String?, number: Int)>
  private let isJWT: Bool

  /// - Parameter isJWT: whether the tokens are unsigned tokens of the emulator.
  init(user: String?, isJWT: Bool = false) {
    state = Locked((user, 1))
    self.isJWT = isJWT
  }

  func setUser(_ user: String?) { state.change { $0 = (user, 1) } }

  func token(forcingRefresh: Bool, completion: @escaping @Sendable (Result<String?, any Error>) -> Void) {
    let token = state.change { state in
      if forcingRefresh { state.number += 1 }
      return state.user.map { "\($0)-\(state.number)" }
    }
    let sent = isJWT ? state.change { $0.user.map(FakeProvider.unsigned) } : token
    // Completes asynchronously, like the fetch of a token.
    DispatchQueue.global().async { completion(.success(sent)) }
  }
}

extension FakeProvider {
  fileprivate static func unsigned(_ user: String) -> String {
    let parts = ["{\"alg\":\"none\",\"typ\":\"JWT\"}", "{\"sub\":\"\(user)\",\"user_id\":\"\(user)\"}"].map {
      json in
      Data(json.utf8).base64EncodedString().replacingOccurrences(of: "=", with: "")
        .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
    }
    return parts.joined(separator: ".") + "."
  }
}

/// Delays the responses to token requests until the test releases them. The same happens while a user is
/// restored or a token is refreshed.
private final class DelayedProvider: TokenProvider {
  typealias Completion = @Sendable (Result<String?, any Error>) -> Void

  let requests = Recorder<Bool>()
  private let state = Locked<(waiting: [Completion], token: String?)>(([], nil))

  func token(forcingRefresh: Bool, completion: @escaping Completion) {
    let token = state.change { state in
      if state.token == nil { state.waiting.append(completion) }
      return state.token
    }
    if let token { completion(.success(token)) }
    requests.add(forcingRefresh)
  }

  func release(_ token: String) {
    let waiting = state.change { state in
      defer { state = ([], token) }
      return state.waiting
    }
    for completion in waiting { completion(.success(token)) }
  }
}

@Suite("Tokens", .timeLimit(.minutes(2))) struct TokenTests {
  private static let (unauthenticated, unavailable) = (16, 14)

  private func client(_ server: HeaderServer, _ auth: FakeProvider, appCheck: FakeProvider? = nil)
    -> Firestore
  {
    let client = TestClient.make(port: server.port)
    client.app.authTokens.register(auth, state: TokenState(userID: "ann", token: nil))
    if let appCheck { client.app.appCheckTokens.register(appCheck, state: .signedOut) }
    return client
  }

  @Test("every stream and call carries the user's token and the App Check token")
  func headers() async throws {
    let server = try HeaderServer {
      $0.method == "Listen" || $0.method == "Write" ? nil : TokenTests.unavailable
    }
    let client = client(server, FakeProvider(user: "ann"), appCheck: FakeProvider(user: "app"))
    let listener = client.collection("c").addSnapshotListener { _, _ in }
    put(client.document("c/a"), ["n": 1])
    _ = try? await deadline { try await client.collection("c").count.getAggregation(source: .server) }
    for method in ["Listen", "Write", "RunAggregationQuery"] {
      let call = try await server.calls.first { $0.method == method }
      #expect(call.authorization == "Bearer ann-1" && call.appCheck == "app-1", "\(method)")
    }
    listener.remove()
    try await client.terminate()
    server.stop()
  }

  @Test("streams and calls wait for the user's first token, and are not sent without it")
  func waiting() async throws {
    let server = try HeaderServer {
      $0.method == "Listen" || $0.method == "Write" ? nil : TokenTests.unavailable
    }
    let provider = DelayedProvider()
    let client = TestClient.make(port: server.port)
    client.app.authTokens.register(provider, state: TokenState(userID: "ann", token: nil))
    let listener = client.collection("c").addSnapshotListener { _, _ in }
    put(client.document("c/a"), ["n": 1])
    async let count = try? deadline { try await client.collection("c").count.getAggregation(source: .server) }
    // The third request has arrived: the requests come from two streams and one call.
    _ = try await provider.requests.first(from: 2) { _ in true }
    #expect(server.calls.all.isEmpty)
    provider.release("ann-1")
    for method in ["Listen", "Write", "RunAggregationQuery"] {
      let call = try await server.calls.first { $0.method == method }
      #expect(call.authorization == "Bearer ann-1", "\(method)")
    }
    _ = await count
    #expect(server.calls.all.allSatisfy { $0.authorization == "Bearer ann-1" })
    listener.remove()
    try await client.terminate()
    server.stop()
  }

  @Test("a change of the user restarts the streams with the new token and shows the new user's writes")
  func userChange() async throws {
    let server = try HeaderServer { _ in nil }
    let auth = FakeProvider(user: "ann")
    let client = client(server, auth)
    let shown = Recorder<[String]>()
    let listener = client.collection("c").addSnapshotListener { snapshot, _ in
      if let snapshot { shown.add(snapshot.documents.map(\.documentID)) }
    }
    put(client.document("c/ann"), ["n": 1])
    _ = try await shown.first { $0 == ["ann"] }
    for user in ["bob", nil, "ann"] as [String?] {
      let (events, calls) = (shown.all.count, server.calls.all.count)
      auth.setUser(user)
      client.app.authTokens.publish(TokenState(userID: user, token: nil))
      _ = try await shown.first(from: events) { $0 == (user == "ann" ? ["ann"] : []) || user == nil }
      _ = try await server.calls.first(from: calls) {
        $0.method == "Listen" && $0.authorization == user.map { "Bearer \($0)-1" }
      }
      if user == "ann" { break }
      // Queues a write of this user. It is neither shown nor sent after the next change of the user.
      put(client.document("c/\(user ?? "nobody")"), ["n": 1])
      _ = try await shown.first(from: events) { $0 == [user ?? "nobody"] }
    }
    listener.remove()
    try await client.terminate()
    server.stop()
  }

  @Test("tokens that the server rejects are renewed, for streams and for calls")
  func renewal() async throws {
    let server = try HeaderServer { call in
      call.authorization == "Bearer ann-1"
        ? TokenTests.unauthenticated : call.method == "Listen" ? nil : TokenTests.unavailable
    }
    let client = client(server, FakeProvider(user: "ann"))
    _ = try? await deadline { try await client.collection("c").count.getAggregation(source: .server) }
    #expect(
      server.calls.all.map(\.authorization).prefix(2) == ["Bearer ann-1", "Bearer ann-2"])
    try await client.terminate()
    let other = self.client(server, FakeProvider(user: "ann"))
    let start = server.calls.all.count
    let listener = other.collection("c").addSnapshotListener { _, _ in }
    let renewed = try await server.calls.first(from: start) { $0.authorization != "Bearer ann-1" }
    #expect(renewed.method == "Listen" && renewed.authorization == "Bearer ann-2")
    listener.remove()
    try await other.terminate()
    server.stop()
  }

  @Test("the writes of a user who has signed out stay on disk and are sent after the user's next sign-in")
  func queueAfterRestart() async throws {
    try await withServer { _, port in
      let client = TestClient.make(port: port)
      let auth = FakeProvider(user: "ann", isJWT: true)
      client.app.authTokens.register(auth, state: TokenState(userID: "ann", token: nil))
      try await client.disableNetwork()
      put(client.document("c/ann"), ["n": 1])
      #expect(try await client.document("c/ann").getDocument(source: .cache).exists)
      try await client.terminate()
      // A new instance without a signed-in user: the write is neither shown nor sent.
      auth.setUser(nil)
      client.app.authTokens.publish(.signedOut)
      let second = TestClient.reopen(client)
      try await deadline { try await second.waitForPendingWrites() }
      #expect(try await !deadline { try await second.document("c/ann").getDocument(source: .server) }.exists)
      auth.setUser("ann")
      client.app.authTokens.publish(TokenState(userID: "ann", token: nil))
      let shown = Recorder<Bool>()
      let listener = second.document("c/ann").addSnapshotListener(includeMetadataChanges: true) {
        snapshot, _ in
        if let snapshot { shown.add(snapshot.exists && !snapshot.metadata.hasPendingWrites) }
      }
      _ = try await shown.first { $0 }
      listener.remove()
      try await second.terminate()
    }
  }
}
