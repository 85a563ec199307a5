// A clocked test port is a Firestore port over an engine in memory. The test sets the clock of the engine's store. It
// serves tests of behaviour that depends on time.

import Access
import FirestoreEngine
import FirestoreModel
import FirestoreProtobuf
import Locking
import OrderedStore

/// A port on a real socket, and its store's clock.
struct ClockedTestPort {
  let client: GRPCTestClient
  private let store: MemoryStore
  private let microseconds: Guarded<UInt64>

  static func with(
    policy: any AccessPolicy<FirestoreAccess> = OpenPolicy(), _ body: (ClockedTestPort) async throws -> Void
  ) async throws {
    let microseconds = Guarded<UInt64>(1_800_000_000_000_000)
    let clock = StoreClock { microseconds.withLock { $0 } }
    let store = try MemoryStore(StoreOptions(clock: clock, trimmingIntervalMilliseconds: 0))
    try await FirestoreTestPort.with(store: store, policy: policy) { port in
      try await body(ClockedTestPort(client: port.client, store: store, microseconds: microseconds))
    }
    try await store.close()
  }

  /// Advances the clock, and commits a write at the new time.
  func advance(minutes: UInt64) async throws {
    microseconds.withLock { $0 += minutes * 60_000_000 }
    // The history window ends at the latest commit, so a commit is needed to move it.
    try await write([.set("clock/tick", ["n": .int(Int64(minutes))])])
    try await store.trimNow()
  }

  /// Commits writes as an administrator, whom every access policy permits.
  @discardableResult
  func write(_ writes: [Proto.Write]) async throws -> Google_Firestore_V1_CommitResponse {
    var request = Google_Firestore_V1_CommitRequest()
    request.database = FirestoreTestServer.database
    request.writes = writes
    return try await client.unary("Commit", request, metadata: [("authorization", "Bearer owner")])
  }
}
