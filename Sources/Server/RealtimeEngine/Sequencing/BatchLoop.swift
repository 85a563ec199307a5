// The task that takes operations from the queue to the store, and the one that carries out what follows.
//
// Invariants
//   1. Bodies are asked for one at a time, in the order of the queue; a batch is sequenced while those before it are
//      being synced, so that the disk is never waited for but when it is behind.
//   2. What follows from a batch is carried out in that order too, and only once its commit is durable. After a failed
//      sync the store fails everything sequenced since; all of it is taken back and answered as failed.

import OrderedStore

/// The way of one database's operations.
struct BatchLoop: Sendable {
  /// How many batches may be in flight: one being synced, one that goes next, and one being sequenced. With more, batches
  /// would be smaller and no sync would come sooner.
  static let maximumInFlight = 3

  /// Batches that weigh more are forgotten as soon as they have arrived; lighter ones with the next batch.
  private static let heavyBytes = 64 << 10

  let queue: OperationQueue
  let runner: BatchRunner
  private let maximumInFlight: Int
  private let hashes: WideHashes
  private let cleaner: Cleaner
  private let reading: LargeReading
  private let windows: WindowReading

  init(
    queue: OperationQueue, runner: BatchRunner, hashes: WideHashes, cleaner: Cleaner, reading: LargeReading,
    maximumInFlight: Int
  ) {
    self.reading = reading
    windows = WindowReading(queue, runner)
    self.cleaner = cleaner
    self.queue = queue
    self.runner = runner
    self.hashes = hashes
    self.maximumInFlight = maximumInFlight
  }

  /// Runs until the queue is closed and empty, and everything is delivered.
  func run() async {
    let (stream, stage) = AsyncStream.makeStream(of: Flight.self)
    let fanOut = Task {
      let fanOut = FanOut()
      for await flight in stream { fanOut.run(await flight.steps.value()) }
    }
    var first = await begin(stage)
    var flights: [Flight] = []
    while true {
      if flights.count >= maximumInFlight { _ = await flights[0].outcome.value() }
      await settle(&flights)
      guard let batch = first.isEmpty ? await queue.next() : first else { break }
      first = []
      if batch.isEmpty { continue }
      let isHeavy =
        batch.reduce(0) { $0 + $1.weight } > BatchLoop.heavyBytes
        || batch.contains { $0.largeRead != nil || $0.window != nil }
      let flight = runner.start(batch) { [queue] hasFailed in if hasFailed || isHeavy { queue.wake() } }
      flights.append(flight)
      stage.yield(flight)
      if let pass = await flight.sequenced.value() {
        putOff(pass.held)
        if pass.hasGarbage {
          // It looks at what is durable.
          Task { [cleaner] in
            _ = await flight.outcome.value()
            cleaner.wake()
          }
        }
      } else {
        // Nothing may overtake what has to be tried again.
        await runner.recover(flights)
        flights = []
      }
    }
    for flight in flights { _ = await flight.outcome.value() }
    await settle(&flights)
    stage.finish()
    await fanOut.value
  }

  /// Carries out what comes while nothing was ever written. The operations from the first that may write on, once there
  /// are rows for them; none at the queue's end.
  private func begin(_ stage: AsyncStream<Flight>.Continuation) async -> [RealtimeOperation] {
    while runner.rows.current == nil {
      guard let batch = await queue.next() else { break }
      let (steps, rest) = await runner.begin(batch)
      let flight = Flight([])
      flight.finish(.success(steps))
      stage.yield(flight)
      if !rest.isEmpty { return rest }
    }
    return []
  }

  /// Forgets flights that have arrived, and sees to those that failed.
  private func settle(_ flights: inout [Flight]) async {
    while let first = flights.first, let outcome = first.outcome.known {
      if case .failure = outcome {
        await runner.recover(flights)
        flights = []
        return
      }
      flights.removeFirst()
    }
  }

  /// Has done aside what operations wait for, and lets others pass meanwhile.
  private func putOff(_ held: [HeldOperation]) {
    guard !held.isEmpty else { return }
    queue.hold(held.map(\.operation))
    queue.releaseSkipped(
      held.compactMap { first in
        if case .turn = first.reason { first.operation } else { nil }
      })
    for first in held {
      switch first.reason {
      case .hash(let node): hashes.examine(first, node) { [queue] in queue.release($0) }
      case .staging(let request):
        Task { [queue, runner, cleaner] in
          var operation = first.operation
          operation.staged = await runner.stage(request, cleaner)
          queue.release(operation)
        }
      case .values(let imported, let path, let places):
        Task { [queue, runner] in queue.release(await runner.read(first.operation, imported, path, places)) }
      case .reading(let path, let read): reading.add(first.operation, path, read)
      case .window(let path, let query, let caller): windows.add(first.operation, path, query, caller)
      case .index:
        Task { [queue] in
          try? await Task.sleep(for: .milliseconds(100))
          var operation = first.operation
          operation.isTooLarge = true
          operation.backgroundReads = 0
          operation.largeRead = queue.isClosed ? .failure(LargeReading.abandoned) : nil
          queue.release(operation)
        }
      case .turn, .behindAnother: break
      }
    }
  }
}
