// One batch on its way through the store: from the moment its body is asked for until its commit is durable or has failed.

import OrderedStore

/// A batch in flight.
final class Flight: Sendable {
  let batch: [RealtimeOperation]
  let journal = SessionJournal()
  /// Known once the next batch may be sequenced: what the body left if it ended, nil if there is nothing.
  let sequenced = Promise<OperationExecutor.BatchResult?>()
  /// What the store said: the commit is durable, or why not.
  let outcome = Promise<Result<[FanOutStep], any Error>>()
  /// What the fan-out stage is to do; comes later than `outcome` if the batch has to be tried again.
  let steps = Promise<[FanOutStep]>()

  init(_ batch: [RealtimeOperation]) { self.batch = batch }

  func finish(_ result: Result<[FanOutStep], any Error>) {
    if case .success(let done) = result { steps.resolve(done) }
    outcome.resolve(result)
    sequenced.resolve(nil)
  }
}
