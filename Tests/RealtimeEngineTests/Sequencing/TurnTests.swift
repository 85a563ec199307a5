// What reads much in the sequencer does so by turns: writes pass it.

import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Turns of what reads", .timeLimit(.minutes(10)))
struct TurnTests {
  /// Runs a batch and tells which of its operations were carried out, and which were put off.
  private func run(_ batch: [Operation], turnTime: Duration) async throws -> Sequencer.Pass {
    let rows = try await MemoryStore().database(named: "turns", history: .activeReadersOnly)
    var staging = StagingLimits()
    staging.turnTime = turnTime
    let sequencer = Sequencer(
      policy: EmulatorPolicy(), limits: .standard, cacheBytes: 1 << 20, staging: staging)
    return try await rows.execute(validating: nil) { writer in
      try sequencer.run(batch, in: writer, SessionJournal(), mayHold: true)
    }.result
  }

  @Test("Once a batch has read for long enough its writes go on, and what else reads waits for the next")
  func turns() async throws {
    let connections = (0..<40).map { i in
      ConnectionState(name: "c\(i)", caller: .anonymous, sink: RecordingSink(RecordingGroup()))
    }
    var batch: [Operation] = []
    for (i, connection) in connections.enumerated() {
      let query = QuerySpec(ordering: .key, limit: .first(10))
      let listen = Operation.Listen(path: "l", query: query, tag: 1, hash: "", compoundHash: nil)
      batch.append(Operation(.listen(listen), from: .connection(connection, request: 1)))
      let write = Operation.Action.write(.set(Path("l/k\(i)"), .leaf(.int(1))), hash: nil)
      batch.append(Operation(write, from: .call(.anonymous) { _ in }))
    }
    // What its connection asks for behind it waits with it.
    let behind = Operation.Action.write(.set("behind", .leaf(.int(1))), hash: nil)
    batch.append(Operation(behind, from: .connection(connections[39], request: 2)))
    let pass = try await run(batch, turnTime: .zero)
    #expect(pass.executed.count == 1 + 40)
    #expect(pass.held.count == 39 + 1)
    let turns = pass.held.filter { if case .turn = $0.reason { true } else { false } }
    #expect(turns.count == 39)
    // With time there is, all are carried out.
    let all = try await run(batch, turnTime: .seconds(600))
    #expect(all.held.isEmpty && all.executed.count == batch.count)
  }

  @Test("A wide window is not read in the sequencer, a narrow one is, and no other operation waits for it")
  func windows() async throws {
    let rows = try await MemoryStore().database(named: "turns", history: .activeReadersOnly)
    var staging = StagingLimits()
    (staging.readRows, staging.turnTime) = (8, .seconds(600))
    let sequencer = Sequencer(policy: EmulatorPolicy(), limits: .standard, cacheBytes: 0, staging: staging)
    let connections = (0..<4).map { i in
      ConnectionState(name: "c\(i)", caller: .anonymous, sink: RecordingSink(RecordingGroup()))
    }
    let list = Node.object((0..<20).map { (ChildKey("k\($0)"), ["v": 1]) })
    let large = Node.object((0..<9).map { (ChildKey("k\($0)"), 1) })
    func get(_ path: Path, _ limit: Int, _ connection: Int) -> Operation {
      let query = QuerySpec(ordering: .key, limit: .first(limit))
      return Operation(.get(path, query), from: .connection(connections[connection], request: 1))
    }
    func write(_ path: Path, _ node: Node, _ origin: Operation.Origin) -> Operation {
      Operation(.write(.set(path, node), hash: nil), from: origin)
    }
    let batch = [
      write("l", list, .call(.anonymous) { _ in }), write("m/x", large, .call(.anonymous) { _ in }),
      get("l", 9, 0), write("behind", 1, .connection(connections[0], request: 2)), get("l", 8, 1),
      // Few children, but many rows.
      get("m", 2, 2), write("l/k1", 2, .connection(connections[3], request: 1)),
    ]
    var pass = try await rows.execute(validating: nil) { writer in
      try sequencer.run(batch, in: writer, SessionJournal(), mayHold: true)
    }.result
    let waiting = pass.held.map { held in
      switch held.reason {
      case .window(let path, let query, _): "\(path) \(query.limit?.count ?? 0)"
      case .behindAnother: "behind"
      default: "else"
      }
    }
    #expect(waiting == ["l 9", "behind", "m 2"])
    #expect(pass.executed.count == 4)
    // It goes on with what was read.
    var ready = pass.held[0].operation
    ready.window = .success(7)
    #expect(!ready.takesTurns)
    pass = try await rows.execute(validating: nil) { [ready] writer in
      try sequencer.run([ready], in: writer, SessionJournal(), mayHold: true)
    }.result
    guard case .answer(_, .value(let node))? = pass.steps.first else {
      return #expect(Bool(false), "not answered")
    }
    #expect(node == 7)
  }

  @Test("A step of clearing index rows ends once its time is over, and the next goes on where it ended")
  func clearing() async throws {
    let rows = try await MemoryStore().database(named: "clearing", history: .activeReadersOnly)
    var staging = StagingLimits()
    staging.turnTime = .zero
    let sequencer = Sequencer(
      policy: EmulatorPolicy(), limits: .standard, cacheBytes: 0, staging: staging)
    func run(_ action: Operation.Action) async throws {
      let operation = Operation(action, from: .call(.administrator) { _ in })
      _ = try await rows.execute(validating: nil) { writer in
        try sequencer.run([operation], in: writer, SessionJournal(), mayHold: true)
      }
    }
    func count() async throws -> Int {
      try await rows.read(at: nil) { view in
        var count = 0
        try view.scan(KeyRange(prefix: [IndexRows.tree]), reverse: false) { _, _, _ in
          count += 1
          return true
        }
        return count
      }
    }
    let rules = #"{"rules":{"notes":{".indexOn":["due","a/b",".value"]}}}"#
    try await run(.setRules(try RulesFile(Array(rules.utf8))))
    for _ in 0..<2 { try await run(.buildIndexes) }
    let notes = Node.object((0..<100).map { (ChildKey("n\($0)"), .leaf(.int(Int64($0)))) })
    try await run(.write(.set("notes", notes), hash: nil))
    #expect(try await count() == 300)
    try await run(.setRules(try RulesFile(Array(#"{"rules":{}}"#.utf8))))
    try await run(.buildIndexes)
    #expect(try await count() == 300 - 32)
    try await run(.buildIndexes)
    #expect(try await count() == 300 - 64)
    for _ in 0..<8 { try await run(.buildIndexes) }
    #expect(try await count() == 0)
  }

  @Test("What was registered is taken apart by turns")
  func cancels() {
    #expect(Operation(.cancelOnDisconnect("a"), from: .call(.anonymous) { _ in }).takesTurns)
  }

  @Test("What was put off has its turn, however much that is new comes with every batch")
  func age() async throws {
    let rows = try await MemoryStore().database(named: "turns", history: .activeReadersOnly)
    var staging = StagingLimits()
    staging.turnTime = .zero
    let sequencer = Sequencer(
      policy: EmulatorPolicy(), limits: .standard, cacheBytes: 1 << 20, staging: staging)
    let queue = OperationQueue()
    func read(_ number: Int) -> Operation {
      let connection = ConnectionState(
        name: "c\(number)", caller: .anonymous, sink: RecordingSink(RecordingGroup()))
      return Operation(.get("x", .default), from: .connection(connection, request: Int64(number)))
    }
    let first = 5
    for number in 0..<first { #expect(queue.append(read(number))) }
    var answered: [Int64] = []
    for round in 0..<40 {
      // Two new ones a batch, of which one is carried out.
      for i in 0..<2 { #expect(queue.append(read(first + 2 * round + i))) }
      let batch = try #require(await queue.next())
      let pass = try await rows.execute(validating: nil) { writer in
        try sequencer.run(batch, in: writer, SessionJournal(), mayHold: true)
      }.result
      for operation in pass.executed {
        if case .connection(_, let request?) = operation.origin { answered.append(request) }
      }
      queue.hold(pass.held.map(\.operation))
      queue.releaseByTurns(pass.held.map(\.operation))
    }
    #expect(answered == Array(0..<40))
  }
}
