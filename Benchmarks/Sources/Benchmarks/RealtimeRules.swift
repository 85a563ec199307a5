// The cost of Realtime Database rules: for writes, for rules that read over a large tree, and for open listens when the
// rules change.

import Access
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import RealtimeModel
import SecurityRules

/// Rules of a typical app: a role that is looked up, a location of the user, and the form of the values.
private let typicalRules = #"""
  {"rules": {
    "members": {"$user": {".write": "auth != null && auth.uid == $user"}},
    "bench": {"$client": {
      ".read": "auth != null",
      ".write": "auth != null && root.child('members').child(auth.uid).val() == true && $client.beginsWith('c')",
      "$key": {".validate": "newData.isString() && newData.val().length < 200 && newData.val().beginsWith('a text')"}
    }}
  }}
  """#

/// An unsigned token of the user `u1`, which an emulator accepts.
private let token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1MSIsInVzZXJfaWQiOiJ1MSJ9."

/// The namespace of the project's rules file.
private let productionNamespace = "bench-default-rtdb"

/// Durable writes per second by 100 connections of one user under typical rules, or under open ones.
func writesUnderRules(_ setting: Setting, isOpen: Bool, isEmulator: Bool = false) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let rules = isOpen ? openRules : typicalRules
  if isEmulator {
    let server = try setting.startHearth(["--data", directory], database: true)
    defer { server.stop() }
    try await put("/members/u1", "true", server, setting)
    try await put("/.settings/rules", rules, server, setting)
    return try await userWrites(server, setting)
  }
  let (server, authPort) = try setting.startProduction(directory, databaseRules: rules)
  defer { server.stop() }
  let user = try await signUp(authPort, setting)
  let status = try await HTTPTransfer.put(
    "/members/\(user.id).json?ns=\(productionNamespace)&auth=\(user.token)", port: server.port,
    on: setting.group,
    pieces: [ByteBuffer(string: "true")], isOwner: false)
  guard status == 200 else { throw BenchmarkFailure("the user cannot be stored: \(status)") }
  return try await userWrites(server, setting, namespace: productionNamespace, token: user.token)
}

/// Decisions per second on one thread under typical rules, each about the write of a text.
/// - Parameter areCounted: whether the evaluated expressions are counted for coverage, as an emulator does.
func realtimeDecisions(areCounted: Bool, _ setting: Setting) throws -> Double {
  let policy = RealtimeRulesPolicy(try RealtimeRuleset(Array(typicalRules.utf8)))
  let user = Principal.user("u1")
  let before = Node.empty.setting("members/u1", to: .leaf(.bool(true)))
  let paths = (0..<1_000).map { Path("bench/c\($0 % 100)/k\($0)") }
  let views = paths.map {
    WrittenTree(before: before, path: $0, value: .leaf(.string("a text of some thirty characters")))
  }
  var count = 0
  let start = ContinuousClock.now
  while (ContinuousClock.now - start).seconds < setting.seconds {
    for (path, view) in zip(paths, views) {
      let decision =
        try areCounted
        ? policy.decideRecorded(user, .write(path), view: view)
        : policy.decide(user, .write(path), view: view)
      guard decision.denial == nil else { throw BenchmarkFailure("the rules deny the write") }
      count += 1
    }
  }
  return Double(count) / (ContinuousClock.now - start).seconds
}

/// A tree in memory before and after a write.
private struct WrittenTree: TreeView {
  let before: Node
  let after: Node
  let now: Int64 = 1_700_000_000_000

  init(before: Node, path: Path, value: Node) {
    self.before = before
    after = before.setting(path, to: value)
  }

  private func node(_ path: Path, _ state: TreeState) -> Node {
    (state == .before ? before : after).descendant(path)
  }

  func content(at path: Path, _ state: TreeState) -> Node.Content { node(path, state).content }
  func priority(at path: Path, _ state: TreeState) -> Priority? { node(path, state).priority }
  func childKeys(at path: Path, after key: ChildKey?, limit: Int, _ state: TreeState) -> [ChildKey] {
    var keys: [ChildKey] = []
    node(path, state).forEachChild(from: key) { found, _ in
      if found != key { keys.append(found) }
      return keys.count < limit
    }
    return keys
  }
}

/// Creates an anonymous user.
private func signUp(_ port: Int, _ setting: Setting) async throws -> (id: String, token: String) {
  let answer = try await HTTPTransfer.post(
    "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=bench", port: port, on: setting.group,
    json: #"{"returnSecureToken":true}"#)
  let object = try JSONSerialization.jsonObject(with: Data(answer.text.utf8)) as? [String: Any]
  guard answer.status == 200, let id = object?["localId"] as? String,
    let token = object?["idToken"] as? String
  else { throw BenchmarkFailure("no user was created: \(answer.text)") }
  return (id, token)
}

/// Durable writes per second under a rule that reads at several places of a tree of a given size.
func writesUnderRulesOverRoot(_ setting: Setting, megabytes: Int) async throws -> Double {
  let directory = try await loadedJSONDirectory(setting, megabytes: megabytes)
  let server = try setting.startHearth(["--data", directory], database: true)
  defer { server.stop() }
  try await server.waitUntilIdle()
  let condition =
    "root.child('data').hasChildren() && !root.child('data/none').exists() && data.parent().parent().exists()"
  try await put(
    "/.settings/rules", #"{"rules":{"bench":{"$client":{".write":"\#(condition)"}}}}"#, server, setting)
  try await put("/bench", #"{"c0":{"k":"a text"}}"#, server, setting)
  let rate: Result<Double, any Error>
  do { rate = .success(try await userWrites(server, setting)) } catch { rate = .failure(error) }
  // Other rows of the table use the same database.
  try await put("/bench", "null", server, setting)
  try await put("/.settings/rules", openRules, server, setting)
  return try rate.get()
}

/// The longest time of a write in milliseconds, at 500 writes per second, while the rules change five times with open listens
/// that all have to be decided again. With `changes` false the rules do not change.
func longestWriteDuringRules(_ setting: Setting, listens: Int, changes: Bool) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: true)
  defer { server.stop() }
  try await put("/members/u1", "true", server, setting)
  try await put("/.settings/rules", rules(round: 0), server, setting)
  let answered = SharedCounter()
  var held: [WebSocketConnection] = []
  let perConnection = 10
  for connection in 0..<(listens / perConnection) {
    let client = try await WebSocketConnection.connect(
      port: server.port, path: "/.ws?v=5&ns=bench", on: setting.group
    ) { text, _ in if text.contains(#""s":"ok""#) { answered.add() } }
    client.send(#"{"t":"d","d":{"r":1,"a":"auth","b":{"cred":"\#(token)"}}}"#)
    for number in 0..<perConnection {
      client.send(
        #"{"t":"d","d":{"r":\#(number + 2),"a":"q","b":{"p":"/elsewhere/\#(connection)/\#(number)","h":""}}}"#
      )
    }
    held.append(client)
  }
  let expected = listens / perConnection * (perConnection + 1)
  try await waitUntil("\(answered.value) of \(expected) requests answered", seconds: 60) {
    answered.value >= expected
  }
  let times = try await writeTimes(server, setting) {
    for round in 1...5 {
      if changes { try await put("/.settings/rules", rules(round: round), server, setting) }
      try await Task.sleep(for: .seconds(setting.seconds / 5))
    }
  }
  await close(held)
  return times.max() ?? 0
}

/// A large write that rules decide.
enum LargeWrite {
  /// An update of 20,000 new paths.
  case paths
  /// A text of 2 MB that a regular expression matches.
  case text

  var rules: String {
    switch self {
    case .paths:
      #"""
      "$k": {
        ".write": "root.child('members').child('u1').val() == true && !data.exists() && $k.beginsWith('k')",
        ".validate": "newData.isString() && newData.val().length < 200 && newData.val().beginsWith('a text')"}
      """#
    case .text: #"".write": true, ".validate": "newData.val().matches(/^[a-y]+(z|zz)?$/)""#
    }
  }

  var body: String {
    switch self {
    case .paths:
      "{" + (0..<20_000).map { #""k\#($0)":"a text of some thirty characters""# }.joined(separator: ",") + "}"
    case .text: "\"" + String(repeating: "abcdefgh", count: 256 << 10) + "\""
    }
  }
}

/// The longest time of a write in milliseconds, at 500 writes per second, while another client makes five large writes.
/// - Parameter isOpen: whether no rule decides the large writes.
func longestWriteDuring(_ large: LargeWrite, isOpen: Bool, _ setting: Setting) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try setting.startHearth(["--data", directory], database: true)
  defer { server.stop() }
  try await put("/members/u1", "true", server, setting)
  let locations = (1...5).map {
    #""large\#($0)": {\#(isOpen ? #"".write": true"# : large.rules)}"#
  }
  try await put(
    "/.settings/rules", #"{"rules": {"bench": {".write": true}, \#(locations.joined(separator: ", "))}}"#,
    server,
    setting)
  let body = ByteBuffer(string: large.body)
  let times = try await writeTimes(server, setting) {
    for round in 1...5 {
      let status = try await HTTPTransfer.put(
        "/large\(round).json?ns=bench&print=silent", port: server.port, on: setting.group, pieces: [body],
        isOwner: false, isPatch: large == .paths)
      guard status == 204 else { throw BenchmarkFailure("the large write answered \(status)") }
      try await Task.sleep(for: .seconds(setting.seconds / 5))
    }
  }
  return times.max() ?? 0
}

/// Rules under which every listen reads one location, different in each round.
private func rules(round: Int) -> String {
  #"""
  {"rules": {"bench": {".write": true}, "elsewhere": {".read":
    "root.child('members').child(auth.uid).val() == true && \#(round) >= 0"}}}
  """#
}

private let openRules = #"{"rules":{".read":true,".write":true}}"#

private func put(_ path: String, _ json: String, _ server: ChildProcess, _ setting: Setting) async throws {
  let status = try await HTTPTransfer.put(
    "\(path).json?ns=bench", port: server.port, on: setting.group, pieces: [ByteBuffer(string: json)])
  guard status == 200 else { throw BenchmarkFailure("PUT \(path) answered \(status)") }
}

private func userWrites(
  _ server: ChildProcess, _ setting: Setting, namespace: String = "bench", token: String = token
) async throws -> Double {
  try await writeRate(
    server, setting, path: "/.ws?v=5&ns=\(namespace)", connections: 100, acknowledgement: #""s":"ok""#,
    greeting: #"{"t":"d","d":{"r":1000000000,"a":"auth","b":{"cred":"\#(token)"}}}"#
  ) { client, n in write(n, at: "/bench/c\(client)/k\(n % 1000)") }
}

/// The times of writes in milliseconds, from sending to the response, while some work runs.
private func writeTimes(
  _ server: ChildProcess, _ setting: Setting, during work: () async throws -> Void
) async throws -> [Double] {
  let sent = NIOLockedValueBox<[NIODeadline]>([])
  let times = NIOLockedValueBox<[Double]>([])
  let newest = NIOLockedValueBox(-1)
  let writer = try await WebSocketConnection.connect(
    port: server.port, path: "/.ws?v=5&ns=bench", on: setting.group
  ) { text, _ in
    guard text.contains(#""s":"ok""#), let number = text.number(after: #""r":"#) else { return }
    let now = NIODeadline.now()
    let start = sent.withLockedValue { number < $0.count ? $0[number] : now }
    times.withLockedValue { $0.append(Double((now - start).nanoseconds) / 1e6) }
    newest.withLockedValue { $0 = max($0, number) }
  }
  let ticks = setting.group.any().scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(2)) { _ in
    let number = sent.withLockedValue { sent in
      sent.append(.now())
      return sent.count - 1
    }
    writer.send(write(number, at: "/bench/c0/k\(number % 1000)"))
  }
  defer { ticks.cancel() }
  try await Task.sleep(for: .milliseconds(500))
  times.withLockedValue { $0.removeAll() }
  try await work()
  // The last writes are answered too, so that a write that waits for the end of the work counts.
  ticks.cancel()
  let last = sent.withLockedValue { $0.count - 1 }
  try await waitUntil("the last write was not answered") { newest.withLockedValue { $0 } >= last }
  let measured = times.withLockedValue { $0 }
  await close([writer])
  return measured
}
