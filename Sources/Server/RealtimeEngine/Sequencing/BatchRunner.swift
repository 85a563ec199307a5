// Takes batches through the store. One commit a batch: what waited during the last sync shares the next.

import OrderedStore
import RealtimeModel

/// Runs batches one after another.
struct BatchRunner: Sendable {
  let store: any OrderedDatabase
  let sequencer: Sequencer

  /// Runs a batch; every operation in it gets its steps, whatever happens to the store.
  func run(_ batch: [Operation]) async -> [FanOutStep] {
    let sequencer = sequencer
    do {
      return try await store.execute(validating: nil) { try sequencer.run(batch, in: $0) }.result
    } catch {
      sequencer.bodyFailed()
      let error = RealtimeError(storeError: error)
      if batch.count == 1 || error.status == .unavailable { return await answer(batch, with: error) }
      // One of them was too much for a commit: each gets its own, so that only that one fails.
      var steps: [FanOutStep] = []
      for operation in batch { steps += await run([operation]) }
      return steps
    }
  }

  /// Reads go on while nothing can be written; writes are answered with the error.
  private func answer(_ batch: [Operation], with error: RealtimeError) async -> [FanOutStep] {
    let sequencer = sequencer
    do {
      return try await store.read(at: nil) { try sequencer.run(batch, reading: $0, failure: error) }
    } catch let readError {
      let failure = RealtimeError(storeError: readError)
      return batch.map { .answer($0.origin, .failure(failure)) }
    }
  }

  /// Carries out a read on the newest durable state.
  func read(_ operation: Operation) async throws(RealtimeError) -> Operation.CallResult {
    let sequencer = sequencer
    let steps: [FanOutStep]
    do {
      steps = try await store.read(at: nil) { try sequencer.read(operation, in: $0) }
    } catch { throw RealtimeError(storeError: error) }
    guard case .answer(_, let answer)? = steps.first else { throw RealtimeError(.failure, "internal error") }
    return try answer.callResult.get()
  }

  /// Ends the sessions that a process before this one left behind, before anyone is connected.
  ///
  /// Many share a commit; if that is too much for one they get their own, and one that is too much even so is forgotten,
  /// so that it cannot keep the database from opening.
  func fireLeftovers() async throws(RealtimeError) {
    let sequencer = sequencer
    do {
      var sessions = try await store.read(at: nil) { try SequencedBody.sessions(in: $0) }[...]
      while !sessions.isEmpty {
        let some = Array(sessions.prefix(256))
        sessions = sessions.dropFirst(some.count)
        do {
          _ = try await store.execute(validating: nil) { writer in
            try sequencer.run(in: writer) { try $0.fire(some) }
          }
        } catch let error as StoreError where error.code == .limitExceeded {
          for session in some { try await fireAlone(session) }
        }
      }
    } catch { throw RealtimeError(storeError: error) }
  }

  private func fireAlone(_ session: String) async throws {
    let sequencer = sequencer
    do {
      _ = try await store.execute(validating: nil) { writer in
        try sequencer.run(in: writer) { try $0.fire([session]) }
      }
    } catch let error as StoreError where error.code == .limitExceeded {
      _ = try await store.execute(validating: nil) { writer in
        try sequencer.run(in: writer) { try $0.forget(session) }
      }
    }
  }
}

extension RealtimeError {
  /// What a caller is told of a failure of the store.
  init(storeError error: any Error) {
    switch error {
    case let error as RealtimeError: self = error
    case let error as StoreError where error.code == .limitExceeded: self = .writeTooBig
    case let error as StoreError: self.init(.unavailable, error.message)
    default: self.init(.failure, "internal error")
    }
  }
}
