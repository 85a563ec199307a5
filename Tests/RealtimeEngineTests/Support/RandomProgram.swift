// Runs random programs of several sessions on the engine and on a model: a naive tree in memory, and the
// onDisconnect operations of each session. The engine and the model must agree after every step.

import Access
import OrderedStore
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

/// A random program and its model.
struct RandomProgram {
  /// One session: its connection, its client's values, its onDisconnect operations.
  struct Session {
    let client: Client
    var replica = Replica()
    var registered: [(path: Path, value: Node)] = []
  }

  let seed: UInt64
  var generator: RandomNodes
  var model = Node.empty
  /// The current indexes.
  private(set) var rules: RulesFile?
  private(set) var database: RealtimeDatabase
  private(set) var sessions: [Session] = []
  private var nextTag: Int64 = 1
  /// Whether requests are sent without waiting for earlier responses.
  private let isPipelined: Bool
  private var pending: [(client: Client, request: Int64, expected: String)] = []
  private var steps = 0

  /// The seed and the step, which identify a failure so that it can be reproduced.
  var context: Comment { "seed \(seed), step \(steps)" }

  init(seed: UInt64, database: RealtimeDatabase, isPipelined: Bool = false) {
    self.seed = seed
    self.isPipelined = isPipelined
    generator = RandomNodes(seed: seed)
    self.database = database
    for _ in 0..<3 { sessions.append(Session(client: Client(database))) }
  }

  /// Performs one random step.
  mutating func step() async {
    steps += 1
    let index = generator.below(sessions.count)
    switch generator.below(16) {
    case 0, 1, 2: await listen(index)
    case 3: await unlisten(index)
    case 4, 5: await transact(index)
    case 6, 7: await update(index)
    case 8: await setPriority(index)
    case 12 where generator.below(4) == 0: await publish()
    case 9, 10: await register(index)
    case 11: if generator.below(3) == 0 { await end(index) } else { await cancel(index) }
    default: await set(index)
    }
  }

  /// Sends a request with its expected response.
  private mutating func submit(
    _ index: Int, _ expected: String = "ok", _ send: @Sendable (RealtimeConnection, Int64) -> Void
  ) async {
    let client = sessions[index].client
    pending.append((client, await client.send(send), expected))
    if !isPipelined { await awaitResponses() }
  }

  /// Waits for all responses.
  private mutating func awaitResponses() async {
    for (client, request, expected) in pending {
      let answer = await client.response(to: request).text
      #expect(answer == expected, context)
    }
    pending = []
  }

  // MARK: Writes

  private mutating func set(_ index: Int) async {
    let path = generator.path()
    let node = generator.below(4) == 0 ? Node.empty : generator.node()
    await submit(index) { $0.set(path, to: node, request: $1) }
    model = model.setting(path, to: node)
  }

  private mutating func setPriority(_ index: Int) async {
    let path = generator.path().child(.priority)
    let node = generator.below(3) == 0 ? Node.empty : Node.leaf(.int(Int64(generator.below(3))))
    await submit(index) { $0.set(path, to: node, request: $1) }
    model = model.setting(path, to: node)
  }

  /// Random values at paths. No path contains another path.
  private mutating func changes() -> [(Path, Node)] {
    var changes: [(Path, Node)] = []
    for _ in 0..<(1 + generator.below(4)) {
      var path = generator.path()
      // An update may not set its own location, so every path has a key.
      if path.isRoot { path = path.child(ChildKey(generator.key())) }
      changes.removeAll { path.contains($0.0) || $0.0.contains(path) }
      changes.append((path, generator.node()))
    }
    return changes.sorted { $0.0 < $1.0 }
  }

  private mutating func update(_ index: Int) async {
    let changes = changes()
    await submit(index) { $0.update("/", changes, request: $1) }
    model = model.merging(changes)
  }

  private mutating func transact(_ index: Int) async {
    let path = generator.path()
    let node = generator.node()
    let isStale = generator.below(3) == 0
    let hash = isStale ? "stale" : model.descendant(path).hash
    await submit(index, isStale ? "datastale" : "ok") { $0.set(path, to: node, ifHash: hash, request: $1) }
    if !isStale { model = model.setting(path, to: node) }
  }

  // MARK: Ends of sessions

  private mutating func register(_ index: Int) async {
    if generator.below(2) == 0 {
      let path = generator.below(4) == 0 ? generator.path().child(.priority) : generator.path()
      let node = path.isPriority ? Node.leaf(.int(Int64(generator.below(3)))) : generator.node()
      await submit(index) { $0.onDisconnectSet(path, to: node, request: $1) }
      supersede(index, path, node)
    } else {
      let changes = changes()
      await submit(index) { $0.onDisconnectUpdate("/", changes, request: $1) }
      for (path, node) in changes { supersede(index, path, node) }
    }
  }

  private mutating func supersede(_ index: Int, _ path: Path, _ node: Node) {
    sessions[index].registered.removeAll { path.contains($0.path) }
    sessions[index].registered.append((path, node))
  }

  private mutating func cancel(_ index: Int) async {
    let path = generator.path()
    await submit(index) { $0.onDisconnectCancel(path, request: $1) }
    splitRegistered(index, above: path)
    sessions[index].registered.removeAll { path.contains($0.path) }
  }

  /// Replaces the values registered at and below the topmost registered ancestor of a path by one value for each location
  /// next to the path, so that the path itself can be cancelled.
  private mutating func splitRegistered(_ index: Int, above path: Path) {
    let registered = sessions[index].registered
    let above = registered.map(\.path).filter { $0 != path && $0.contains(path) }
    guard let ancestor = above.min(by: { $0.count < $1.count }) else { return }
    var registeredValue = Node.empty
    let inside = registered.filter { ancestor.contains($0.path) }.sorted { a, b in
      a.path.isPriority == b.path.isPriority ? a.path < b.path : b.path.isPriority
    }
    for (path, value) in inside {
      registeredValue = registeredValue.setting(
        Path(keys: Array(path.keys.dropFirst(ancestor.count))), to: value)
    }
    if registeredValue.isLeaf { return }
    sessions[index].registered.removeAll { ancestor.contains($0.path) }
    var (node, location) = (registeredValue, ancestor)
    for next in path.keys.dropFirst(ancestor.count) {
      if node.isLeaf { return sessions[index].registered.append((location, node)) }
      node.forEachChild { key, child in
        if key != next { sessions[index].registered.append((location.child(key), child)) }
        return true
      }
      (node, location) = (node.child(next), location.child(next))
    }
  }

  private mutating func end(_ index: Int) async {
    // Waits for all responses first, because a closed connection receives none.
    await awaitResponses()
    if generator.below(2) == 0 {
      sessions[index].client.connection.close()
    } else {
      database.takeOver(session: sessions[index].client.connection.session)
    }
    performOnDisconnect(sessions[index])
    sessions[index] = Session(client: Client(database))
  }

  private mutating func performOnDisconnect(_ session: Session) {
    // All operations are one write. A value below another is merged into it, and priorities come last.
    var write: [(path: Path, value: Node)] = []
    let ordered = session.registered.sorted { a, b in
      a.path.isPriority == b.path.isPriority ? a.path < b.path : b.path.isPriority
    }
    for (path, value) in ordered {
      if let i = write.firstIndex(where: { !$0.path.isPriority && $0.path.contains(path) }) {
        let relative = Path(keys: Array(path.keys.dropFirst(write[i].path.count)))
        write[i].value = write[i].value.setting(relative, to: value)
      } else {
        write.append((path, value))
      }
    }
    for (path, value) in write { model = model.setting(path, to: value) }
  }

  /// Continues with another server on the same store, which ends all earlier sessions.
  mutating func restart(on database: RealtimeDatabase) {
    for session in sessions.sorted(by: { $0.client.connection.session < $1.client.connection.session }) {
      performOnDisconnect(session)
    }
    self.database = database
    sessions = (0..<3).map { _ in Session(client: Client(database)) }
  }

  // MARK: Indexes

  /// Publishes random rules: each location has a few indexed orders.
  mutating func publish() async {
    await awaitResponses()
    var text = "{"
    for (name, depth) in [("\"rules\":{", 0), ("\"a\":{", 1), ("},\"$x\":{", 1), ("\"$y\":{", 2)] {
      text +=
        name + "\".indexOn\":["
        + (0..<generator.below(4)).map { _ in "\"\(indexedOrder())\"" }.joined(separator: ",")
      text += "]" + (depth == 1 && name.hasPrefix("\"a") ? "" : ",")
    }
    text += "}}}}"
    do {
      let rules = try RulesFile(Array(text.utf8))
      try await database.setRules(rules, as: .administrator)
      self.rules = rules
    } catch { Issue.record("\(context): \(error): \(text)") }
  }

  private mutating func indexedOrder() -> String {
    switch generator.below(5) {
    case 0: ".value"
    case 1: generator.key() + "/" + generator.key()
    default: generator.key()
    }
  }

  /// A query, usually in an order that is indexed at the location.
  private mutating func query(at path: Path) -> QuerySpec {
    var query = generator.query()
    let indexes = rules?.root.descendant(path)?.indexes ?? []
    guard generator.below(3) > 0, !indexes.isEmpty else { return query }
    query.ordering = indexes[generator.below(indexes.count)]
    if query.start != nil { query.start = generator.bound(query.ordering) }
    if query.end != nil { query.end = generator.bound(query.ordering) }
    return query
  }

  private func hasIndex(_ query: QuerySpec, _ path: Path) -> Bool {
    if query.ordering == .key || query.ordering == .priority { return true }
    return rules?.hasIndex(on: query.ordering, at: path) ?? false
  }

  // MARK: Listens

  private mutating func listen(_ index: Int) async {
    await receiveOutputs()
    let path = generator.path()
    var query = QuerySpec.default
    var tag: Int64?
    if generator.below(3) > 0 {
      query = self.query(at: path)
      if query.showsAll { query.limit = .last(2) }
      tag = nextTag
      nextTag += 1
    }
    let name = ListenName(path: path, tag: tag)
    let queryResult = model.descendant(path).window(query)
    // A client that holds the value sends its hash and receives no data.
    let sendsHash = generator.below(3) == 0
    sessions[index].replica.start(name, query, sendsHash ? queryResult : .empty)
    let hash = sendsHash ? queryResult.hash : ""
    let answer = await sessions[index].client.call {
      $0.listen(path, query: query, tag: tag, hash: hash, request: $1)
    }
    #expect(answer.text == (hasIndex(query, path) ? "ok" : "ok no_index"), context)
  }

  private mutating func unlisten(_ index: Int) async {
    await receiveOutputs()
    guard let name = sessions[index].replica.queries.keys.sorted(by: { "\($0)" < "\($1)" }).first else {
      return
    }
    sessions[index].replica.stop(name)
    await sessions[index].client.call { $0.unlisten(name.path, tag: name.tag, request: $1) }
  }

  // MARK: Comparing

  /// Waits for all responses, and applies the outputs of every session.
  private mutating func receiveOutputs() async {
    await awaitResponses()
    for i in sessions.indices {
      await sessions[i].client.call { $0.get("none", request: $1) }
      for case .push(let push) in await sessions[i].client.takeOutputs() { sessions[i].replica.apply(push) }
    }
  }

  /// Compares every listen of every session, and some reads, with the model.
  mutating func check() async throws {
    await receiveOutputs()
    for i in sessions.indices {
      for (name, query) in sessions[i].replica.queries {
        let expected = model.descendant(name.path).window(query)
        let clientValue = try await awaitValue(of: name, in: i, expecting: expected)
        // The client's copy drops empty objects, and their priorities with them, as the server does. So the comparison
        // includes priorities.
        #expect(
          clientValue == expected,
          "\(context): \(name.path) \(query) knows \(clientValue.text), not \(expected.text)")
      }
    }
    try await checkReads(1)
  }

  /// Returns a session's value of a listen. The server may have to read the complete location to update a window, the
  /// children that a query selects (docs/decisions/0015). Until this read is complete, the window may lack children and show
  /// children that follow them instead. The test waits for the expected value. While it waits, every child of the window
  /// must exist in the model.
  private mutating func awaitValue(of name: ListenName, in index: Int, expecting expected: Node) async throws
    -> Node
  {
    let complete = model.descendant(name.path)
    var clientValue = sessions[index].replica.values[name] ?? .empty
    for _ in 0..<500 where name.tag != nil && clientValue != expected {
      clientValue.forEachChild { key, child in
        #expect(child == complete.child(key), context)
        return true
      }
      try await Task.sleep(for: .milliseconds(10))
      await receiveOutputs()
      clientValue = sessions[index].replica.values[name] ?? .empty
    }
    return clientValue
  }

  /// Compares random reads with the model: values, windows, priorities, shallow reads and hashes.
  mutating func checkReads(_ count: Int) async throws {
    for _ in 0..<count {
      let path = generator.path()
      let expected = model.descendant(path)
      let found = try await database.get(path, as: .nobody)
      #expect(found == expected, context)
      #expect(found.hash == expected.hash, context)
      let query = self.query(at: path)
      do {
        let window = try await database.get(path, query: query, as: .nobody)
        #expect(
          hasIndex(query, path) && window == expected.window(query),
          "\(context): \(path) \(query) \(window.text)")
      } catch {
        #expect(
          !hasIndex(query, path) && error.message.hasPrefix("Index not defined"), "\(context): \(error)")
      }
      #expect(
        try await database.get(path.child(.priority), as: .nobody)
          == expected.descendant(Path(keys: [.priority])), context)
      #expect(try await database.getShallow(path, as: .nobody) == ShallowNode(expected), context)
      var keys = QuerySpec(ordering: .key, start: query.start, end: query.end, limit: query.limit)
      if query.ordering != .key { (keys.start, keys.end) = (nil, nil) }
      #expect(
        try await database.getShallow(path, query: keys, as: .nobody)
          == (keys.showsAll
            ? ShallowNode(expected) : ShallowNode(expected.isLeaf ? .empty : expected.window(keys))),
        "\(context): shallow \(path) \(keys)")
    }
    #expect(try await database.get("/", as: .nobody) == model, context)
  }
}
