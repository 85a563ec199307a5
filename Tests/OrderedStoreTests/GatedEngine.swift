import OrderedStore

/// An engine in memory whose commits a test holds back, lets through, or makes fail.
final class GatedEngine: StorageEngine {
  struct State {
    var open = true
    var waiting = 0
    var commits = 0
    var failure: StoreError?
  }

  private let engine = MemoryEngine()
  let state = Guarded(State())

  func snapshot() -> any EngineSnapshot { engine.snapshot() }

  func makeBatch() -> any EngineBatch { engine.makeBatch() }

  func commit(_ batch: any EngineBatch, sync: Bool) throws {
    state.withLock { $0.waiting += 1 }
    state.broadcast()
    let failure = state.wait { state -> StoreError?? in
      guard state.open else { return nil }
      state.waiting -= 1
      state.commits += 1
      return .some(state.failure)
    }
    if let failure { throw failure }
    try engine.commit(batch, sync: sync)
  }

  func reclaim(from start: Key, to end: Key) {}

  func close() {}

  /// Holds commits back from now on.
  func shut() { state.withLock { $0.open = false } }

  /// Lets commits through; with an error they fail.
  func release(failing failure: StoreError? = nil) {
    state.withLock { state in
      state.open = true
      state.failure = failure
    }
    state.broadcast()
  }

  /// Waits until a commit is held back.
  func heldBack() async {
    await withCheckedContinuation { continuation in
      _ = DedicatedThread {
        self.state.wait { $0.waiting > 0 ? () : nil }
        continuation.resume()
      }
    }
  }
}
