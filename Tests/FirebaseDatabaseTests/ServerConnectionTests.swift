// Tests the server connection's state machine without sockets and without a clock: the order of requests, and
// the state that survives a lost connection.

import FirebaseCore
import RealtimeModel
import RealtimeWire
import Testing

@testable import FirebaseDatabase

@Suite("Connection", .timeLimit(.minutes(10)))
struct ServerConnectionTests {
  private func makeConnection(_ prepare: (inout ServerConnection) -> Void = { _ in }) -> ServerConnection {
    var connection = ServerConnection(seed: 1, statsName: "sdk.test")
    prepare(&connection)
    connection.connect()
    return connection
  }

  private func hello(_ session: String = "s1") -> ServerMessage {
    .control(.hello(ServerHello(timestamp: 5_000, host: "h", sessionID: session)))
  }

  private func openedGeneration(_ actions: [ConnectionAction]) -> Int? {
    for case .open(let generation, _, _) in actions { return generation }
    return nil
  }

  private func sentMessages(_ actions: [ConnectionAction]) -> [String] {
    actions.compactMap { action in
      switch action {
      case .send(let message): String(decoding: message.json(), as: UTF8.self)
      case .sendListen(let listen, let number): "listen \(number) \(listen.path.absolute)"
      default: nil
      }
    }
  }

  private func put(_ id: Int, _ path: Path, hash: String? = nil) -> OutgoingWrite {
    OutgoingWrite(id: id, path: path, change: .put(.leaf(.int(1)), hash: hash))
  }

  @Test(
    "the client sends nothing before the hello, then stats, listens, writes, reads and onDisconnect writes")
  func restoreOrder() throws {
    var connection = makeConnection { connection in
      connection.perform(DisconnectOperation(id: 9, path: "d", change: .cancel))
      connection.get(8, at: "g", query: .default)
      connection.write(put(7, "w"))
      connection.listen(Listen(path: "l", query: .default, tag: nil))
    }
    let first = connection.takeActions()
    let generation = try #require(openedGeneration(first))
    #expect(sentMessages(first).isEmpty)
    connection.received(hello(), on: generation, at: 0)
    #expect(
      sentMessages(connection.takeActions()) == [
        #"{"t":"d","d":{"r":1,"a":"s","b":{"c":{"sdk.test":1}}}}"#, "listen 2 /l",
        #"{"t":"d","d":{"r":3,"a":"p","b":{"p":"/w","d":1}}}"#,
        #"{"t":"d","d":{"r":4,"a":"g","b":{"p":"/g","q":{}}}}"#,
        #"{"t":"d","d":{"r":5,"a":"oc","b":{"p":"/d","d":null}}}"#,
      ])
  }

  @Test("after a reconnection unanswered requests are sent again with new numbers, and answered ones are not")
  func resend() throws {
    var connection = makeConnection()
    let first = try #require(openedGeneration(connection.takeActions()))
    connection.received(hello(), on: first, at: 0)
    connection.write(put(1, "a"))
    connection.write(put(2, "b"))
    _ = connection.takeActions()
    connection.received(.response(ServerResponse(2, .ok)), on: first, at: 1)
    connection.transportClosed(first, at: 2)
    var actions = connection.takeActions()
    var acknowledged: [Int] = []
    for case .report(.writeAnswered(let id, nil)) in actions { acknowledged.append(id) }
    #expect(acknowledged == [1])
    for case .retry(let generation, let delay) in actions {
      #expect(delay == 0)
      connection.retry(generation)
    }
    actions = connection.takeActions()
    guard case .open(let second, let session, _)? = actions.first else {
      Issue.record("no new transport")
      return
    }
    #expect(session == "s1")
    connection.received(hello("s2"), on: first, at: 3)
    #expect(!connection.isConnected, "events of the old transport are ignored")
    connection.received(hello("s2"), on: second, at: 3)
    #expect(
      sentMessages(connection.takeActions()) == [#"{"t":"d","d":{"r":4,"a":"p","b":{"p":"/b","d":1}}}"#])
  }

  @Test("a transaction in flight fails when the connection is lost, and is not sent again")
  func transactionsAreNotResent() throws {
    var connection = makeConnection()
    let first = try #require(openedGeneration(connection.takeActions()))
    connection.received(hello(), on: first, at: 0)
    connection.write(put(1, "a", hash: ""))
    _ = connection.takeActions()
    connection.transportClosed(first, at: 1)
    var failed: [Int: String] = [:]
    for case .report(.writeAnswered(let id, let error)) in connection.takeActions() {
      failed[id] = error?.status.rawValue
    }
    #expect(failed == [1: "disconnect"])
  }

  @Test("a response to an earlier listen of the same query is ignored")
  func staleListenResponse() throws {
    var connection = makeConnection()
    let generation = try #require(openedGeneration(connection.takeActions()))
    connection.received(hello(), on: generation, at: 0)
    let listen = Listen(path: "l", query: .default, tag: nil)
    connection.listen(listen)
    connection.unlisten(listen)
    connection.listen(listen)
    _ = connection.takeActions()
    connection.received(.response(ServerResponse(2, .ok, .empty)), on: generation, at: 1)
    #expect(connection.takeActions().isEmpty)
    #expect(connection.hasUnansweredListens)
    connection.received(.response(ServerResponse(4, .ok, .empty)), on: generation, at: 1)
    #expect(!connection.hasUnansweredListens)
    #expect(connection.takeActions().count == 1)
  }

  @Test("back-off grows from zero to 30 s and resets after a healthy connection")
  func backoff() throws {
    var backoff = Backoff.database(seed: 1)
    #expect(backoff.next() == 0)
    var base = 1_000.0
    for _ in 0..<40 {
      let delay = backoff.next()
      #expect(delay >= 0.3 * base && delay <= base)
      base = min(base * 1.3, 30_000)
    }
    backoff.reset()
    #expect(backoff.next() == 0)

    var connection = makeConnection()
    var generation = try #require(openedGeneration(connection.takeActions()))
    var delays: [Int64] = []
    for lived in [Int64(1), 1, 1, 31_000, 1] {
      connection.received(hello(), on: generation, at: 0)
      connection.transportClosed(generation, at: lived)
      for case .retry(let retry, let delay) in connection.takeActions() {
        delays.append(delay)
        connection.retry(retry)
      }
      generation = try #require(openedGeneration(connection.takeActions()))
    }
    #expect(delays[0] == 0 && delays[3] == 0, "the first attempt after a healthy connection is immediate")
    #expect(delays[1] >= 300 && delays[2] >= 390 && delays[4] >= 300)
  }

  @Test(
    "when the app comes to the foreground or the network changes, a waiting client connects and resets its back-off"
  )
  func conditions() throws {
    var connection = makeConnection()
    for _ in 0..<20 {
      connection.transportClosed(try #require(openedGeneration(connection.takeActions())), at: 0)
      for case .retry(let retry, _) in connection.takeActions() { connection.retry(retry) }
    }
    connection.transportClosed(try #require(openedGeneration(connection.takeActions())), at: 0)
    _ = connection.takeActions()
    connection.conditionsChanged()
    let generation = try #require(openedGeneration(connection.takeActions()))
    connection.conditionsChanged()
    #expect(connection.takeActions().isEmpty, "an attempt in progress continues")
    connection.transportClosed(generation, at: 0)
    for case .retry(_, let delay) in connection.takeActions() { #expect(delay == 0) }
    connection.interrupt(.user, at: 0)
    connection.conditionsChanged()
    #expect(openedGeneration(connection.takeActions()) == nil, "a client that is offline stays offline")
  }

  @Test("the connection stays closed while any interrupt reason remains")
  func interrupts() throws {
    var connection = makeConnection()
    let generation = try #require(openedGeneration(connection.takeActions()))
    connection.received(hello(), on: generation, at: 0)
    _ = connection.takeActions()
    connection.interrupt(.user, at: 1)
    connection.received(.control(.shutdown("bye")), on: generation, at: 1)
    connection.interrupt(.shutdown, at: 1)
    var closes = 0
    for case .close in connection.takeActions() { closes += 1 }
    #expect(closes == 1)
    connection.resume(.user)
    #expect(connection.takeActions().isEmpty)
    connection.resume(.shutdown)
    #expect(openedGeneration(connection.takeActions()) != nil)
  }

  @Test(
    "after a shutdown message the client does not reconnect; after a reset it connects to the host in the message"
  )
  func shutdownAndReset() throws {
    var connection = makeConnection()
    let first = try #require(openedGeneration(connection.takeActions()))
    connection.received(hello(), on: first, at: 0)
    connection.received(.control(.reset(host: "other:1")), on: first, at: 1)
    for case .retry(let retry, let delay) in connection.takeActions() {
      #expect(delay == 0)
      connection.retry(retry)
    }
    guard case .open(let second, _, let host)? = connection.takeActions().first else {
      Issue.record("no new transport")
      return
    }
    #expect(host == "other:1")
    connection.received(hello(), on: second, at: 2)
    _ = connection.takeActions()
    connection.received(.control(.shutdown("disabled")), on: second, at: 3)
    for case .retry in connection.takeActions() { Issue.record("a shut down client must not reconnect") }
  }

  @Test("later connections use the host in the hello, until that host cannot be reached")
  func helloHost() throws {
    var connection = makeConnection()
    func host(_ actions: [ConnectionAction]) -> String? {
      for case .open(_, _, let host) in actions { return host ?? "default" }
      return nil
    }
    func next(_ actions: [ConnectionAction]) -> [ConnectionAction] {
      for case .retry(let generation, _) in actions { connection.retry(generation) }
      return connection.takeActions()
    }
    var actions = connection.takeActions()
    #expect(host(actions) == "default")
    for expected in ["h", "h"] {
      connection.received(hello(), on: try #require(openedGeneration(actions)), at: 0)
      connection.transportClosed(try #require(openedGeneration(actions)), at: 1)
      actions = next(connection.takeActions())
      #expect(host(actions) == expected)
    }
    connection.transportClosed(try #require(openedGeneration(actions)), at: 2)
    actions = next(connection.takeActions())
    #expect(host(actions) == "default", "the host could not be reached")
    let empty = ServerMessage.control(.hello(ServerHello(timestamp: 0, host: "", sessionID: "s")))
    connection.received(empty, on: try #require(openedGeneration(actions)), at: 3)
    connection.transportClosed(try #require(openedGeneration(actions)), at: 4)
    #expect(host(next(connection.takeActions())) == "default")
  }

  @Test("an error message of the server is reported, and the connection continues")
  func serverError() throws {
    var connection = makeConnection()
    let generation = try #require(openedGeneration(connection.takeActions()))
    connection.received(hello(), on: generation, at: 0)
    _ = connection.takeActions()
    connection.received(.control(.error("odd")), on: generation, at: 1)
    let notes = connection.takeActions().compactMap { action -> String? in
      if case .report(.logMessage(isError: true, let text)) = action { text } else { nil }
    }
    #expect(notes == ["Server error: odd"] && connection.isConnected)
  }

  /// Returns a connection whose listen at `/l` (request 2) sent the compound hash of a cached value.
  private func connectionWithHashedListen(_ node: Node) throws -> (
    connection: ServerConnection, generation: Int, listen: Listen
  ) {
    var connection = makeConnection()
    let generation = try #require(openedGeneration(connection.takeActions()))
    connection.received(hello(), on: generation, at: 0)
    let listen = Listen(path: "l", query: .default, tag: nil)
    connection.listen(listen)
    connection.recordHashedNode(node, of: listen, number: 2)
    _ = connection.takeActions()
    return (connection, generation, listen)
  }

  private func reportedValues(_ actions: [ConnectionAction]) -> [Node] {
    actions.compactMap { action in
      if case .report(.push(.data(let path, let node, nil))) = action, path == "l" { return node }
      return nil
    }
  }

  private let cachedValue = Node.object([("a", .leaf(.int(1))), ("b", .leaf(.int(2))), ("c", .leaf(.int(3)))])

  @Test("range merges replace parts of the hashed value, and the sync tree receives the complete value")
  func rangeMerge() throws {
    var (connection, generation, _) = try connectionWithHashedListen(cachedValue)
    let ranges = [
      RangeMergeFields(start: nil, end: "a", data: .empty),
      RangeMergeFields(start: "b", end: nil, data: .object([("d", .leaf(.int(4)))])),
    ]
    connection.received(.push(.rangeMerge(path: "l", ranges: ranges, tag: nil)), on: generation, at: 1)
    let merged = Node.object([("b", .leaf(.int(2))), ("d", .leaf(.int(4)))])
    #expect(reportedValues(connection.takeActions()) == [merged])
    // A second range merge applies to the result of the first one.
    let more = [RangeMergeFields(start: "a", end: "b", data: .empty)]
    connection.received(.push(.rangeMerge(path: "l", ranges: more, tag: nil)), on: generation, at: 1)
    #expect(reportedValues(connection.takeActions()) == [.object([("d", .leaf(.int(4)))])])
    connection.received(.response(ServerResponse(2, .ok, .empty)), on: generation, at: 1)
    _ = connection.takeActions()
    connection.received(.push(.rangeMerge(path: "l", ranges: more, tag: nil)), on: generation, at: 1)
    #expect(reportedValues(connection.takeActions()).isEmpty, "no listen accepts range merges any longer")
  }

  @Test("range merges for a cancelled listen do not affect its replacement")
  func staleRangeMerge() throws {
    var (connection, generation, listen) = try connectionWithHashedListen(cachedValue)
    connection.unlisten(listen)
    connection.listen(listen)
    let other = Node.object([("z", .leaf(.int(26)))])
    connection.recordHashedNode(other, of: listen, number: 4)
    _ = connection.takeActions()
    let first = [RangeMergeFields(start: nil, end: "a", data: .empty)]
    connection.received(.push(.rangeMerge(path: "l", ranges: first, tag: nil)), on: generation, at: 1)
    #expect(reportedValues(connection.takeActions()).isEmpty)
    connection.received(.response(ServerResponse(2, .ok, .empty)), on: generation, at: 1)
    let second = [RangeMergeFields(start: "z", end: nil, data: .object([("zz", .leaf(.int(27)))]))]
    connection.received(.push(.rangeMerge(path: "l", ranges: second, tag: nil)), on: generation, at: 1)
    #expect(
      reportedValues(connection.takeActions()) == [
        .object([("z", .leaf(.int(26))), ("zz", .leaf(.int(27)))])
      ])
  }
}
