// Tests the tokens of a connection: the state machine, and a client with token providers and a real server.

import FirebaseCore
import Foundation
import HearthServer
import JSON
import Locking
import NIOCore
import NIOPosix
import RealtimeModel
import RealtimeWire
import Testing

@testable import FirebaseDatabase

/// Provides the tokens of a list: the first token until a refresh is forced, then the next one.
private final class ListedTokens: TokenProvider {
  private let tokens: Guarded<[String]>
  let forced = Guarded(0)

  init(_ tokens: [String]) {
    self.tokens = Guarded(tokens)
  }

  func token(forcingRefresh: Bool, completion: @escaping @Sendable (Result<String?, any Error>) -> Void) {
    if forcingRefresh { forced.withLock { $0 += 1 } }
    let token = tokens.withLock { tokens in
      if forcingRefresh, tokens.count > 1 { tokens.removeFirst() }
      return tokens.first
    }
    completion(.success(token))
  }
}

/// A token provider whose requests the test answers.
private final class DelayedTokens: TokenProvider {
  typealias Completion = @Sendable (Result<String?, any Error>) -> Void
  let requests = Recorder<Completion>()

  func token(forcingRefresh: Bool, completion: @escaping Completion) { requests.record(completion) }
}

/// Records the bytes that a client sends.
private final class ByteRecorder: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  private let texts: Recorder<String>

  init(_ texts: Recorder<String>) {
    self.texts = texts
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    texts.record(String(buffer: unwrapInboundIn(data)))
  }
}

/// An unsigned token, which an emulator accepts.
private func token(of user: String) -> String {
  let payload = Base64.encode(Array(#"{"sub":"\#(user)"}"#.utf8), .urlSafe, padded: false)
  return "e30.\(payload)."
}

@Suite("Tokens", .timeLimit(.minutes(10)))
struct TokenTests {
  private struct NoNetwork: Error {}

  private func sent(_ actions: [ConnectionAction]) -> [String] {
    actions.compactMap { action in
      if case .send(let message) = action { return String(decoding: message.json(), as: UTF8.self) }
      return nil
    }
  }

  /// Returns a connection that has received its hello after it fetched tokens.
  private func connectionAfterHello(
    auth: String?, appCheck: String? = nil
  ) throws -> (connection: ServerConnection, generation: Int, sent: [String]) {
    var connection = ServerConnection(seed: 1, statsName: "s", usesTokens: true)
    connection.write(OutgoingWrite(id: 1, path: "w", change: .put(.leaf(.int(1)), hash: nil)))
    connection.connect()
    let generation = try fetch(&connection, auth: .success(auth), appCheck: appCheck).generation
    _ = connection.takeActions()
    let hello = ServerHello(timestamp: 5_000, host: "", sessionID: "s")
    connection.received(.control(.hello(hello)), on: generation, at: 100)
    let messages = sent(connection.takeActions())
    return (connection, generation, messages)
  }

  @discardableResult
  private func fetch(
    _ connection: inout ServerConnection, auth: Result<String?, any Error>, appCheck: String? = nil
  ) throws -> (generation: Int, forcesAuth: Bool) {
    for case .fetchTokens(let generation, let forcesAuth, _) in connection.takeActions() {
      connection.tokensFetched(generation, auth: auth, appCheck: appCheck, at: 0)
      return (generation, forcesAuth)
    }
    throw DeadlineExceeded(description: "no tokens were requested")
  }

  @Test("requests wait until the server has accepted the token")
  func authenticatesFirst() throws {
    var (connection, generation, sent) = try connectionAfterHello(auth: "a.b.c")
    #expect(sent == [#"{"t":"d","d":{"r":1,"a":"auth","b":{"cred":"a.b.c"}}}"#])
    #expect(!connection.isConnected)
    connection.received(.response(ServerResponse(1, .ok)), on: generation, at: 140)
    let actions = connection.takeActions()
    #expect(self.sent(actions).last == #"{"t":"d","d":{"r":3,"a":"p","b":{"p":"/w","d":1}}}"#)
    let times = actions.compactMap { if case .report(.connected(let time)) = $0 { time } else { nil } }
    #expect(times == [5_040], "the server's time at this moment")
  }

  @Test("credentials other than JSON Web Tokens are sent as gauth, after the App Check token")
  func actions() throws {
    let sent = try connectionAfterHello(auth: "owner", appCheck: "check").sent
    #expect(
      sent == [
        #"{"t":"d","d":{"r":1,"a":"appcheck","b":{"token":"check"}}}"#,
        #"{"t":"d","d":{"r":2,"a":"gauth","b":{"cred":"owner"}}}"#,
      ])
    #expect(try connectionAfterHello(auth: nil).sent.count == 2, "stats and the write")
  }

  @Test("a new token is sent on the open connection, and signing out sends unauth")
  func changes() throws {
    var (connection, _, _) = try connectionAfterHello(auth: nil)
    connection.authChanged("a.b.c")
    connection.authChanged("a.b.c")
    #expect(sent(connection.takeActions()) == [#"{"t":"d","d":{"r":3,"a":"auth","b":{"cred":"a.b.c"}}}"#])
    connection.authChanged(nil)
    #expect(sent(connection.takeActions()) == [#"{"t":"d","d":{"r":4,"a":"unauth","b":{}}}"#])
    connection.appCheckChanged("check")
    connection.appCheckChanged(nil)
    let actions = sent(connection.takeActions())
    #expect(actions.first == #"{"t":"d","d":{"r":5,"a":"appcheck","b":{"token":"check"}}}"#)
    #expect(actions.last?.contains("unappeck") == true)
  }

  @Test(
    "a rejected token closes the connection and forces a new token; after three rejections attempts are slow")
  func rejectedToken() throws {
    var (connection, generation, _) = try connectionAfterHello(auth: "a.b.c")
    var delays: [Int64] = []
    for attempt in 1...4 {
      let isPush = attempt == 2
      let error = RealtimeError(.expiredToken, "expired")
      let number = connection.tokens?.lastRequest ?? 0
      connection.received(
        isPush ? .push(.authRevoked(error)) : .response(ServerResponse(number, error)), on: generation, at: 0)
      let actions = connection.takeActions()
      #expect(actions.contains { if case .close = $0 { true } else { false } })
      #expect(!sent(actions).contains { $0.contains(#""a":"p""#) }, "no write is sent without the token")
      for case .retry(let retry, let delay) in actions {
        delays.append(delay)
        connection.retry(retry)
      }
      let fetched = try fetch(&connection, auth: .success("a.b.\(attempt)"))
      #expect(fetched.forcesAuth)
      generation = fetched.generation
      let hello = ServerHello(timestamp: 0, host: "", sessionID: "s")
      connection.received(.control(.hello(hello)), on: generation, at: 0)
    }
    #expect(delays[0] == 0 && delays[1] < 30_000 && delays[2] >= 30_000 && delays[3] >= 30_000)
    _ = connection.takeActions()
    connection.received(
      .response(ServerResponse(connection.tokens?.lastRequest ?? 0, .ok)), on: generation, at: 0)
    #expect(connection.isConnected && connection.tokens?.rejections == 0)
    #expect(sent(connection.takeActions()).contains { $0.contains(#""a":"p""#) })
  }

  @Test("a response to an earlier token is ignored")
  func earlierResponse() throws {
    var (connection, generation, _) = try connectionAfterHello(auth: "a.b.c")
    connection.authChanged("d.e.f")
    _ = connection.takeActions()
    connection.received(
      .response(ServerResponse(1, RealtimeError(.invalidToken, "old"))), on: generation, at: 0)
    #expect(!connection.hasActions && !connection.isConnected)
    connection.received(.response(ServerResponse(2, .ok)), on: generation, at: 0)
    #expect(connection.isConnected)
  }

  @Test(
    "a token that cannot be fetched delays the connection, and a revoked App Check token is fetched again")
  func failedFetch() throws {
    var connection = ServerConnection(seed: 1, statsName: "s", usesTokens: true)
    connection.connect()
    try fetch(&connection, auth: .failure(NoNetwork()))
    var actions = connection.takeActions()
    #expect(actions.contains { if case .retry = $0 { true } else { false } })
    #expect(!actions.contains { if case .open = $0 { true } else { false } })
    var (connectionWithAppCheck, generation, _) = try connectionAfterHello(auth: nil, appCheck: "old")
    connectionWithAppCheck.received(.push(.appCheckRevoked(.init(.expiredToken, "x"))), on: generation, at: 0)
    actions = connectionWithAppCheck.takeActions()
    #expect(actions.contains { if case .refreshAppCheck = $0 { true } else { false } })
    connectionWithAppCheck.appCheckChanged("new")
    #expect(
      sent(connectionWithAppCheck.takeActions()) == [
        #"{"t":"d","d":{"r":4,"a":"appcheck","b":{"token":"new"}}}"#
      ])
    #expect(connectionWithAppCheck.isConnected)
  }

  @Test("the request that opens the WebSocket contains the App Check token as a header")
  func appCheckHeader() async throws {
    let texts = Recorder<String>()
    let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(ByteRecorder(texts))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let endpoint = DatabaseEndpoint(
      host: "127.0.0.1", port: server.localAddress?.port, isSecure: false, namespace: "demo-check")
    let events = TransportEvents(received: { _ in }, closed: { _ in })
    for token in ["check-1", nil] {
      let transport = Transport.open(
        to: endpoint, host: nil, lastSession: nil, appCheck: token, tls: nil, events: events)
      let request = try await texts.next()
      #expect(request.hasPrefix("GET /.ws?v=5&ns=demo-check"))
      #expect(request.contains("X-Firebase-AppCheck: check-1\r\n") == (token != nil))
      transport.close()
    }
    try await server.close()
  }

  @Test("the server receives a client's token, a rejected token is refreshed, and signing out removes it")
  func client() async throws {
    let server = try await TestServer.start()
    let client = try server.clients(1)[0]
    let provider = ListedTokens(["garbage", token(of: "ann")])
    client.app.authTokenSource.register(provider, state: TokenState(userID: "ann", token: "garbage"))
    let states = client.database.reference(withPath: ".info/authenticated").recordValues()
    _ = try await within { try await client.ref.child("a").setValue(1) }
    _ = try await states.first { $0 == "false" }
    _ = try await states.first { $0 == "true" }
    #expect(provider.forced.withLock { $0 } == 1)
    client.app.authTokenSource.publish(.signedOut)
    _ = try await states.first { $0 == "false" }
    client.app.authTokenSource.publish(TokenState(userID: "bob", token: token(of: "bob")))
    _ = try await states.first { $0 == "true" }
    await server.stop([client])
  }

  @Test("a token that was fetched for one user is not sent after another user has signed in")
  func switchedUser() async throws {
    let server = try await TestServer.start()
    let client = try server.clients(1)[0]
    let provider = DelayedTokens()
    let source = client.app.authTokenSource
    let ann = TokenState(userID: "ann", token: token(of: "ann"))
    source.register(provider, state: ann)
    source.publish(ann)
    let states = client.database.reference(withPath: ".info/authenticated").recordValues()
    let first = try await provider.requests.next()
    source.publish(TokenState(userID: "bob", token: token(of: "bob")))
    first(.success(ann.token))
    let second = try await provider.requests.next()
    second(.success(token(of: "bob")))
    _ = try await states.first { $0 == "true" }
    let repository = client.ref.repository
    let sent = await withCheckedContinuation { continuation in
      repository.enqueue { continuation.resume(returning: $0.connection.tokens?.auth) }
    }
    #expect(sent == token(of: "bob"))
    await server.stop([client])
  }
}
