// What reads much in the sequencer does so by turns: writes pass it.

import OrderedStore
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("Turns of what reads", .timeLimit(.minutes(10)))
struct TurnTests {
  /// Runs a batch and tells which of its operations were carried out, and which were put off.
  private func run(_ batch: [Operation], turnTime: Duration) async throws -> Sequencer.Pass {
    let rows = try await MemoryStore().database(named: "turns", history: .openReads)
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

  @Test("What was put off has its turn, however much that is new comes with every batch")
  func age() async throws {
    let rows = try await MemoryStore().database(named: "turns", history: .openReads)
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
