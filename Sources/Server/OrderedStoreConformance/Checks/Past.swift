// Conformance checks of past reads: a read at version v sees exactly the commits with version <= v.

internal import OrderedStore

extension ConformanceCheck {
  static let past: [ConformanceCheck] = [
    ConformanceCheck("reads at any version in the window agree with the model at that version") { run in
      try await run.withDatabase { database in
        var random = run.random
        var states: [(version: Version, model: ModelMap)] = [(database.createdVersion, ModelMap())]
        for _ in 0..<120 {
          let writes = (0..<Int.random(in: 1...5, using: &random)).map { _ in ModelWrite.random(&random) }
          let committed = try await database.execute(validating: nil) { state in
            for write in writes { try write.apply(to: state) }
          }
          var model = states[states.count - 1].model
          for write in writes { write.apply(to: &model, at: committed.version) }
          states.append((committed.version, model))
          if Int.random(in: 0..<8, using: &random) == 0 {
            states.append((try await database.reserveVersion(), model))
          }
          run.clock.move(by: Int64.random(in: 0...50, using: &random))
        }
        for _ in 0..<250 {
          let index = Int.random(in: 0..<states.count, using: &random)
          let (version, model) = states[index]
          let next =
            index + 1 < states.count ? states[index + 1].version.microseconds : version.microseconds + 1
          let between = Version(
            microseconds:
              UInt64.random(
                in: version.microseconds..<max(next, version.microseconds + 1), using: &random))
          let range = random.range()
          let reverse = Bool.random(using: &random)
          let limit = Int.random(in: 1...20, using: &random)
          let key = random.key()
          let (seen, row, shown) = try await database.read(at: between) {
            (try $0.rows(range, reverse: reverse, limit: limit), try $0.row(key), $0.version)
          }
          try expectEqual(shown, between, "the view's version")
          try expectEqual(
            seen, model.scan(range, reverse: reverse, limit: limit),
            "at \(between), \(range), reverse \(reverse)")
          try expectEqual(row, model.get(key), "at \(between), key \(key)")
        }
      }
    },
    ConformanceCheck("a read at a version above the newest fails with the error for future versions") { run in
      try await run.withDatabase { database in
        let version = try await database.execute(validating: nil) { try $0.set([1], [1]) }.version
        try await expectError(.versionInFuture, "a read above the newest version") {
          _ = try await database.read(at: Version(microseconds: version.microseconds + 1)) { _ in }
        }
      }
    },
    ConformanceCheck("a database without history can be read at its newest state only") { run in
      try await run.withDatabase(history: .activeReadersOnly) { database in
        let first = try await database.execute(validating: nil) { try $0.set([1], [1]) }.version
        let second = try await database.execute(validating: nil) { try $0.set([1], [2]) }.version
        let reserved = try await database.reserveVersion()
        for version in [second, reserved] {
          let value = try await database.read(at: version) { try $0.get([1])?.value }
          try expectEqual(value, [2], "the value at \(version)")
        }
        try await expectError(.versionTooOld, "a read at an older version") {
          _ = try await database.read(at: first) { _ in }
        }
      }
    },
    ConformanceCheck("a read in progress keeps its state while commits overwrite it") { run in
      try await run.withDatabase(history: .activeReadersOnly) { database in
        _ = try await database.execute(validating: nil) { state in
          for byte in UInt8(0)..<50 { try state.set([byte], [0]) }
        }
        // The read scans its rows many times, so that writers overwrite them during the read.
        let read = Task {
          try await database.read(at: nil) { view in
            let first = try view.rows(.all)
            for _ in 0..<200 { try expectEqual(try view.rows(.all), first, "the same view read again") }
          }
        }
        for round in UInt8(1)...40 {
          _ = try await database.execute(validating: nil) { state in
            for byte in UInt8(0)..<50 where byte % 3 == round % 3 { try state.set([byte], [round]) }
          }
        }
        try await read.value
      }
    },
  ]
}
