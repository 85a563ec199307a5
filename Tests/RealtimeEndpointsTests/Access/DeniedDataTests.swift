// Tests that no response shows denied data. Random programs of clients on all transports run under random policies,
// which are replaced while listens are open. Every value in the database is unique, and no message that a client
// receives contains a value that is secret to it.
//
// `make replay N=1000 SEED=7` runs proportionally more programs.

import Access
import Foundation
import Locking
import Ports
import RandomModels
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import RealtimeEndpoints
@testable import RealtimeEngine

@Suite("Denied data on every transport", .timeLimit(.minutes(10)))
struct DeniedDataTests {
  private static let programCount = number("HEARTH_REPLAY_PROGRAMS").map { max(1, $0 / 4) } ?? 6
  private static let firstSeed = number("HEARTH_REPLAY_SEED") ?? 0

  private static func number(_ name: String) -> Int? {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
  }

  @Test(
    "No answer, push or event shows a value that is secret to its client",
    arguments: firstSeed..<(firstSeed + programCount))
  func program(seed: Int) async throws {
    let users = ["", "u1", "u2"]
    try await RealtimeTestServer.run(authentication: .verifying(ExpiringTokens(now: SystemTime.milliseconds)))
    {
      server in
      var program = try await DeniedDataProgram(seed: UInt64(seed), server, users: users)
      for _ in 0..<300 { try await program.step() }
      try await program.finish()
      #expect(program.decisionCount > 100, "seed \(seed)")
      #expect(program.deniedCount > 5 && program.shownCount > 20, "seed \(seed)")
    }
  }
}

/// A program and its model.
struct DeniedDataProgram {
  /// A value that was written: where, by whom, and under which policy.
  private struct Marker {
    let path: Path
    let author: Int
    var policy: SecretsPolicy
  }

  /// A client over one transport.
  private enum Transport {
    case socket(RawSocket)
    case longPolling(LongPollClient)
  }

  private struct Session {
    let user: String
    var transport: Transport
    var request = 0
    var listens: [(path: Path, tag: Int?)] = []
  }

  private struct Stream {
    let user: String
    let client: RawClient
    /// The policy under which the first value was read, and the number of values written before.
    let policy: SecretsPolicy
    let markerCount: Int
    let author: Int
  }

  private static let locations: [Path] = ["a", "b", "c", "a/x", "a/y", "b/x", "c/z", "a/x/k"]

  private let seed: UInt64
  private let server: RealtimeTestServer
  private let database: RealtimeDatabase
  private let users: [String]
  private var random: SeededGenerator
  private var policy: SecretsPolicy
  private var policyCount = 0
  private let decisions = Guarded(0)
  private var sessions: [Session] = []
  private var streams: [Stream] = []
  private var markers: [Marker] = []
  private var model = Node.empty
  private var steps = 0
  /// The number of denied requests, and the number of values that clients have received from other clients.
  private(set) var deniedCount = 0
  private(set) var shownCount = 0

  var decisionCount: Int { decisions.withLock { $0 } }
  private var context: String { "seed \(seed), step \(steps)" }

  init(seed: UInt64, _ server: RealtimeTestServer, users: [String]) async throws {
    self.seed = seed
    self.server = server
    self.users = users
    database = try await server.engine.database("demo")
    random = SeededGenerator(seed: seed)
    policy = SecretsPolicy(0, users: users, locations: Self.locations, &random, decisions)
    database.policies.publish(policy)
    for (number, user) in users.enumerated() {
      sessions.append(try await Self.open(server, user, isSocket: (number + Int(seed)) % 3 != 0))
    }
  }

  private static func open(_ server: RealtimeTestServer, _ user: String, isSocket: Bool) async throws
    -> Session
  {
    var session = Session(
      user: user,
      transport: isSocket
        ? .socket(try await RawSocket.open(server)) : .longPolling(try await LongPollClient(server)))
    if !user.isEmpty { _ = try await exchange(&session, #""a":"auth","b":{"cred":"\#(user)"}"#) }
    return session
  }

  /// Sends a request, and returns all that the client receives up to its response, and the status of the response.
  private static func exchange(
    _ session: inout Session, _ request: String
  ) async throws -> (received: [String], status: String) {
    session.request += 1
    let start = #"{"r":\#(session.request),"#
    let message = start + request + "}"
    var received: [String] = []
    switch session.transport {
    case .socket(let socket):
      try await socket.send(message)
      while true {
        let next = try await socket.next()
        received.append(next)
        if next.hasPrefix(start) { break }
      }
    case .longPolling(var client):
      var segment = client.segments(of: LongPollTests.data(message)).joined()
      while !received.contains(where: { $0.contains(start) }) {
        for case .batch(_, let messages) in try await client.poll(segment) { received += messages }
        segment = ""
      }
      session.transport = .longPolling(client)
    }
    let response = received.first { $0.contains(start) } ?? ""
    let status = response.components(separatedBy: #""s":""#).dropFirst().first?.prefix { $0 != "\"" }
    return (received, String(status ?? ""))
  }

  // MARK: Steps

  mutating func step() async throws {
    steps += 1
    switch random.below(16) {
    case 0: try await replacePolicy()
    case 1, 2: try await listen()
    case 3: try await unlisten()
    case 4, 5: try await set()
    case 6: try await update()
    case 7: try await transact()
    case 8: try await get()
    case 9: try await disconnect()
    case 10, 11, 12: try await requestREST()
    case 13 where streams.count < 8: try await openStream()
    default: try await set()
    }
    try await receiveAll()
  }

  /// Delivers the pending messages of every session, and checks them.
  private mutating func receiveAll() async throws {
    for index in sessions.indices { _ = try await request(index, #""a":"g","b":{"p":"/none","q":{}}"#) }
  }

  @discardableResult
  private mutating func request(_ index: Int, _ request: String) async throws -> String {
    let (received, status) = try await Self.exchange(&sessions[index], request)
    for message in received {
      check(message, user: sessions[index].user, author: index)
      if message.contains(#""a":"c""#) { removeListen(message, index) }
    }
    if status == "permission_denied" { deniedCount += 1 }
    return status
  }

  /// Removes a listen that the server has ended.
  private mutating func removeListen(_ message: String, _ index: Int) {
    sessions[index].listens.removeAll { listen in
      message.contains(#""p":"\#(listen.path)""#) && (listen.tag != nil) == message.contains(#""q":"#)
    }
  }

  private mutating func replacePolicy() async throws {
    policyCount += 1
    policy = SecretsPolicy(policyCount, users: users, locations: Self.locations, &random, decisions)
    database.policies.publish(policy)
  }

  private mutating func path() -> Path {
    random.below(8) == 0 ? .root : Self.locations[random.below(Self.locations.count)]
  }

  /// A new value at a path, with a unique marker for each leaf.
  private mutating func value(at path: Path, author: Int) -> (json: String, node: Node) {
    func marker(_ path: Path) -> String {
      markers.append(Marker(path: path, author: author, policy: policy))
      return "m\(markers.count - 1)m"
    }
    if random.below(6) == 0 { return ("null", .empty) }
    if random.below(3) > 0 || path.count > 2 {
      let text = marker(path)
      return ("\"\(text)\"", .leaf(.string(text)))
    }
    let (x, k) = (marker(path.child("x")), marker(path.child("y").child("k")))
    return (
      #"{"x":"\#(x)","y":{"k":"\#(k)"}}"#,
      .object([("x", .leaf(.string(x))), ("y", .object([("k", .leaf(.string(k)))]))])
    )
  }

  private mutating func listen() async throws {
    let index = random.below(sessions.count)
    let path = path()
    guard !sessions[index].listens.contains(where: { $0.path == path }) else { return }
    let tag = random.below(3) == 0 ? steps : nil
    let query = tag.map { #","t":\#($0),"q":{"l":2,"vf":"r","i":".key"}"# } ?? ""
    let status = try await request(index, #""a":"q","b":{"p":"/\#(path)","h":""\#(query)}"#)
    if status == "ok" { sessions[index].listens.append((path, tag)) }
  }

  private mutating func unlisten() async throws {
    let index = random.below(sessions.count)
    guard let listen = sessions[index].listens.popLast() else { return }
    let query = listen.tag.map { #","t":\#($0),"q":{"l":2,"vf":"r","i":".key"}"# } ?? ""
    try await request(index, #""a":"n","b":{"p":"/\#(listen.path)"\#(query)}"#)
  }

  private mutating func set() async throws {
    let index = random.below(sessions.count)
    var path = path()
    if path.isRoot { path = "a" }
    let (json, node) = value(at: path, author: index)
    if try await request(index, #""a":"p","b":{"p":"/\#(path)","d":\#(json)}"#) == "ok" {
      model = model.setting(path, to: node)
    }
  }

  private mutating func update() async throws {
    let index = random.below(sessions.count)
    let (first, second) = (value(at: "a/x", author: index), value(at: "b", author: index))
    let body = #""a":"m","b":{"p":"/","d":{"a/x":\#(first.json),"b":\#(second.json)}}"#
    if try await request(index, body) == "ok" {
      model = model.merging([(Path("a/x"), first.node), (Path("b"), second.node)])
    }
  }

  private mutating func transact() async throws {
    let index = random.below(sessions.count)
    var path = path()
    if path.isRoot { path = "b" }
    let (json, node) = value(at: path, author: index)
    let isMatching = random.below(2) == 0
    let hash = isMatching ? model.descendant(path).hash : "wrong"
    let status = try await request(index, #""a":"p","b":{"p":"/\#(path)","d":\#(json),"h":"\#(hash)"}"#)
    if status == "ok" { model = model.setting(path, to: node) }
    #expect(
      status == "permission_denied" || status == (isMatching ? "ok" : "datastale"), "\(context): \(status)")
    let mayRead = policy.mayShow(path, to: sessions[index].user)
    #expect(mayRead || status == "permission_denied", "\(context): the answer shows whether the hash matches")
  }

  private mutating func get() async throws {
    let path = path()
    try await request(random.below(sessions.count), #""a":"g","b":{"p":"/\#(path)","q":{}}"#)
  }

  /// Registers an onDisconnect write, closes the session's socket, and opens another socket.
  private mutating func disconnect() async throws {
    let index = random.below(sessions.count)
    guard case .socket(let socket) = sessions[index].transport else { return }
    var path = path()
    if path.isRoot { path = "c" }
    let markerCount = markers.count
    let (json, node) = value(at: path, author: index)
    let isRegistered = try await request(index, #""a":"o","b":{"p":"/\#(path)","d":\#(json)}"#) == "ok"
    if random.below(3) == 0 { try await replacePolicy() }
    // The value is written under the policy that is in force when the session ends.
    for number in markerCount..<markers.count { markers[number].policy = policy }
    let user = sessions[index].user
    let session = socket.session
    await socket.close()
    let next = try await Self.open(server, user, isSocket: true)
    database.takeOver(session: session)
    _ = try await database.call(.barrier, as: .administrator)
    if isRegistered {
      let now = try await database.get("/", as: .administrator)
      let written = model.setting(path, to: node)
      #expect(now == model || now == written, "\(context)")
      model = now
    }
    sessions[index] = next
  }

  private mutating func requestREST() async throws {
    let index = random.below(users.count)
    let user = users[index]
    var path = path()
    if path.isRoot { path = "a" }
    let auth = user.isEmpty ? "" : "&auth=\(user)"
    let target = "/\(path).json?ns=demo\(auth)"
    let answer: RESTAnswer
    switch random.below(7) {
    case 0: answer = try await server.rest("GET", target)
    case 1: answer = try await server.rest("GET", target + "&shallow=true")
    case 2: answer = try await server.rest("GET", target + "&orderBy=%22$key%22&limitToLast=2")
    case 3: answer = try await server.rest("GET", target, headers: ["X-Firebase-ETag: true"])
    case 4:
      let (json, node) = value(at: path, author: index)
      answer = try await server.rest("PUT", target, body: json)
      if answer.status == 200 { model = model.setting(path, to: node) }
    case 5:
      let (json, node) = value(at: path, author: index)
      let isMatching = random.below(2) == 0
      let tag = isMatching ? model.descendant(path).etag : "wrong"
      answer = try await server.rest("PUT", target, body: json, headers: ["If-Match: \(tag)"])
      if answer.status == 200 { model = model.setting(path, to: node) }
      #expect(answer.status == 401 || answer.status == (isMatching ? 200 : 412), "\(context)")
      #expect(policy.mayShow(path, to: user) || answer.status == 401, "\(context)")
    default:
      let (json, node) = value(at: path.child("x"), author: index)
      answer = try await server.rest("PATCH", target, body: #"{"x":\#(json)}"#)
      if answer.status == 200 { model = model.setting(path.child("x"), to: node) }
    }
    if answer.status == 401 {
      deniedCount += 1
      #expect(answer.headers["etag"] == nil && answer.body.contains("Permission denied"), "\(context)")
    }
    check(answer.body, user: user, author: index)
  }

  private mutating func openStream() async throws {
    let index = random.below(users.count)
    let path = path()
    let client = try await RawClient.connect(server.port.port)
    let auth = users[index].isEmpty ? "" : "&auth=\(users[index])"
    try await client.send(
      "GET /\(path).json?ns=demo\(auth) HTTP/1.1\r\nHost: \(server.host)\r\nAccept: text/event-stream\r\n\r\n"
    )
    let head = try await client.read(through: "\r\n\r\n")
    if head.hasPrefix("HTTP/1.1 200 ") {
      streams.append(
        Stream(
          user: users[index], client: client, policy: policy, markerCount: markers.count, author: index))
    } else {
      deniedCount += 1
      await client.close()
    }
  }

  // MARK: Checks

  /// Checks that bytes show no value that is secret to a user under the current policy.
  private mutating func check(_ text: String, user: String, author: Int) {
    for number in numbers(in: text) where markers[number].author != author {
      shownCount += 1
      let path = markers[number].path
      #expect(policy.mayShow(path, to: user), "\(context): '\(user)' is shown /\(path) by \(text)")
    }
  }

  private func numbers(in text: String) -> [Int] {
    text.split(separator: "\"").compactMap { part in
      guard part.hasPrefix("m"), part.hasSuffix("m"), part.count > 2 else { return nil }
      return Int(part.dropFirst().dropLast()).flatMap { $0 < markers.count ? $0 : nil }
    }
  }

  /// Ends the program: denies everything, and checks the data of all event streams. The stream's user may read each
  /// value under the policy at the start of the stream or at the write of the value.
  mutating func finish() async throws {
    #expect(try await database.get("/", as: .administrator) == model, "\(context)")
    database.policies.publish(LockedPolicy())
    for stream in streams {
      let text = String(decoding: await stream.client.readToEnd(), as: UTF8.self)
      #expect(text.contains("event: cancel\ndata: null\n\n"), "\(context)")
      for number in numbers(in: text) where markers[number].author != stream.author {
        shownCount += 1
        let marker = markers[number]
        let shown = number < stream.markerCount ? stream.policy : marker.policy
        #expect(
          shown.mayShow(marker.path, to: stream.user), "\(context): '\(stream.user)' is shown /\(marker.path)"
        )
      }
    }
    for session in sessions { if case .socket(let socket) = session.transport { await socket.close() } }
  }
}
