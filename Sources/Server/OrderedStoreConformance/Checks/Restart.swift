// Conformance checks of restarts: rows, history and log survive a restart. Versions continue to rise, also if
// the clock was set back.

internal import OrderedStore

extension ConformanceCheck {
  static let restart: [ConformanceCheck] = [
    ConformanceCheck("rows, history and log survive restarts") { run in
      var random = run.random
      var model = ModelMap()
      var states: [(Version, ModelMap)] = []
      var logged: [Version] = []
      for _ in 0..<4 {
        let store = try await run.open()
        let database = try await store.database(named: "conformance/one", history: .seconds(3600))
        let rows = try await database.read(at: nil) { try $0.rows(.all) }
        try expectEqual(rows, model.rows, "rows after a restart")
        for (version, then) in states {
          let rows = try await database.read(at: version) { try $0.rows(.all) }
          try expectEqual(rows, then.rows, "rows at \(version) after a restart")
        }
        let records = try await database.log(after: .zero, limit: 1000).map(\.version)
        try expectEqual(records, logged, "the log after a restart")
        for _ in 0..<15 {
          let write = ModelWrite.random(&random)
          let committed = try await database.execute(validating: nil) { state in
            try write.apply(to: state)
            try state.log([1], nil)
          }
          write.apply(to: &model, at: committed.version)
          states.append((committed.version, model))
          logged.append(committed.version)
        }
        try await store.close()
      }
    },
    ConformanceCheck("versions rise over restarts although the clock was set back") { run in
      var last = Version.zero
      for round in 0..<5 {
        let store = try await run.open()
        let database = try await store.database(named: "conformance/one", history: .seconds(3600))
        if round > 0 {
          try expect(
            database.latestVersion >= last,
            "the newest version fell to \(database.latestVersion) from \(last)")
          _ = try await database.read(at: last) { _ in }
        }
        for _ in 0..<5 {
          let committed = try await database.execute(validating: nil) { try $0.set([1], [UInt8(round)]) }
            .version
          try expect(committed > last, "a commit at \(committed) after \(last)")
          let reserved = try await database.reserveVersion()
          try expect(reserved > committed, "a reservation at \(reserved) after \(committed)")
          let reservedByBody = try await database.execute(validating: nil) { $0.reserveCommitVersion() }
            .version
          try expect(
            reservedByBody > reserved, "a version reserved by a body at \(reservedByBody) after \(reserved)")
          run.clock.move(by: 2_000_000)
          let recent = try await database.recentVersion(within: 1_000_000)
          try expect(recent >= reservedByBody, "a recent version at \(recent) after \(reservedByBody)")
          try expect(
            recent.microseconds + 1_000_000 >= run.clock.clock.now(),
            "a recent version is too old: \(recent)")
          let again = try await database.recentVersion(within: 1_000_000)
          try expectEqual(again, recent, "a version that is still recent")
          last = recent
        }
        try await store.close()
        run.clock.move(by: round % 2 == 0 ? -3_600_000_000 : 1_000_000)
      }
    },
    ConformanceCheck("a closed store rejects every call") { run in
      let store = try await run.open()
      let database = try await store.database(named: "conformance/one", history: .activeReadersOnly)
      try await store.close()
      try await expectError(.unavailable, "a write") {
        _ = try await database.execute(validating: nil) { _ in }
      }
      try await expectError(.unavailable, "a read") { _ = try await database.read(at: nil) { _ in } }
      try await expectError(.unavailable, "a reservation") { _ = try await database.reserveVersion() }
      try await expectError(.unavailable, "opening") {
        _ = try await store.database(named: "conformance/two", history: .activeReadersOnly)
      }
      try await store.close()
    },
  ]
}
