// Tests that the operation queue keeps each connection's order. A batch, a group of operations that share a commit, may
// defer an operation until background work is done. The queue divides later batches fairly between these resumed
// operations and new operations.

import Access
import RandomModels
import RealtimeModel
import Testing

@testable import RealtimeEngine

@Suite("The operation queue", .timeLimit(.minutes(2)))
struct OperationQueueTests {
  private let sink = RecordingSink(RecordingGroup())

  private func connection(_ name: String) -> ConnectionState {
    ConnectionState(name: name, caller: .nobody, sink: sink)
  }

  private func operation(_ connection: ConnectionState, _ number: Int) -> RealtimeOperation {
    RealtimeOperation(.get("a", .default), from: .connection(connection, request: Int64(number)))
  }

  private func listen(_ connection: ConnectionState, _ number: Int) -> RealtimeOperation {
    let query = QuerySpec(ordering: .value, limit: .last(1))
    return RealtimeOperation(
      .listen(.init(path: "a", query: query, tag: 1, hash: "", compoundHash: nil)),
      from: .connection(connection, request: Int64(number)))
  }

  @Test("Each connection's operations keep their order, whichever of them a batch defers", arguments: 0..<12)
  func order(seed: Int) async {
    var generator = RandomNodes(seed: UInt64(40_000 + seed))
    let queue = OperationQueue()
    let connections = (0..<5).map { connection("c\($0)") }
    var sent = [Int](repeating: 0, count: 5)
    var done = [Int](repeating: 0, count: 5)
    var held: [RealtimeOperation] = []
    func number(_ operation: RealtimeOperation) -> (connection: Int, request: Int) {
      guard case .connection(let connection, let request) = operation.origin else { return (0, -1) }
      return (connections.firstIndex { $0 === connection } ?? 0, Int(request ?? -1))
    }
    for round in 0..<120 {
      for _ in 0..<generator.below(12) {
        let index = generator.below(5)
        let isAppended = queue.append(operation(connections[index], sent[index]))
        #expect(isAppended)
        sent[index] += 1
      }
      if !held.isEmpty, generator.below(2) == 0 { queue.resume(held.remove(at: generator.below(held.count))) }
      queue.wake()
      var deferred: [RealtimeOperation] = []
      for operation in await queue.next() ?? [] {
        let (index, request) = number(operation)
        // Like a real batch: after a connection's deferred operation its later operations are blocked.
        if deferred.contains(where: { number($0).connection == index }) || generator.below(4) == 0 {
          let isFirst = !deferred.contains { number($0).connection == index }
          deferred.append(isFirst ? operation.deferred(.nextBatch) : operation.blocked)
          if isFirst { held.append(operation.deferred(.nextBatch)) }
        } else {
          #expect(request == done[index], "seed \(seed), round \(round)")
          done[index] += 1
        }
      }
      queue.hold(deferred)
    }
    while done != sent {
      for operation in held { queue.resume(operation) }
      held = []
      queue.wake()
      for operation in await queue.next() ?? [] {
        let (index, request) = number(operation)
        #expect(request == done[index], "seed \(seed)")
        done[index] += 1
      }
    }
  }

  @Test("Reads and listens of a closed connection are dropped; its writes and authentication stay")
  func abandoned() async {
    let queue = OperationQueue()
    let (abandoned, other) = (connection("gone"), connection("other"))
    func submit(_ action: RealtimeOperation.Action, _ connection: ConnectionState? = nil) {
      _ = queue.append(RealtimeOperation(action, from: .connection(connection ?? abandoned, request: nil)))
    }
    let query = QuerySpec(ordering: .value, limit: .last(1))
    func listen(_ tag: Int64) -> RealtimeOperation.Action {
      .listen(.init(path: "a", query: query, tag: tag, hash: "", compoundHash: nil))
    }
    for tag in 0..<2_000 { submit(listen(Int64(tag))) }
    submit(.get("a", query))
    submit(.authenticate(.administrator))
    submit(.write(.set("a", 1), hash: nil))
    submit(.getShallow("a", query))
    submit(.unlisten("a", tag: 1))
    submit(.onDisconnect(.set("b", 2)))
    submit(.cancelOnDisconnect("c"))
    _ = abandoned.markClosed()
    submit(.close)
    submit(listen(1), other)
    submit(.get("a", query), other)
    let batch = await queue.next() ?? []
    let kinds = batch.map { operation -> String in
      switch operation.action {
      case .authenticate: "authenticate"
      case .write: "write"
      case .onDisconnect: "register"
      case .cancelOnDisconnect: "cancel"
      case .close: "close"
      case .listen: "listen"
      case .get: "get"
      default: "other"
      }
    }
    #expect(kinds == ["authenticate", "write", "register", "cancel", "close", "listen", "get"])

    // Resumed reads are dropped as well.
    let late = connection("late")
    let first = operation(late, 0)
    queue.hold([first.deferred(.nextBatch), operation(late, 1).blocked])
    _ = queue.append(RealtimeOperation(.write(.set("a", 1), hash: nil), from: .connection(late, request: 2)))
    _ = late.markClosed()
    queue.resume(first.deferred(.nextBatch))
    let rest = await queue.next() ?? []
    #expect(rest.count == 1)
    #expect(rest.allSatisfy { if case .write = $0.action { true } else { false } })
    queue.close()
    #expect(await queue.next() == nil)
  }

  @Test(
    "A new write does not wait for many resumed listens: the next batch has the write and some of the listens"
  )
  func fairness() async {
    let queue = OperationQueue()
    let many = (0..<100).map { connection("m\($0)") }
    for connection in many { for number in 0..<50 { _ = queue.append(listen(connection, number)) } }
    var batch = await queue.next() ?? []
    #expect(batch.count == 16, "a listen costs 64 writes")
    var held: [RealtimeOperation] = []
    while !batch.isEmpty {
      var first: Set<ObjectIdentifier> = []
      var deferred: [RealtimeOperation] = []
      for operation in batch {
        if let connection = operation.connection, first.insert(ObjectIdentifier(connection)).inserted {
          deferred.append(operation.deferred(.nextBatch))
          held.append(operation.deferred(.nextBatch))
        } else {
          deferred.append(operation.blocked)
        }
      }
      queue.hold(deferred)
      queue.wake()
      batch = await queue.next() ?? []
    }
    #expect(held.count == 100)
    for operation in held { queue.resume(operation) }
    let writer = connection("writer")
    for number in 0..<40 {
      _ = queue.append(operation(writer, number))
      let batch = await queue.next() ?? []
      #expect(batch.contains { $0.connection === writer }, "a write waited for resumed operations")
      #expect(batch.count > 8, "resumed operations waited for a write")
    }
  }
}
