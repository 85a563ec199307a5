// Tests of versions when the clock is set back, and of trimming history as time passes. A manual clock sets the time.

import Locking
import OrderedStore
import Testing

/// A clock that advances only when a test moves it.
final class SteppedClock: Sendable {
  private let now = Guarded<UInt64>(1_700_000_000_000_000)

  var clock: StoreClock { StoreClock { [now] in now.withLock { $0 } } }

  func move(seconds: Int64) { now.withLock { $0 = UInt64(Int64($0) + seconds * 1_000_000) } }

  var microseconds: UInt64 { now.withLock { $0 } }
}

@Suite("Versions under clock changes, and trimming of history")
struct ClockAndHistoryTests {
  @Test("Versions keep rising when the clock is set back, and the store reports this once per process")
  func clockSetBack() async throws {
    let engine = MemoryEngine()
    let clock = SteppedClock()
    let reports = Guarded<[String]>([])
    let options = StoreOptions(
      clock: clock.clock, trimmingIntervalMilliseconds: 0,
      report: { line in reports.withLock { $0.append(line) } })
    let store = try EngineStore(engine, options)
    let database = try await store.database(named: "a", history: .seconds(60))
    let first = try await database.execute(validating: nil) { try $0.set([1], [1]) }.version
    clock.move(seconds: -3600)
    for _ in 0..<3 {
      let version = try await database.execute(validating: nil) { try $0.set([1], [2]) }.version
      #expect(version > first)
    }
    #expect(reports.withLock { $0.filter { $0.contains("clock was set back") }.count } == 1)
    let last = try await database.reserveVersion()
    try await store.close()
    let again = try EngineStore(engine, options)
    #expect(reports.withLock { $0.filter { $0.contains("clock was set back") }.count } == 2)
    let reopened = try await again.database(named: "a", history: .seconds(60))
    #expect(try await reopened.reserveVersion() > last)
    try await again.close()
  }

  @Test(
    "After a kill, new versions are above every version that the killed process may have assigned, and near the clock"
  )
  func uncleanEnd() async throws {
    let engine = MemoryEngine()
    let clock = SteppedClock()
    let options = StoreOptions(clock: clock.clock, trimmingIntervalMilliseconds: 0)
    let store = try EngineStore(engine, options)
    let database = try await store.database(named: "a", history: .seconds(60))
    _ = try await database.execute(validating: nil) { try $0.set([1], [1]) }
    var reserved = Version.zero
    for _ in 0..<500 { reserved = try await database.reserveVersion() }
    // A second store opens the same engine while the first is not closed. This simulates a start after a
    // kill.
    let again = try EngineStore(engine, options)
    let reopened = try await again.database(named: "a", history: .seconds(60))
    #expect(reopened.latestVersion >= reserved)
    #expect(reopened.latestVersion.microseconds <= clock.microseconds + 110_000)
    #expect(try await reopened.read(at: reserved) { try $0.get([1])?.value } == [1])
    #expect(try await reopened.execute(validating: nil) { try $0.set([1], [2]) }.version > reserved)
    try await again.close()
    try await store.close()
  }

  @Test("Reads at versions older than the history window fail, and trimming deletes the rows and log records")
  func trimming() async throws {
    let engine = MemoryEngine()
    let clock = SteppedClock()
    let store = try EngineStore(engine, StoreOptions(clock: clock.clock, trimmingIntervalMilliseconds: 0))
    let database = try await store.database(named: "a", history: .seconds(100))
    func commit(_ value: UInt8) async throws -> Version {
      try await database.execute(validating: nil) { state in
        try state.set([1], [value])
        if value % 2 == 0 { try state.clear([2]) } else { try state.set([2], [value]) }
        try state.log([value], nil)
      }.version
    }
    var versions: [Version] = []
    for value in UInt8(1)...20 {
      versions.append(try await commit(value))
      clock.move(seconds: 10)
    }
    try await store.trimNow()
    // After 200 seconds, commits 1 to 10 are older than the window.
    for (index, version) in versions.enumerated() {
      let value = UInt8(index + 1)
      if index < 10 {
        await #expect(throws: StoreError.versionTooOld) { try await database.read(at: version) { _ in } }
        await #expect(throws: StoreError.versionTooOld) { try await database.log(after: version, limit: 9) }
      } else {
        let seen = try await database.read(at: version) { (try $0.get([1])?.value, try $0.get([2])?.value) }
        #expect(seen.0 == [value] && seen.1 == (value % 2 == 0 ? nil : [value]))
        let log = try await database.log(after: version, limit: 100).map(\.payload)
        #expect(log == (value..<20).map { [$0 + 1] })
      }
    }
    clock.move(seconds: 1000)
    try await store.trimNow()
    #expect(try await database.read(at: nil) { try $0.get([1])?.value } == [20])
    // Only the current row remains. All undo rows and log records are deleted.
    var rowCount = 0
    let cursor = try engine.snapshot().cursor(from: [1], to: [2], .memory)
    try cursor.seekToFirst()
    while cursor.isValid {
      rowCount += 1
      try cursor.next()
    }
    #expect(rowCount == 1)
    try await store.close()
  }

  @Test("The longest history window retains all history")
  func longestWindow() async throws {
    let clock = SteppedClock()
    let store = try EngineStore(
      MemoryEngine(), StoreOptions(clock: clock.clock, trimmingIntervalMilliseconds: 0))
    let database = try await store.database(named: "a", history: .seconds(.max))
    let first = try await database.execute(validating: nil) { try $0.set([1], [1]) }.version
    _ = try await database.execute(validating: nil) { try $0.set([1], [2]) }
    clock.move(seconds: 1_000_000_000)
    _ = try await database.execute(validating: nil) { try $0.set([1], [3]) }
    try await store.trimNow()
    #expect(try await database.read(at: first) { try $0.get([1])?.value } == [1])
    try await store.close()
  }

  @Test("A read set too old for the list of recent writes is validated with the stored history")
  func oldReadSets() async throws {
    let clock = SteppedClock()
    let store = try EngineStore(
      MemoryEngine(), StoreOptions(clock: clock.clock, trimmingIntervalMilliseconds: 0))
    let database = try await store.database(named: "a", history: .seconds(3600))
    _ = try await database.execute(validating: nil) { state in
      for byte in UInt8(0)..<10 { try state.set([byte], [1]) }
    }
    let read = try await database.reserveVersion()
    _ = try await database.execute(validating: nil) { try $0.set([3], [2]) }
    _ = try await database.execute(validating: nil) { try $0.clear([5]) }
    _ = try await database.execute(validating: nil) { try $0.set([20, 1], [2]) }
    clock.move(seconds: 300)
    _ = try await database.execute(validating: nil) { try $0.set([99], [1]) }
    func conflicts(_ reads: ReadSet) async throws -> Bool {
      do {
        _ = try await database.execute(validating: reads) { _ in }
        return false
      } catch let error as StoreError where error == .conflict {
        return true
      }
    }
    #expect(try await conflicts(ReadSet(version: read, keys: [[3]])))
    #expect(try await conflicts(ReadSet(version: read, keys: [[5]])))
    #expect(try await conflicts(ReadSet(version: read, ranges: [KeyRange(prefix: [20])])))
    #expect(try await conflicts(ReadSet(version: read, ranges: [KeyRange(start: [4], end: [6])])))
    #expect(
      try await !conflicts(
        ReadSet(version: read, keys: [[4], [30]], ranges: [KeyRange(start: [6], end: [10])])))
    try await store.close()
  }
}
