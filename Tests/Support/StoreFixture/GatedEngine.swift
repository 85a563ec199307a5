// A gated storage engine keeps its rows in memory. Each commit passes a gate: tests close the gate to block commits,
// open it, or make commits fail. Tests can also make reads of single rows fail.

package import Locking
package import OrderedStore

/// A storage engine in memory whose commits pass a gate.
package final class GatedEngine: StorageEngine {
  package struct State {
    var isOpen = true
    /// The number of commits blocked at the gate.
    var waitingCount = 0
    /// The number of commits that have passed the gate.
    package var commits = 0
    /// The error of commits that pass the gate.
    var failure: StoreError?
    /// If set, reads of single rows fail if their key ends with these bytes.
    package var unreadableKeySuffix: [UInt8]?
  }

  private let engine = MemoryEngine()
  package let state = Guarded(State())

  package init() {}

  package func snapshot() -> any EngineSnapshot { Snapshot(base: engine.snapshot(), engine: self) }

  package func makeBatch() -> any EngineBatch { engine.makeBatch() }

  package func commit(_ batch: any EngineBatch) throws {
    state.withLock { $0.waitingCount += 1 }
    state.broadcast()
    let failure = state.wait { state -> StoreError?? in
      guard state.isOpen else { return nil }
      state.waitingCount -= 1
      state.commits += 1
      return .some(state.failure)
    }
    if let failure { throw failure }
    try engine.commit(batch)
  }

  package func reclaim(from start: [UInt8], to end: [UInt8]) {}

  package func close() {}

  /// Blocks commits from now on.
  package func blockCommits() { state.withLock { $0.isOpen = false } }

  /// Lets commits pass the gate. If `failure` is given, these commits fail with this error.
  package func unblock(failing failure: StoreError? = nil) {
    state.withLock { state in
      state.isOpen = true
      state.failure = failure
    }
    state.broadcast()
  }

  /// Waits until a commit is blocked at the gate.
  package func waitUntilBlocked() async {
    await withCheckedContinuation { continuation in
      _ = DedicatedThread {
        self.state.wait { $0.waitingCount > 0 ? () : nil }
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
      _ key: UnsafeRawBufferPointer, _ tier: ReadTier, _ body: (UnsafeRawBufferPointer) -> Void
    ) throws -> Bool {
      let unreadableKeySuffix = engine.state.withLock { $0.unreadableKeySuffix }
      if let unreadableKeySuffix, key.count >= unreadableKeySuffix.count,
        key.suffix(unreadableKeySuffix.count).elementsEqual(unreadableKeySuffix)
      {
        throw StoreError(.corrupted, "a row cannot be read")
      }
      return try base.get(key, tier, body)
    }

    func cursor(from start: [UInt8], to end: [UInt8], _ tier: ReadTier) throws
      -> any EngineCursor
    {
      try base.cursor(from: start, to: end, tier)
    }
  }
}
