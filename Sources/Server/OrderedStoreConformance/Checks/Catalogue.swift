// Conformance checks of the catalogue: databases are found by name, numbered once, and removed completely.

internal import OrderedStore

extension ConformanceCheck {
  static let catalogue: [ConformanceCheck] = [
    ConformanceCheck("database names are listed in order, also after restarts") { run in
      let names = ["b", "a/ü", "a/u", "a", "realtime/x", "firestore/projects/p/databases/(default)"]
      let store = try await run.open()
      for name in names {
        try expect(try await !store.databaseExists(named: name), "\(name) exists before it was opened")
        _ = try await store.database(named: name, history: .activeReadersOnly)
        try expect(try await store.databaseExists(named: name), "\(name) does not exist once opened")
      }
      try await store.close()
      let again = try await run.open()
      for name in names {
        try expect(try await again.databaseExists(named: name), "\(name) does not exist after a restart")
      }
      for name in ["", "c", "a/", "realtime", String(repeating: "x", count: 5000)] {
        try expect(
          try await !again.databaseExists(named: name),
          "\(name.prefix(9)) exists although it was never opened")
      }
      let sorted = names.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
      try expectEqual(try await again.databaseNames(), sorted, "names")
      try await again.close()
    },
    ConformanceCheck("a database opened twice is one database with one creation version") { run in
      let store = try await run.open()
      let first = try await store.database(named: "a", history: .seconds(60))
      let second = try await store.database(named: "a", history: .seconds(60))
      _ = try await first.execute(validating: nil) { try $0.set([1], [1]) }
      let value = try await second.read(at: nil) { try $0.get([1])?.value }
      try expectEqual(value, [1], "a row written through the other handle")
      let created = first.createdVersion
      try await store.close()
      let again = try await run.open()
      let reopened = try await again.database(named: "a", history: .seconds(60))
      try expectEqual(reopened.createdVersion, created, "the version of creation")
      let empty = try await reopened.read(at: created) { try $0.rows(.all).count }
      try expectEqual(empty, 0, "rows at creation")
      try await again.close()
    },
    ConformanceCheck(
      "a removed database has no rows, and a new database of its name starts above its versions"
    ) { run in
      let store = try await run.open()
      let other = try await store.database(named: "b", history: .seconds(60))
      let database = try await store.database(named: "a", history: .seconds(60))
      for target in [database, other] {
        _ = try await target.execute(validating: nil) { state in
          try state.set([1], [1])
          try state.log([1], nil)
        }
      }
      try await store.removeDatabase(named: "a")
      try await store.removeDatabase(named: "never there")
      try await expectError(.unavailable, "a write to a removed database") {
        _ = try await database.execute(validating: nil) { try $0.set([1], [2]) }
      }
      try expectEqual(try await store.databaseNames(), ["b"], "names after the removal")
      try expect(try await !store.databaseExists(named: "a"), "the removed database exists")
      let last = database.latestVersion
      run.clock.move(by: -3_600_000_000)
      let fresh = try await store.database(named: "a", history: .seconds(60))
      try expect(
        fresh.createdVersion > last, "the new database starts at \(fresh.createdVersion), not after \(last)")
      let rows = try await fresh.read(at: nil) { try $0.rows(.all).count }
      try expectEqual(rows, 0, "rows of the new database")
      try expect(try await fresh.log(after: .zero, limit: 9).isEmpty, "log of the new database")
      let otherValue = try await other.read(at: nil) { try $0.get([1])?.value }
      try expectEqual(otherValue, [1], "a row of the other database")
      try await store.close()
    },
    ConformanceCheck("a database created again after a restart starts above the versions of the removed one")
    { run in
      let store = try await run.open()
      let database = try await store.database(named: "a", history: .seconds(60))
      run.clock.move(by: 60_000_000)
      let last = try await database.execute(validating: nil) { try $0.set([1], [1]) }.version
      try await store.removeDatabase(named: "a")
      try await store.close()
      run.clock.move(by: -3_600_000_000)
      let again = try await run.open()
      let fresh = try await again.database(named: "a", history: .seconds(60))
      try expect(
        fresh.createdVersion > last, "the new database starts at \(fresh.createdVersion), not after \(last)")
      try await again.close()
    },
  ]
}
