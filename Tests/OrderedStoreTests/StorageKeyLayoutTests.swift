// Tests of the layout of keys and values on disk, and of the errors for damaged rows. An undo row is the old value of a
// row, stored for reads of the past.

import OrderedStore
import Testing

@Suite("Storage key layout")
struct StorageKeyLayoutTests {
  /// The physical rows of a range.
  private func rows(_ engine: MemoryEngine, from start: Key, to end: Key) throws -> [(
    key: Key, value: StoredValue
  )] {
    let cursor = try engine.snapshot().cursor(from: start, to: end, .memory)
    var rows: [(Key, StoredValue)] = []
    try cursor.seekToFirst()
    while cursor.isValid {
      rows.append((Key(cursor.key), StoredValue(cursor.value)))
      try cursor.next()
    }
    return rows
  }

  private func bytes(_ version: Version) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: version.microseconds >> (56 - 8 * UInt64($0))) }
  }

  @Test("Rows, undo rows and log records have the keys of the example in StorageKeyLayout")
  func documentedExample() async throws {
    let engine = MemoryEngine()
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    let database = try await store.database(named: "a", history: .seconds(60))
    let first = try await database.execute(validating: nil) { try $0.set([0x61, 0], [0x78]) }.version
    let second = try await database.execute(validating: nil) { state in
      try state.set([0x61, 0], [0x79])
      try state.log([0x7a], nil)
    }.version
    let data = try rows(engine, from: [1], to: [2])
    #expect(
      data.map(\.key) == [
        [1, 0, 0, 0, 1, 1, 0x61, 0],
        [1, 0, 0, 0, 1, 2, 0x61, 0, 0xff, 0, 1] + bytes(second),
        [1, 0, 0, 0, 1, 3] + bytes(second),
      ])
    #expect(data.map(\.value) == [bytes(second) + [0x79], bytes(first) + [0x78], [0x7a]])
    let catalogue = try rows(engine, from: [0], to: [1])
    #expect(catalogue.map(\.key) == [[0, 0x63, 0x61], [0, 0x6e], [0, 0x73], [0, 0x76]])
    #expect(catalogue[0].value == [0, 0, 0, 1] + bytes(database.createdVersion) + [1])
    #expect(catalogue[1].value == [0, 0, 0, 2])
    #expect(catalogue[2].value == [1])
    try await store.close()
  }

  @Test("A database without history writes no undo rows, and its removal leaves no rows")
  func withoutHistory() async throws {
    let engine = MemoryEngine()
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    let database = try await store.database(named: "a", history: .activeReadersOnly)
    for value in UInt8(0)..<5 { _ = try await database.execute(validating: nil) { try $0.set([1], [value]) } }
    #expect(try rows(engine, from: [1], to: [2]).count == 1)
    try await store.removeDatabase(named: "a")
    #expect(try rows(engine, from: [1], to: [2]).isEmpty)
    try await store.close()
  }

  @Test("A store of an unknown format is not opened")
  func unknownFormat() throws {
    let engine = MemoryEngine()
    let batch = engine.makeBatch()
    ([0, 0x73] as Key).withUnsafeBytes { key in
      ([9] as StoredValue).withUnsafeBytes {
        batch.put(key, UnsafeRawBufferPointer(start: nil, count: 0), $0)
      }
    }
    try engine.commit(batch)
    let error = #expect(throws: StoreError.self) { try EngineStore(engine, StoreOptions()) }
    #expect(error?.code == .corrupted)
    #expect(error?.message.contains("format 9") == true)
  }

  @Test(
    "A store whose highest permitted version (ceiling) is damaged is not opened, and the error is `corrupted`"
  )
  func damagedCeiling() throws {
    let engine = MemoryEngine()
    let batch = engine.makeBatch()
    for (key, value) in [([0, 0x73], [1]), ([0, 0x76], Array(repeating: 255, count: 8))]
      as [(Key, StoredValue)]
    {
      key.withUnsafeBytes { key in
        value.withUnsafeBytes { batch.put(key, UnsafeRawBufferPointer(start: nil, count: 0), $0) }
      }
    }
    try engine.commit(batch)
    let error = #expect(throws: StoreError.self) { try EngineStore(engine, StoreOptions()) }
    #expect(error?.code == .corrupted)
  }

  @Test(
    "A damaged row is reported as corrupted",
    arguments: [
      // The value is too short to contain a version.
      [1, 2, 3],
      // The value's version is above the version of every commit.
      [255, 0, 0, 0, 0, 0, 0, 0, 7],
    ] as [StoredValue])
  func damagedRow(_ value: StoredValue) async throws {
    let engine = MemoryEngine()
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    let database = try await store.database(named: "a", history: .seconds(60))
    let batch = engine.makeBatch()
    ([1, 0, 0, 0, 1, 1, 0x61] as Key).withUnsafeBytes { key in
      value.withUnsafeBytes {
        batch.put(key, UnsafeRawBufferPointer(start: nil, count: 0), $0)
      }
    }
    try engine.commit(batch)
    // Reads use the published snapshot. This commit publishes a snapshot that contains the damaged row.
    _ = try await database.execute(validating: nil) { try $0.set([1], [1]) }
    for read: @Sendable (any ReadView) throws -> Void in [
      { _ = try $0.get([0x61]) },
      { try $0.scan(KeyRange(prefix: [0x61]), reverse: false) { _, _, _ in true } },
    ] {
      let error = await #expect(throws: StoreError.self) { try await database.read(at: nil, read) }
      #expect(error?.code == .corrupted)
    }
    try await store.close()
  }

  @Test(
    "A damaged undo row is reported as corrupted",
    arguments: [
      // The key says that the row was replaced before the version that wrote it.
      ([0x61, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0], [0, 6, 0, 0, 0, 0, 0, 1]),
      // The key has no terminator.
      ([0x61, 0x62, 0x63, 0, 0, 0, 0, 0, 0, 0, 9], [0, 0, 0, 0, 0, 0, 0, 1]),
    ] as [(Key, StoredValue)])
  func damagedUndoRow(_ suffix: Key, _ value: StoredValue) async throws {
    let engine = MemoryEngine()
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    let database = try await store.database(named: "a", history: .seconds(60))
    let past = try await database.execute(validating: nil) { try $0.set([0x62], [1]) }.version
    let batch = engine.makeBatch()
    ([1, 0, 0, 0, 1, 2] + suffix).withUnsafeBytes { key in
      value.withUnsafeBytes { batch.put(key, UnsafeRawBufferPointer(start: nil, count: 0), $0) }
    }
    try engine.commit(batch)
    _ = try await database.execute(validating: nil) { try $0.set([0x62], [2]) }
    let error = await #expect(throws: StoreError.self) {
      try await database.read(at: past) { view in
        try view.scan(KeyRange(prefix: [0x61]), reverse: false) { _, _, _ in true }
      }
    }
    #expect(error?.code == .corrupted)
    try await store.close()
  }
}
