// Conformance checks of commits in flight, which are sequenced but not durable yet. Later commits overwrite,
// clear and insert their rows again. The stored rows, their history and the log must be the same as after a
// serial execution.

internal import OrderedStore

extension ConformanceCheck {
  static let inFlight: [ConformanceCheck] = [
    ConformanceCheck("the history of rows overwritten and cleared in flight is complete") { run in
      try await run.withDatabase { database in
        let seed = run.seed
        // All calls are queued together, so most rows are replaced before they are durable.
        let commits = try await withThrowingTaskGroup(of: (Version, [ModelWrite]).self) { group in
          for index in 0..<80 {
            group.addTask {
              var random = SeededGenerator(seed: seed &* 1000 &+ UInt64(index))
              let writes = (0..<Int.random(in: 1...6, using: &random)).map { _ in ModelWrite.random(&random) }
              let committed = try await database.execute(validating: nil) { state in
                for write in writes { try write.apply(to: state) }
                try state.log([], nil)
              }
              return (committed.version, writes)
            }
          }
          var commits: [(Version, [ModelWrite])] = []
          for try await commit in group { commits.append(commit) }
          return commits.sorted { $0.0 < $1.0 }
        }
        try expectEqual(Set(commits.map(\.0)).count, commits.count, "distinct versions of commits")
        let logged = try await database.log(after: .zero, limit: 1000).map(\.version)
        try expectEqual(logged, commits.map(\.0), "the log")
        var model = ModelMap()
        for (version, writes) in commits {
          for write in writes { write.apply(to: &model, at: version) }
          let (forwards, backwards) = try await database.read(at: version) {
            (try $0.rows(.all), try $0.rows(.all, reverse: true))
          }
          try expectEqual(forwards, model.rows, "rows at \(version)")
          try expectEqual(backwards, model.rows.reversed(), "rows at \(version), backwards")
        }
        let now = try await database.read(at: nil) { try $0.rows(.all) }
        try expectEqual(now, model.rows, "rows after all commits")
      }
    },
    ConformanceCheck("inserted rows are read, scanned, overwritten and kept in history like other rows") {
      run in
      try await run.withDatabase { database in
        var random = run.random
        var model = ModelMap()
        var states: [(Version, ModelMap)] = []
        for _ in 0..<80 {
          let writes = (0..<4).map { _ in ModelWrite.random(&random) }
          let committed = try await database.execute(validating: nil) { state in
            for write in writes {
              // The body reads the key first, because `insert` requires that it has no row. The read sees
              // durable rows, rows in flight and the rows that the body has written.
              if case .set(let key, let value) = write, try state.get(key) == nil {
                try state.insert(key, value)
              } else {
                try write.apply(to: state)
              }
            }
            try expectEqual(try state.rows(.all).count, Set(try state.rows(.all).map(\.key)).count, "keys")
          }
          for write in writes { write.apply(to: &model, at: committed.version) }
          states.append((committed.version, model))
        }
        for (version, then) in states {
          let rows = try await database.read(at: version) { try $0.rows(.all) }
          try expectEqual(rows, then.rows, "rows at \(version)")
        }
      }
    },
    ConformanceCheck("a row inserted, cleared and inserted again by commits in flight is one row") { run in
      try await run.withDatabase { database in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<60 {
            group.addTask {
              _ = try await database.execute(validating: nil) { state in
                if try state.get([7]) == nil {
                  try state.insert([7], number: try state.number([8]))
                } else {
                  try state.clear([7])
                }
                try state.set([8], number: try state.number([8]) + 1)
              }
            }
          }
          try await group.waitForAll()
        }
        let rows = try await database.read(at: nil) { try $0.rows(.all).map(\.value) }
        try expectEqual(rows, [Array("60".utf8)], "rows after an even number of toggles")
        let read = ReadSet(version: database.createdVersion, keys: [[7]])
        try await expectError(.conflict, "insertions since it was read") {
          _ = try await database.execute(validating: read) { _ in }
        }
      }
    },
    ConformanceCheck("the empty key is a valid key below all others") { run in
      try await run.withDatabase { database in
        let first = try await database.execute(validating: nil) { state in
          try state.set([], [1])
          try state.set([0], [2])
        }
        _ = try await database.execute(validating: nil) { try $0.set([], [3]) }
        let now = try await database.read(at: nil) { try $0.rows(.all).map(\.value) }
        try expectEqual(now, [[3], [2]], "values now")
        let then = try await database.read(at: first.version) {
          try $0.rows(.all, reverse: true).map(\.value)
        }
        try expectEqual(then, [[2], [1]], "values then, backwards")
        try await expectError(.conflict, "a write since") {
          _ = try await database.execute(validating: ReadSet(version: first.version, keys: [[]])) { _ in }
        }
        _ = try await database.execute(validating: nil) { try $0.clear(KeyRange(start: [], end: [0])) }
        let remaining = try await database.read(at: nil) { try $0.rows(.all).map(\.key) }
        try expectEqual(remaining, [[0]], "remaining keys")
      }
    },
    ConformanceCheck("a database removed with commits in flight completes each call and leaves no rows") {
      run in
      let store = try await run.open()
      let database = try await store.database(named: "a", history: .seconds(60))
      let outcomes = try await withThrowingTaskGroup(of: Bool.self) { group in
        for index in UInt8(0)..<60 {
          group.addTask {
            do {
              _ = try await database.execute(validating: nil) { state in
                try state.set([index], [index])
                try state.log([index], nil)
              }
              return true
            } catch let error as StoreError {
              try expect(error.code == .unavailable, "a write during the removal threw \(error)")
              return false
            }
          }
          if index == 30 {
            group.addTask {
              try await store.removeDatabase(named: "a"); return true
            }
          }
        }
        return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
      }
      try expect(outcomes >= 1, "the removal completes")
      let fresh = try await store.database(named: "a", history: .seconds(60))
      try expectEqual(
        try await fresh.read(at: nil) { try $0.rows(.all).count }, 0, "rows of the new database")
      try expectEqual(try await fresh.log(after: .zero, limit: 99).count, 0, "log of the new database")
      try await store.close()
    },
  ]
}

extension SequencedTransaction {
  /// Stores a number under a free key.
  fileprivate func insert(_ key: Key, number: Int) throws { try insert(key, Array(String(number).utf8)) }
}
