// The steps of a random program under random rules: requests over sockets and long polling, REST, and event streams.

import Access
import Foundation
import JSON
import NaiveRealtimeRules
import Ports
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import RealtimeEngine

extension RealtimeRulesProgram {
  private mutating func randomSession() -> Int { random.below(sessions.count) }

  private func absolute(_ path: [String]) -> JSONValue { .string("/" + path.joined(separator: "/")) }

  // MARK: Reading

  mutating func listen() async throws {
    let index = randomSession()
    var listen = Reading(path: random.path(), query: random.query())
    guard !sessions[index].listens.contains(where: { $0.path.units == listen.path.units }) else { return }
    var body: JSONObject = ["p": absolute(listen.path), "h": .string("")]
    if listen.query.order != nil {
      listen.tag = random.below(1_000_000)
      body["q"] = .object(listen.query.fields)
      body["t"] = .int(Int64(listen.tag ?? 0))
    }
    let status = try await request(index, "q", body, showing: listen)
    expect(status == "ok", mayRead(listen, users[index], in: state), "listen \(body): \(status)")
    if status == "ok" { sessions[index].listens.append(listen) }
  }

  mutating func unlisten() async throws {
    let index = randomSession()
    guard let listen = sessions[index].listens.popLast() else { return }
    var body: JSONObject = ["p": absolute(listen.path)]
    if let tag = listen.tag {
      body["q"] = .object(listen.query.fields)
      body["t"] = .int(Int64(tag))
    }
    try await request(index, "n", body)
  }

  mutating func get() async throws {
    let index = randomSession()
    let reading = Reading(path: random.path(), query: random.query())
    let body: JSONObject = ["p": absolute(reading.path), "q": .object(reading.query.fields)]
    let status = try await request(index, "g", body, showing: reading)
    let expected = mayRead(reading, users[index], in: state)
    expect(status != "permission_denied", expected, "get \(body): \(status)")
  }

  // MARK: Writing

  mutating func set() async throws {
    let index = randomSession()
    let first = markerCount
    var path = random.path()
    if path.isEmpty, random.below(4) > 0 { path = ["a"] }
    if random.below(12) == 0 { path.append(".priority") }
    let value = path.last == ".priority" ? JSONValue.int(Int64(random.below(3))) : value(at: path, by: index)
    let (tree, expected) = predictWrite([Change(path: path, value: value)], users[index])
    // The write's events for its own session are delivered before the response.
    if expected { commit(tree, markersFrom: first) }
    let status = try await request(index, "p", ["p": absolute(path), "d": value])
    expect(status == "ok", expected, "set \(path): \(status)")
  }

  /// Two or three changes in the order in which the engine applies them.
  private mutating func changes(by author: Int) -> [Change] {
    var changes: [Change] = []
    for _ in 0..<3 {
      let path = random.path()
      guard !path.isEmpty, changes.allSatisfy({ !$0.path.isRelated(to: path) }) else { continue }
      changes.append(Change(path: path, value: value(at: path, by: author)))
    }
    func order(_ change: Change) -> Path { Path(keys: change.path.map { ChildKey($0) }) }
    return changes.sorted { order($0) < order($1) }
  }

  private func body(_ changes: [Change]) -> JSONObject {
    var body = JSONObject()
    for change in changes { body[change.path.joined(separator: "/")] = change.value }
    return body
  }

  mutating func update() async throws {
    let index = randomSession()
    let first = markerCount
    let changes = changes(by: index)
    guard !changes.isEmpty else { return }
    let (tree, expected) = predictWrite(changes, users[index])
    if expected { commit(tree, markersFrom: first) }
    let status = try await request(index, "m", ["p": .string("/"), "d": .object(body(changes))])
    expect(status == "ok", expected, "update \(body(changes)): \(status)")
  }

  mutating func transact() async throws {
    let index = randomSession()
    let first = markerCount
    let path = random.path()
    let value = value(at: path, by: index)
    let isMatching = random.below(2) == 0
    let stored = try await database.get(Path(keys: path.map { ChildKey($0) }), as: .administrator)
    let (tree, isWritable) = predictWrite([Change(path: path, value: value)], users[index])
    let expected = isWritable && mayRead(Reading(path: path), users[index], in: state)
    if expected, isMatching { commit(tree, markersFrom: first) }
    let status = try await request(
      index, "p",
      [
        "p": absolute(path), "d": value,
        "h": .string(isMatching ? stored.isEmpty ? "" : stored.hash : "wrong"),
      ])
    let names = [true: isMatching ? "ok" : "datastale", false: "permission_denied"]
    #expect(names.values.contains(status))
    expect(status == names[true], expected, "transaction at \(path): \(status)")
  }

  /// Registers an onDisconnect write, sometimes replaces the rules, and closes the session.
  mutating func disconnect() async throws {
    let index = randomSession()
    guard case .socket = sessions[index].client.transport else { return }
    let first = markerCount
    let path = random.path()
    let change = Change(path: path, value: value(at: path, by: index))
    let status = try await request(index, "o", ["p": absolute(path), "d": change.value])
    let isRegistered = predictWrite([change], users[index]).isAllowed
    expect(status == "ok", isRegistered, "onDisconnect at \(path): \(status)")
    if random.below(2) == 0 { try await replaceRules() }
    let (tree, isPerformed) = predictWrite([change], users[index])
    if isRegistered, isPerformed { commit(tree, markersFrom: first) }
    await sessions[index].client.close()
    database.takeOver(session: sessions[index].client.name)
    _ = try await database.call(.barrier, as: .administrator)
    let stored = try await storedTree()
    expect(stored == state.tree, true, "the end of a session with a write at \(path)")
    try await reopen(index)
  }

  // MARK: REST

  private static let output = [
    "", "&print=pretty", "&print=silent", "&format=export", "&callback=f", "&timeout=9s", "&download=x",
    "&shallow=true",
  ]

  private func target(_ path: [String], _ parameters: [(name: String, value: String)] = []) -> String {
    func encoded(_ text: String) -> String {
      text.addingPercentEncoding(
        withAllowedCharacters: .alphanumerics.intersection(.init(charactersIn: "!"..."~")))
        ?? text
    }
    return "/" + path.map(encoded).joined(separator: "/") + ".json?ns=demo"
      + parameters.map { "&\($0.name)=\(encoded($0.value))" }.joined()
  }

  /// A random caller of a REST request: a user with a token, or an administrator that acts as a random user.
  private mutating func restCaller() -> (
    auth: JSONValue, author: Int, parameters: [(name: String, value: String)]
  ) {
    guard random.below(3) == 0 else {
      let user = random.below(users.count)
      return (users[user], user, token(user).map { [("auth", $0)] } ?? [])
    }
    let auth = random.auth()
    let text = String(decoding: auth.json(), as: UTF8.self)
    return (auth, -1, [("auth", "owner"), ("auth_variable_override", text)])
  }

  mutating func readREST() async throws {
    let (auth, author, credentials) = restCaller()
    let reading = Reading(path: random.path(), query: random.query())
    var output = Self.output[random.below(Self.output.count)]
    if reading.query.order != nil, output.contains("shallow") { output = "" }
    let target = target(reading.path, credentials + reading.query.parameters) + output
    let mayTag = reading.query.order == nil && !output.contains("shallow")
    let headers = mayTag && random.below(2) == 0 ? ["X-Firebase-ETag: true"] : []
    let answer = try await server.rest("GET", target, headers: headers)
    let expected = mayRead(reading, auth, in: state)
    expect(answer.status != 401, expected, "GET \(target): \(answer.status)")
    if answer.status == 401 {
      #expect(answer.headers["etag"] == nil && answer.body.contains("Permission denied"), "\(target)")
    }
    check(answer.body, showing: reading, auth, author: author)
  }

  mutating func writeREST() async throws {
    let (auth, author, credentials) = restCaller()
    let first = markerCount
    var changes = random.below(3) == 0 ? changes(by: author) : []
    let isUpdate = !changes.isEmpty
    let path = isUpdate ? [] : random.path()
    if !isUpdate { changes = [Change(path: path, value: value(at: path, by: author))] }
    var (tree, expected) = predictWrite(changes, auth)
    var headers: [String] = []
    var isMatching = true
    if !isUpdate, random.below(3) == 0 {
      isMatching = random.below(2) == 0
      let stored = try await database.get(Path(keys: path.map { ChildKey($0) }), as: .administrator)
      headers = ["If-Match: \(isMatching ? stored.isEmpty ? "null_etag" : stored.hash : "wrong")"]
      expected = expected && mayRead(Reading(path: path), auth, in: state)
    }
    let json = isUpdate ? JSONValue.object(body(changes)) : changes[0].value
    if expected, isMatching { commit(tree, markersFrom: first) } else { tree = state.tree }
    let target = target(path, credentials)
    let answer = try await server.rest(
      isUpdate ? "PATCH" : "PUT", target, body: String(decoding: json.json(), as: UTF8.self), headers: headers
    )
    expect(answer.status != 401, expected, "\(isUpdate ? "PATCH" : "PUT") \(target): \(answer.status)")
    #expect([401, isMatching ? 200 : 412].contains(answer.status), "\(target): \(answer.status)")
    check(answer.body, showing: Reading(path: path), auth, author: author)
  }

  mutating func openStream() async throws {
    let user = random.below(users.count)
    var reading = Reading(path: random.path())
    if random.below(2) == 0 {
      reading.query.order = "$key"
      reading.query.last = 1 + random.below(2)
    }
    let client = try await RawClient.connect(server.port.port)
    let target = target(reading.path, (token(user).map { [("auth", $0)] } ?? []) + reading.query.parameters)
    try await client.send(
      "GET \(target) HTTP/1.1\r\nHost: \(server.host)\r\nAccept: text/event-stream\r\n\r\n")
    let head = try await client.read(through: "\r\n\r\n")
    let isOpen = head.hasPrefix("HTTP/1.1 200 ")
    expect(isOpen, mayRead(reading, users[user], in: state), "stream \(target): \(head.prefix(20))")
    guard isOpen else { return await client.close() }
    streams.append(Stream(client: client, reading: reading, user: user, visible: Set(0..<markerCount)))
  }
}
