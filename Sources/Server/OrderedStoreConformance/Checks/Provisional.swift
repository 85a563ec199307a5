// Conformance checks of provisional databases: the first commit creates them. Without a commit they leave no trace in
// the store.

import Locking
internal import OrderedStore

extension ConformanceCheck {
  static let provisional: [ConformanceCheck] = [
    ConformanceCheck("a provisional database exists from its first commit on, with its first rows") { run in
      let store = try await run.open()
      let database = try await store.provisionalDatabase(named: "a", history: .seconds(60))
      database.setFirstRows { try $0.set([9], [9]) }
      let reserved = try await database.reserveVersion()
      _ = try await database.execute(validating: nil) { try $0.clear([1]) }
      try await expectStop { _ = try await database.execute(validating: nil) { _ in throw Stop() } }
      try await expectStop {
        _ = try await database.execute(validating: nil) { state in
          try state.set([1], [1])
          throw Stop()
        }
      }
      let before = try await database.read(at: nil) { try $0.rows(.all).count }
      try expectEqual(before, 0, "rows before the first commit")
      try expect(try await !store.databaseExists(named: "a"), "reads and failed bodies created the database")
      try expectEqual(try await store.databaseNames(), [], "names before the first commit")

      let first = try await database.execute(validating: nil) { try $0.set([1], [1]) }
      try expect(first.version > reserved, "the first commit is not above the reservation")
      try expect(try await store.databaseExists(named: "a"), "the first commit did not create the database")
      _ = try await database.execute(validating: nil) { try $0.set([2], [2]) }
      let past = try await database.read(at: reserved) { try $0.rows(.all).count }
      try expectEqual(past, 0, "rows at the reservation")
      try await store.close()

      let again = try await run.open()
      try expectEqual(try await again.databaseNames(), ["a"], "names after a restart")
      let reopened = try await again.provisionalDatabase(named: "a", history: .seconds(60))
      try expectEqual(reopened.createdVersion, database.createdVersion, "the version of creation")
      let rows = try await reopened.read(at: nil) { try $0.rows(.all).count }
      try expectEqual(rows, 3, "rows after a restart")
      try await again.close()
    },
    ConformanceCheck("provisional databases have separate rows, independent of the order of their creation") {
      run in
      let store = try await run.open()
      let first = try await store.provisionalDatabase(named: "a", history: .seconds(60))
      let second = try await store.provisionalDatabase(named: "b", history: .activeReadersOnly)
      _ = try await store.provisionalDatabase(named: "unused", history: .seconds(60))
      _ = try await second.execute(validating: nil) { try $0.set([2], [2]) }
      let third = try await store.database(named: "c", history: .seconds(60))
      _ = try await third.execute(validating: nil) { try $0.set([3], [3]) }
      _ = try await first.execute(validating: nil) { try $0.set([1], [1]) }
      // `database(named:history:)` creates the provisional database. Its first commit still writes the rows that
      // `setFirstRows` has set.
      let fourth = try await store.provisionalDatabase(named: "d", history: .seconds(60))
      fourth.setFirstRows { try $0.set([4], [4]) }
      _ = try await store.database(named: "d", history: .seconds(60))
      try expect(try await store.databaseExists(named: "d"), "the open database was not created")
      _ = try await fourth.execute(validating: nil) { try $0.log([4], nil) }
      try await store.close()
      let again = try await run.open()
      try expectEqual(try await again.databaseNames(), ["a", "b", "c", "d"], "names after a restart")
      for (name, key) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] as [(String, UInt8)] {
        let database = try await again.database(named: name, history: .seconds(60))
        let rows = try await database.read(at: nil) { try $0.rows(.all).map(\.key) }
        try expectEqual(rows, [[key]], "rows of \(name)")
      }
      try await again.close()
    },
    ConformanceCheck("a provisional database opened again starts above the versions of the released one") {
      run in
      let store = try await run.open()
      var last = Version.zero
      for _ in 0..<3 {
        let database = try await store.provisionalDatabase(named: "a", history: .seconds(60))
        let reserved = try await database.reserveVersion()
        try expect(reserved > last, "a reservation at \(reserved) after \(last)")
        last = reserved
        run.clock.move(by: -3_600_000_000)
      }
      try await store.close()
      let again = try await run.open()
      let database = try await again.provisionalDatabase(named: "a", history: .seconds(60))
      try expect(database.createdVersion > last, "created at \(database.createdVersion), not after \(last)")
      try await again.close()
    },
    ConformanceCheck("followers of a provisional database receive its first commit") { run in
      let store = try await run.open()
      let database = try await store.provisionalDatabase(named: "a", history: .seconds(60))
      let records = Guarded<[StoredValue]>([])
      let subscription = database.follow { record in records.withLock { $0.append(record.payload) } }
      _ = try await database.execute(validating: nil) { try $0.log([7], nil) }
      try expectEqual(records.withLock { $0 }, [[7]], "records")
      subscription.cancel()
      try await store.close()
    },
  ]

  private struct Stop: Error {}

  private static func expectStop(_ body: () async throws -> Void) async throws {
    do { try await body() } catch is Stop { return }
    throw ConformanceFailure("a body that throws has a result")
  }
}
