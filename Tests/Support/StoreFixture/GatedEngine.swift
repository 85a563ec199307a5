// The engine in memory with a gate: a test holds its commits back, lets them through or makes them fail, and makes reads of
// single rows fail.

package import Locking
package import OrderedStore

/// An engine in memory whose commits a test holds back, lets through, or makes fail.
package final class GatedEngine: StorageEngine {
  package struct State {
    var open = true
    var waiting = 0
    /// How many commits have passed the gate.
    package var commits = 0
    var failure: StoreError?
    /// Reads of single rows whose keys hold these bytes fail.
    package var unreadable: [UInt8]?
  }

  private let engine = MemoryEngine()
  package let state = Guarded(State())

  package init() {}

  package func snapshot() -> any EngineSnapshot { Snapshot(base: engine.snapshot(), engine: self) }

  package func makeBatch() -> any EngineBatch { engine.makeBatch() }

  package func commit(_ batch: any EngineBatch) throws {
    state.withLock { $0.waiting += 1 }
    state.broadcast()
    let failure = state.wait { state -> StoreError?? in
      guard state.open else { return nil }
      state.waiting -= 1
      state.commits += 1
      return .some(state.failure)
    }
    if let failure { throw failure }
    try engine.commit(batch)
  }

  package func reclaim(from start: [UInt8], to end: [UInt8]) {}

  package func close() {}

  /// Holds commits back from now on.
  package func blockCommits() { state.withLock { $0.open = false } }

  /// Lets commits through; with an error they fail.
  package func unblock(failing failure: StoreError? = nil) {
    state.withLock { state in
      state.open = true
      state.failure = failure
    }
    state.broadcast()
  }

  /// Waits until a commit is held back.
  package func waitUntilBlocked() async {
    await withCheckedContinuation { continuation in
      _ = DedicatedThread {
        self.state.wait { $0.waiting > 0 ? () : nil }
        continuation.resume()
      }
    }
  }

  private final class Snapshot: EngineSnapshot {
    let base: any EngineSnapshot
    let engine: GatedEngine

    init(base: any EngineSnapshot, engine: GatedEngine) {
      self.base = base
      self.engine = engine
    }

    func get(
      _ key: UnsafeRawBufferPointer, _ tier: ReadTier, _ use: (UnsafeRawBufferPointer) -> Void
    ) throws -> Bool {
      let unreadable = engine.state.withLock { $0.unreadable }
      if let unreadable, key.count >= unreadable.count, key.suffix(unreadable.count).elementsEqual(unreadable)
      {
        throw StoreError(.corrupted, "a row cannot be read")
      }
      return try base.get(key, tier, use)
    }

    func cursor(from start: [UInt8], to end: [UInt8], _ tier: ReadTier) throws
      -> any EngineCursor
    {
      try base.cursor(from: start, to: end, tier)
    }
  }
}
