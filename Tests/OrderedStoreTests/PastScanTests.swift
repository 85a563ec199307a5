// Tests of scans at past versions: their results, and their cost in steps and seeks. A hidden key has no row at the
// version of the scan, but has history after it.

import Locking
import OrderedStore
import RandomModels
import Testing

@Suite("Scans of the past")
struct PastScanTests {
  /// Makes a database with two keys that never change. Between them, `deletedKeys` keys are created and then
  /// deleted.
  /// - Returns: the store, the database, and the version before the keys were created.
  private func databaseWithDeletedKeys(
    _ engine: SeekCounter, deletedKeys: Int
  ) async throws -> (store: EngineStore, database: any OrderedDatabase, before: Version) {
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    let database = try await store.database(named: "a", history: .seconds(3600))
    let before = try await database.execute(validating: nil) { state in
      try state.set([0], [1])
      try state.set([9], [2])
    }.version
    for sets in [true, false] {
      _ = try await database.execute(validating: nil) { state in
        for number in 0..<deletedKeys {
          let key = [5, UInt8(number >> 8), UInt8(number & 255)]
          if sets { try state.set(key, [3]) } else { try state.clear(key) }
        }
      }
    }
    return (store, database, before)
  }

  @Test(
    "A scan of the past passes keys that were created later without a seek for each key",
    arguments: [false, true])
  func seeksOnce(reverse: Bool) async throws {
    let engine = SeekCounter()
    let (store, database, before) = try await databaseWithDeletedKeys(engine, deletedKeys: 3_000)
    let keys = try await database.read(at: before) { view in
      engine.seeks.withLock { $0 = 0 }
      var keys: [Key] = []
      try view.scan(KeyRange(start: [], end: nil), reverse: reverse) { key, _, _ in
        keys.append(Key(key))
        return true
      }
      return keys
    }
    #expect(keys == (reverse ? [[9], [0]] : [[0], [9]]))
    #expect(engine.seeks.withLock { $0 } <= 2)
    try await store.close()
  }

  @Test("The cost of reading a key in the past does not grow with its history", arguments: [false, true])
  func longHistory(reverse: Bool) async throws {
    let engine = SeekCounter()
    let store = try EngineStore(engine, StoreOptions(trimmingIntervalMilliseconds: 0))
    let database = try await store.database(named: "a", history: .seconds(3600))
    var versions: [Version] = []
    for round in UInt8(0)..<200 {
      versions.append(try await database.execute(validating: nil) { try $0.set([1], [round]) }.version)
    }
    for (round, version) in versions.enumerated().dropLast() {
      let found = try await database.read(at: version) { view in
        engine.steps.withLock { $0 = 0 }
        engine.seeks.withLock { $0 = 0 }
        var found: [UInt8] = []
        try view.scan(KeyRange(start: [], end: nil), reverse: reverse) { _, value, _ in
          found += Array(value)
          return true
        }
        return found
      }
      #expect(found == [UInt8(round)])
      #expect(engine.steps.withLock { $0 } < 24 && engine.seeks.withLock { $0 } <= 4)
      #expect(try await database.read(at: version) { try $0.get([1])?.value } == [UInt8(round)])
    }
    try await store.close()
  }

  @Test("A scan stops after a maximum number of hidden keys, and continued scans together return all rows")
  func hiddenKeyLimit() async throws {
    let engine = SeekCounter()
    let (store, database, before) = try await databaseWithDeletedKeys(engine, deletedKeys: 1_000)
    for reverse in [false, true] {
      let (parts, maximum) = try await database.read(at: before) { view in
        var parts: [[Key]] = []
        var maximum = 0
        var range = KeyRange(start: [], end: nil)
        while true {
          var keys: [Key] = []
          let hidden = try view.scan(range, reverse: reverse, maximumHidden: 64) { key, _, _ in
            keys.append(Key(key))
            return true
          }
          parts.append(keys)
          maximum = max(maximum, hidden.count)
          guard let last = hidden.last else { return (parts, maximum) }
          if reverse { range.end = last } else { range.start = last + [0] }
        }
      }
      #expect(parts.joined().map { $0 } == (reverse ? [[9], [0]] : [[0], [9]]))
      #expect(parts.count == 16 && maximum == 64)
    }
    try await store.close()
  }

  @Test("Scans that are continued in several parts return each past state of a random history")
  func randomHistory() async throws {
    var random = SeededGenerator(seed: 3)
    let store = try MemoryStore(StoreOptions(trimmingIntervalMilliseconds: 0))
    let database = try await store.database(named: "a", history: .seconds(3600))
    var rows: [Key: StoredValue] = [:]
    var states: [(Version, [Key: StoredValue])] = []
    for _ in 0..<150 {
      var changes: [(Key, StoredValue?)] = []
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let key = (0..<Int.random(in: 1...2, using: &random)).map { _ in
          UInt8.random(in: 0...2, using: &random)
        }
        changes.append(
          (
            key,
            Int.random(in: 0..<5, using: &random) < 3
              ? [UInt8.random(in: 0...255, using: &random)] : nil
          )
        )
      }
      for (key, value) in changes { rows[key] = value }
      let version = try await database.execute(validating: nil) { [changes] state in
        for (key, value) in changes {
          if let value { try state.set(key, value) } else { try state.clear(key) }
        }
      }.version
      states.append((version, rows))
    }
    for (version, rows) in states {
      for (reverse, hidden) in [(false, 1), (true, 1), (false, 3), (true, 3), (false, .max), (true, .max)] {
        let found = try await database.read(at: version) { view in
          var found: [(key: Key, value: StoredValue)] = []
          var range = KeyRange(start: [], end: nil)
          while true {
            let part = try view.scan(range, reverse: reverse, maximumHidden: hidden) { key, value, _ in
              found.append((Key(key), StoredValue(value)))
              return true
            }
            guard let last = part.last else { return found }
            if reverse { range.end = last } else { range.start = last + [0] }
          }
        }
        let expected = rows.sorted { $0.key.lexicographicallyPrecedes($1.key) }
        #expect(found.map(\.key) == (reverse ? expected.reversed() : expected).map(\.key))
        #expect(found.map(\.value) == (reverse ? expected.reversed() : expected).map(\.value))
      }
    }
    try await store.close()
  }
}

/// An engine in memory that counts the seeks and steps of its cursors.
private final class SeekCounter: StorageEngine {
  private let engine = MemoryEngine()
  let seeks = Guarded(0)
  let steps = Guarded(0)

  func snapshot() -> any EngineSnapshot { Snapshot(base: engine.snapshot(), counter: self) }
  func makeBatch() -> any EngineBatch { engine.makeBatch() }
  func commit(_ batch: any EngineBatch) throws { try engine.commit(batch) }
  func reclaim(from start: Key, to end: Key) {}
  func close() {}

  private final class Snapshot: EngineSnapshot {
    let base: any EngineSnapshot
    let counter: SeekCounter

    init(base: any EngineSnapshot, counter: SeekCounter) {
      self.base = base
      self.counter = counter
    }

    func get(
      _ key: UnsafeRawBufferPointer, _ tier: ReadTier, _ use: (UnsafeRawBufferPointer) -> Void
    ) throws -> Bool { try base.get(key, tier, use) }

    func cursor(from start: Key, to end: Key, _ tier: ReadTier) throws -> any EngineCursor {
      Cursor(base: try base.cursor(from: start, to: end, tier), counter: counter)
    }
  }

  private final class Cursor: EngineCursor {
    let base: any EngineCursor
    let counter: SeekCounter

    init(base: any EngineCursor, counter: SeekCounter) {
      self.base = base
      self.counter = counter
    }

    var isValid: Bool { base.isValid }
    var key: UnsafeRawBufferPointer { base.key }
    var value: UnsafeRawBufferPointer { base.value }

    func seekToFirst() throws { try seek { try base.seekToFirst() } }
    func seekToLast() throws { try seek { try base.seekToLast() } }
    func seek(_ key: UnsafeRawBufferPointer) throws { try seek { try base.seek(key) } }
    func seekBelow(_ key: UnsafeRawBufferPointer) throws { try seek { try base.seekBelow(key) } }
    func next() throws { try step { try base.next() } }
    func previous() throws { try step { try base.previous() } }

    private func seek(_ move: () throws -> Void) throws {
      counter.seeks.withLock { $0 += 1 }
      try move()
    }

    private func step(_ move: () throws -> Void) throws {
      counter.steps.withLock { $0 += 1 }
      try move()
    }
  }
}
