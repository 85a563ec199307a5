// One random program under random rules, and its model: complete trees, and the naive evaluator (a simple second
// implementation of rules).
//
// Every written text is a unique marker. After each step all sessions receive their pending messages. A marker that a
// session receives must lie at, above or below a location that the session may read in that state.

import Access
import Foundation
import JSON
import NaiveRealtimeRules
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import RealtimeEngine

/// A program and its model.
struct RealtimeRulesProgram {
  /// A location that a client reads, once or until it is revoked.
  struct Reading {
    var path: [String]
    var query = NaiveQuery()
    var tag: Int?
  }

  /// The state of the database.
  struct State {
    var tree = PlainTree()
    var rules: NaiveRealtimeRuleset
  }

  struct Counts {
    var allowed = 0
    var denied = 0
    var revoked = 0
    var shown = 0

    mutating func add(_ other: Counts) {
      allowed += other.allowed
      denied += other.denied
      revoked += other.revoked
      shown += other.shown
    }
  }

  struct Session {
    var client: RulesClient
    var listens: [Reading] = []
  }

  struct Stream {
    let client: RawClient
    let reading: Reading
    let user: Int
    /// The markers that the stream may show.
    var visible: Set<Int>
  }

  private struct Marker {
    let path: [String]
    let author: Int
  }

  /// A written value: JSON for the server, and the same value for the model.
  struct Change {
    let path: [String]
    let value: JSONValue
  }

  let seed: UInt64
  let server: RealtimeTestServer
  let database: RealtimeDatabase
  var random: RandomRealtimeRules
  /// `auth` of each user; the first is nobody.
  let users: [JSONValue]
  var state: State
  /// The state before the current step.
  var stateBefore: State
  var sessions: [Session] = []
  var streams: [Stream] = []
  var counts = Counts()
  private var markers: [Marker] = []
  private var steps = 0
  private var rulesText = ""

  private var context: String { "seed \(seed), step \(steps)" }

  init(seed: UInt64, _ server: RealtimeTestServer) async throws {
    self.seed = seed
    self.server = server
    database = try await server.engine.database("demo")
    random = RandomRealtimeRules(seed: seed, readsTime: false)
    var users = [JSONValue.null]
    while users.count < 3 {
      let auth = random.auth()
      if !auth.isNull { users.append(auth) }
    }
    self.users = users
    state = State(rules: try NaiveRealtimeRuleset(.null))
    stateBefore = state
    try await replaceRules()
    for user in users.indices { sessions.append(try await open(user)) }
  }

  private func open(_ user: Int) async throws -> Session {
    let client = try await RulesClient(
      server, token: token(user), isSocket: (user + Int(seed)) % 3 != 0)
    return Session(client: client)
  }

  func token(_ user: Int) -> String? { RuleCase.token(users[user]["token"]) }

  // MARK: Verdicts

  func mayRead(_ reading: Reading, _ auth: JSONValue, in state: State) -> Bool {
    state.rules.allowsRead(
      reading.path.units, reading.query, NaiveRealtimeRuleset.Caller(auth: auth, now: 0), state.tree)
  }

  /// Returns the tree after some changes, and whether a user may make them.
  func predictWrite(_ changes: [Change], _ auth: JSONValue) -> (tree: PlainTree, isAllowed: Bool) {
    var tree = state.tree
    for change in changes { tree.set(change.path.units[...], to: PlainTree(change.value)) }
    let isAllowed = state.rules.allowsWrite(
      changes.map(\.path.units), NaiveRealtimeRuleset.Caller(auth: auth, now: 0), from: state.tree, to: tree)
    return (tree, isAllowed)
  }

  /// Compares a verdict of the server with the expected one, and counts it.
  mutating func expect(_ isAllowed: Bool, _ expected: Bool, _ request: String) {
    #expect(isAllowed == expected, "\(context): \(request)\n\(rulesText)")
    if expected { counts.allowed += 1 } else { counts.denied += 1 }
  }

  /// Moves the model to the state after a write, and records which streams may show the write's markers.
  mutating func commit(_ tree: PlainTree, markersFrom first: Int) {
    state.tree = tree
    for index in streams.indices
    where mayRead(streams[index].reading, users[streams[index].user], in: state) {
      streams[index].visible.formUnion(first..<markers.count)
    }
  }

  var markerCount: Int { markers.count }

  // MARK: Values

  /// A random value whose texts are new markers.
  mutating func value(at path: [String], by author: Int) -> JSONValue {
    guard random.below(5) > 0 else { return .null }
    return marked(random.value(depth: path.count < 2 ? 2 : 1), path, author)
  }

  private mutating func marked(_ json: JSONValue, _ path: [String], _ author: Int) -> JSONValue {
    switch json {
    case .object(var object):
      for member in object.members where member.key != ".priority" {
        let below = member.key == ".value" ? path : path + [member.key]
        object[member.key] = marked(member.value, below, author)
      }
      return .object(object)
    case .string where random.below(3) > 0:
      markers.append(Marker(path: path, author: author))
      return .string("m\(markers.count - 1)m")
    default: return json
    }
  }

  // MARK: Steps

  mutating func step() async throws {
    steps += 1
    stateBefore = state
    switch random.below(18) {
    case 0: try await replaceRules()
    case 1, 2, 3: try await listen()
    case 4: try await unlisten()
    case 5, 6: try await get()
    case 7: try await update()
    case 8: try await transact()
    case 9: try await disconnect()
    case 10, 11, 12: try await readREST()
    case 13, 14: try await writeREST()
    case 15 where streams.count < 6: try await openStream()
    default: try await set()
    }
    try await receiveAll()
  }

  mutating func replaceRules() async throws {
    var file = random.file()
    // Half of the files let all users write and many of them read, so that there is data to show and to hide.
    if random.below(2) == 0, var rules = file["rules"]?.object {
      let conditions = ["auth != null", "data.exists()", "root.child('a').exists()", "auth.uid == 'u1'"]
      let condition = JSONValue.string(conditions[random.below(conditions.count)])
      rules[".write"] = .string("auth != null")
      for member in rules.members where !member.key.hasPrefix(".") {
        guard random.below(2) == 0, var child = member.value.object else { continue }
        child[".read"] = condition
        rules[member.key] = .object(child)
      }
      if rules["$w0"] == nil { rules["$any"] = .object([".read": condition]) }
      file = .object(["rules": .object(rules)])
    }
    rulesText = String(decoding: file.json(), as: UTF8.self)
    try await database.setRules(try RulesFile(file.json()), as: .administrator)
    state.rules = try NaiveRealtimeRuleset(file["rules"] ?? .null)
  }

  /// Delivers the pending messages of every session, and checks them.
  private mutating func receiveAll() async throws {
    for index in sessions.indices {
      _ = try await request(index, "g", ["p": .string("/none"), "q": .object([:])])
    }
  }

  /// Sends a request of a session, checks all that the session receives, and returns the status.
  ///
  /// - Parameter reading: the location whose value the response may show.
  @discardableResult
  mutating func request(
    _ index: Int, _ action: String, _ body: JSONObject, showing reading: Reading? = nil
  ) async throws -> String {
    let (received, status) = try await sessions[index].client.exchange(action, body)
    for message in received {
      check(message, session: index, reading)
      if message.contains(#""a":"c""#) { end(message, session: index) }
    }
    return status
  }

  /// Checks that a listen that the server ended is denied now or was denied before the step, and removes it.
  private mutating func end(_ message: String, session index: Int) {
    let body = (try? JSONValue(json: message))?["b"]
    let found = sessions[index].listens.firstIndex {
      $0.path.joined(separator: "/") == body?["p"]?.string && ($0.tag != nil) == (body?["q"] != nil)
    }
    guard let found else {
      Issue.record("\(context): an unknown listen ended: \(message)")
      return
    }
    let listen = sessions[index].listens.remove(at: found)
    counts.revoked += 1
    let wasAllowed = [stateBefore, state].allSatisfy { mayRead(listen, users[index], in: $0) }
    #expect(!wasAllowed, "\(context): a listen ended without a reason: \(message)\n\(rulesText)")
  }

  // MARK: Checks

  private mutating func check(_ text: String, session index: Int, _ reading: Reading?) {
    for number in markerNumbers(in: text) where markers[number].author != index {
      counts.shown += 1
      let readings = sessions[index].listens + (reading.map { [$0] } ?? [])
      let isVisible = readings.contains { reading in
        reading.path.isRelated(to: markers[number].path) && mayRead(reading, users[index], in: state)
      }
      #expect(
        isVisible, "\(context): '\(users[index])' is shown /\(markers[number].path) by \(text)\n\(rulesText)")
    }
  }

  /// Checks that the response to a request of a user without a session shows only a location.
  mutating func check(_ text: String, showing reading: Reading?, _ auth: JSONValue, author: Int) {
    for number in markerNumbers(in: text) where markers[number].author != author {
      counts.shown += 1
      let isVisible = reading.map { reading in
        reading.path.isRelated(to: markers[number].path) && mayRead(reading, auth, in: state)
      }
      #expect(
        isVisible ?? false, "\(context): \(auth) is shown /\(markers[number].path) by \(text)\n\(rulesText)")
    }
  }

  private func markerNumbers(in text: String) -> [Int] {
    text.split(separator: "\"").compactMap { part in
      guard part.hasPrefix("m"), part.hasSuffix("m"), part.count > 2 else { return nil }
      return Int(part.dropFirst().dropLast()).flatMap { $0 < markers.count ? $0 : nil }
    }
  }

  /// Opens a session of a user again.
  mutating func reopen(_ index: Int) async throws { sessions[index] = try await open(index) }

  /// Ends the program: compares the trees, ends all denied listens, and checks the data of all event streams.
  mutating func finish() async throws {
    stateBefore = state
    #expect(try await storedTree() == state.tree, "\(context)")
    func denied() -> Int {
      sessions.indices.reduce(0) { count, index in
        count + sessions[index].listens.count { !mayRead($0, users[index], in: state) }
      }
    }
    for _ in 0..<200 where denied() > 0 { try await receiveAll() }
    #expect(denied() == 0, "\(context): a denied listen is still open")
    try await database.setRules(try RulesFile(Array(#"{"rules":{}}"#.utf8)), as: .administrator)
    for stream in streams {
      let text = String(decoding: await stream.client.readToEnd(), as: UTF8.self)
      #expect(text.contains("event: cancel\ndata: null\n\n"), "\(context)")
      for number in markerNumbers(in: text) where markers[number].author != stream.user {
        counts.shown += 1
        #expect(
          stream.visible.contains(number) && stream.reading.path.isRelated(to: markers[number].path),
          "\(context): the stream of /\(stream.reading.path) shows /\(markers[number].path)")
      }
    }
    for session in sessions { await session.client.close() }
  }

  /// The stored tree as plain dictionaries.
  func storedTree() async throws -> PlainTree {
    var tree = PlainTree()
    var priorities: [(path: [Units], value: PlainTree)] = []
    try await database.get("/", as: .administrator).forEachLeaf { path, node in
      let keys = path.keys.map { Units($0.text.utf16) }
      let value = PlainTree(try JSONValue(json: node.json(.export)))
      // The priority of an object is visited before its children.
      if path.isPriority { priorities.append((keys, value)) } else { tree.set(keys[...], to: value) }
    }
    for (path, value) in priorities { tree.set(path[...], to: value) }
    return tree
  }
}

extension [String] {
  /// The path in the form that the naive evaluator expects.
  var units: [Units] { map { Units($0.utf16) } }

  /// Whether one of two paths contains the other.
  func isRelated(to other: [String]) -> Bool { zip(units, other.units).allSatisfy { $0 == $1 } }
}
