// Conformance checks of retention. A database keeps history for a time window. The store deletes older history in
// steps, and reads at older versions fail. History inside the window does not change, also across restarts.

internal import OrderedStore

extension ConformanceCheck {
  static let retention: [ConformanceCheck] = [
    ConformanceCheck(
      "after trimming, reads and logs inside the window are complete, and those below fail"
    ) { run in
      var random = run.random
      var model = ModelMap()
      var states: [(version: Version, model: ModelMap)] = []
      for _ in 0..<3 {
        let store = try await run.open()
        let database = try await store.database(named: "conformance/one", history: .seconds(100))
        for _ in 0..<40 {
          let writes = (0..<3).map { _ in ModelWrite.random(&random) }
          let committed = try await database.execute(validating: nil) { state in
            for write in writes { try write.apply(to: state) }
            try state.log([1], nil)
          }
          for write in writes { write.apply(to: &model, at: committed.version) }
          states.append((committed.version, model))
          run.clock.move(by: 4_000_000)
        }
        try await run.trim(store)
        try await check(database, states)
        try await store.close()
        // The floor, which is the oldest readable version, is durable: reads that failed before the restart
        // still fail.
        let again = try await run.open()
        try await check(try await again.database(named: "conformance/one", history: .seconds(100)), states)
        try await again.close()
      }
    },
    ConformanceCheck("trimming more history than fits one step does not change rows") { run in
      try await run.withStore(history: .seconds(10)) { store, database in
        let count = 5000
        let keys = (0..<count).map { Key([UInt8($0 >> 8), UInt8($0 & 255)]) }
        for round in UInt8(0)..<2 {
          _ = try await database.execute(validating: nil) { state in
            for key in keys { try state.set(key, [round]) }
          }
        }
        _ = try await database.execute(validating: nil) { state in
          for key in keys where key[1] % 2 == 0 { try state.clear(key) }
        }
        run.clock.move(by: 60_000_000)
        let late = try await database.execute(validating: nil) { try $0.set(keys[1], [9]) }
        try await run.trim(store)
        let rows = try await database.read(at: late.version) { try $0.rows(.all) }
        try expectEqual(rows.map(\.key), keys.filter { $0[1] % 2 == 1 }, "remaining keys")
        try expectEqual(rows.filter { $0.value == [1] }.count, count / 2 - 1, "rows of the second round")
      }
    },
    ConformanceCheck("a read set older than the window causes a conflict if its rows have changed") { run in
      try await run.withStore(history: .seconds(10)) { store, database in
        let read = try await database.reserveVersion()
        _ = try await database.execute(validating: nil) { try $0.set([1], [1]) }
        _ = try await database.execute(validating: nil) { try $0.clear([1]) }
        run.clock.move(by: 120_000_000)
        _ = try await database.execute(validating: nil) { try $0.set([2], [2]) }
        try await run.trim(store)
        // Trimming has deleted every row and undo row of the first key.
        for reads in [ReadSet(version: read, keys: [[1]]), ReadSet(version: read, ranges: [.all])] {
          try await expectError(.conflict, "a change that was trimmed") {
            _ = try await database.execute(validating: reads) { _ in }
          }
        }
      }
    },
  ]

  /// Checks every past state of the database: a read must return exactly that state, or fail if it is older
  /// than the oldest readable state.
  private static func check(
    _ database: any OrderedDatabase, _ states: [(version: Version, model: ModelMap)]
  ) async throws {
    let newest = states[states.count - 1].version
    let window: UInt64 = 100_000_000
    var isBelowWindow = true
    for (index, state) in states.enumerated() {
      do {
        let rows = try await database.read(at: state.version) { try $0.rows(.all) }
        try expectEqual(rows, state.model.rows, "rows at \(state.version)")
        let log = try await database.log(after: state.version, limit: 1000).map(\.version)
        try expectEqual(log, states[(index + 1)...].map(\.version), "the log after \(state.version)")
        isBelowWindow = false
      } catch let error as StoreError where error == .versionTooOld {
        try expect(isBelowWindow, "\(state.version) fails, and an older version does not")
        try expect(
          state.version.microseconds + window <= newest.microseconds + 8_000_000,
          "\(state.version) is inside the window and fails")
      }
    }
    try expect(!isBelowWindow, "the newest state is not readable")
    if states[0].version.microseconds + 2 * window < newest.microseconds {
      try await expectError(.versionTooOld, "a read far below the window") {
        _ = try await database.read(at: states[0].version) { _ in }
      }
      try await expectError(.versionTooOld, "the log far below the window") {
        _ = try await database.log(after: states[0].version, limit: 1)
      }
    }
  }
}
