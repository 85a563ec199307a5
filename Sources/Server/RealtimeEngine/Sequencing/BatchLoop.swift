// Runs one database's batches: takes them from the queue, commits them in the store, and passes their results
// to the fan-out stage.
//
// The path of a put through this module:
//
//   1. API/RealtimeConnection, RealtimeDatabase       submit it (Sequencing/RealtimeOperation)
//   2. Sequencing/OperationQueue                      orders it, and puts it into a batch
//   3. Sequencing/BatchLoop, BatchRunner              run the batch as one commit of the store
//   4. Sequencing/OperationExecutor, BatchExecution   execute it in the store's sequencer
//   5. Sequencing/WriteHandler, WriteRequest          check it and apply it (Tree/Tree, Sequencing/BatchWriter)
//      NotificationBuilder, ChangeLogRecord           describe it to listeners and to the commit log
//   6. Listens/FanOut, WriteFanOut, ListenTrie        push it to listeners once durable, and answer the writer
//
// An operation that needs slow work leaves at step 4 and returns to step 2 with the result (Deferral/).
//
// A batch is sequenced once it has executed at its position in the store's order of commits; the sync to disk
// follows. The fan-out stage is one task. After the sync it applies the batch's results (`FanOutStep`) and
// sends them to clients.
//
// Invariants
//   1. Batches enter the store's sequencer one at a time, in queue order. While one batch is sequenced,
//      earlier ones may still be syncing to disk.
//   2. The fan-out stage receives the results of batches in that order, each after its commit is durable.
//      After a failed commit every later batch in flight fails as well. All of them are rolled back, and their
//      operations receive the error.
//
// Decision: docs/decisions/0009-realtime-batches-in-flight.md

import OrderedStore

/// The task that runs one database's batches.
struct BatchLoop: Sendable {
  /// Maximum number of batches in flight: one is synced to disk, one waits for the disk, and one is
  /// sequenced. A higher maximum would only make batches smaller (decision 0009).
  static let maximumInFlight = 3

  /// A batch heavier than this number of bytes wakes the loop when it is durable, so that the loop releases its memory.
  /// Lighter batches are released when the next batch starts.
  private static let minimumHeavyBytes = 64 << 10

  let queue: OperationQueue
  let runner: BatchRunner
  let deferrals: DeferralRunner
  let maximumInFlight: Int

  /// Runs until the queue is closed and empty, and every result is delivered.
  func run() async {
    let (stream, stage) = AsyncStream.makeStream(of: BatchInFlight.self)
    let fanOut = Task {
      let fanOut = FanOut()
      var published = 0
      for await batch in stream {
        let steps = await batch.steps.value()
        published += 1
        precondition(batch.number == published, "invariant: batches are published in their order")
        precondition(
          batch.outcome.resolvedValue != nil, "invariant: a batch is published after its commit ended")
        fanOut.run(steps)
      }
    }
    var number = 0
    var first = await runBeforeFirstWrite(stage, &number)
    var inFlight: [BatchInFlight] = []
    while true {
      if inFlight.count >= maximumInFlight { _ = await inFlight[0].outcome.value() }
      await removeFinished(&inFlight)
      guard let operations = first.isEmpty ? await queue.next() : first else { break }
      first = []
      if operations.isEmpty { continue }
      let isHeavy =
        operations.reduce(0) { $0 + $1.weight } > BatchLoop.minimumHeavyBytes
        || operations.contains { $0.results.location != nil || $0.results.window != nil }
      number += 1
      let batch = runner.start(number, operations) { [queue] hasFailed in
        if hasFailed || isHeavy { queue.wake() }
      }
      inFlight.append(batch)
      precondition(inFlight.count <= maximumInFlight, "invariant: batches in flight are bounded")
      stage.yield(batch)
      if let result = await batch.sequenced.value() {
        deferrals.start(result.deferred)
        if result.hasGarbage {
          // The cleaner starts after the commit because it reads only durable rows.
          Task { [deferrals] in
            _ = await batch.outcome.value()
            deferrals.cleaner.wake()
          }
        }
      } else {
        // The batch failed before it was sequenced. Its operations run again before the next batch starts, so
        // that no later operation overtakes them.
        await runner.recover(inFlight)
        inFlight = []
      }
    }
    for batch in inFlight { _ = await batch.outcome.value() }
    await removeFinished(&inFlight)
    stage.finish()
    await fanOut.value
  }

  /// Executes operations while the database has no rows, and creates the rows for the first permitted write.
  ///
  /// - Returns: the operations from the first write on, once rows exist; none at the end of the queue.
  private func runBeforeFirstWrite(
    _ stage: AsyncStream<BatchInFlight>.Continuation, _ number: inout Int
  ) async -> [RealtimeOperation] {
    while runner.rows.current == nil {
      guard let operations = await queue.next() else { break }
      let (steps, remaining) = await runner.runWithoutRows(operations)
      number += 1
      let batch = BatchInFlight(number, [])
      batch.finish(.success(steps))
      stage.yield(batch)
      if !remaining.isEmpty { return remaining }
    }
    return []
  }

  /// Removes batches whose commits have ended. Recovers all batches in flight if a commit failed.
  private func removeFinished(_ inFlight: inout [BatchInFlight]) async {
    while let first = inFlight.first, let outcome = first.outcome.resolvedValue {
      if case .failure = outcome {
        await runner.recover(inFlight)
        inFlight = []
        return
      }
      inFlight.removeFirst()
    }
  }
}
