// Runs one conformance check on one store, with a manual clock and a seed.

import Locking
internal import OrderedStore

/// One run of a check: the subject, its clock and its source of random choices.
final class ConformanceRun: Sendable {
  let clock = ManualClock()
  let seed: UInt64
  private let subject: any StoreSubject

  init(_ subject: any StoreSubject, seed: UInt64) {
    self.subject = subject
    self.seed = seed
  }

  /// Opens the store with the run's clock.
  func open() async throws -> any OrderedStore {
    try await subject.open(StoreOptions(clock: clock.clock, trimmingIntervalMilliseconds: 0))
  }

  /// Trims a store that is open.
  func trim(_ store: any OrderedStore) async throws { try await subject.trim(store) }

  /// Opens the store and one database, runs `body`, and closes the store.
  func withDatabase(
    history: HistoryWindow = .seconds(3600), _ body: (any OrderedDatabase) async throws -> Void
  ) async throws {
    try await withStore(history: history) { _, database in try await body(database) }
  }

  /// Opens the store and one database, runs `body` with both, and closes the store.
  func withStore(
    history: HistoryWindow, _ body: (any OrderedStore, any OrderedDatabase) async throws -> Void
  ) async throws {
    let store = try await open()
    try await body(store, try await store.database(named: "conformance/one", history: history))
    try await store.close()
  }

  /// A generator of random choices, determined by the seed.
  var random: SeededGenerator { SeededGenerator(seed: seed) }
}

/// A clock that advances by a microsecond with every reading. A check can also move it by larger steps, forwards or back.
final class ManualClock: Sendable {
  private let now = Guarded<UInt64>(1_700_000_000_000_000)

  var clock: StoreClock {
    StoreClock { [now] in
      now.withLock { now in
        now += 1
        return now
      }
    }
  }

  func move(by microseconds: Int64) {
    now.withLock { $0 = UInt64(Int64($0) + microseconds) }
  }
}

/// SplitMix64: returns the same numbers for the same seed on every platform.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 0x632B_E59B_D9B4_E019 }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// A short key of few different byte values, including 0 and 255. Random keys therefore often collide or
  /// are prefixes of each other.
  mutating func key() -> Key {
    let alphabet: [UInt8] = [0, 1, 0x61, 0xfe, 0xff]
    return (0..<Int.random(in: 1...4, using: &self)).map { _ in
      alphabet[Int.random(in: 0..<alphabet.count, using: &self)]
    }
  }

  mutating func value() -> StoredValue {
    (0..<Int.random(in: 0...12, using: &self)).map { _ in UInt8.random(in: 0...255, using: &self) }
  }

  /// A range. Some ranges have no end, and some are empty.
  mutating func range() -> KeyRange {
    let start = Int.random(in: 0..<5, using: &self) == 0 ? [] : key()
    return KeyRange(start: start, end: Int.random(in: 0..<4, using: &self) == 0 ? nil : key())
  }
}
