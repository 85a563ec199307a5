// Conformance checks of key order: scans of any range in both directions agree with a naive model, over durable
// rows, rows in flight and a body's own writes.

internal import OrderedStore

extension ConformanceCheck {
  static let ordering: [ConformanceCheck] = [
    ConformanceCheck("scans and reads of random ranges agree with the model") { run in
      try await run.withDatabase { database in
        var random = run.random
        var model = ModelMap()
        for round in 0..<150 {
          let writes = (0..<Int.random(in: 1...8, using: &random)).map { _ in ModelWrite.random(&random) }
          let committed = try await database.execute(validating: nil) { state in
            for write in writes { try write.apply(to: state) }
          }
          for write in writes { write.apply(to: &model, at: committed.version) }
          let range = random.range()
          let reverse = Bool.random(using: &random)
          let limit = Int.random(in: 1...20, using: &random)
          let key = random.key()
          let (seen, row) = try await database.read(at: nil) {
            (try $0.rows(range, reverse: reverse, limit: limit), try $0.row(key))
          }
          try expectEqual(
            seen, model.scan(range, reverse: reverse, limit: limit),
            "round \(round), \(range), reverse \(reverse)")
          try expectEqual(row, model.get(key), "round \(round), key \(key)")
        }
        let rows = try await database.read(at: nil) { try $0.rows(.all) }
        try expectEqual(rows, model.rows, "all rows")
      }
    },
    ConformanceCheck("a body sees its own writes and those in flight, in order") { run in
      try await run.withDatabase { database in
        let seed = run.seed
        // All calls are queued together, so most bodies run over commits that are not durable yet.
        try await withThrowingTaskGroup(of: Void.self) { group in
          for index in 0..<60 {
            group.addTask {
              _ = try await database.execute(validating: nil) { state in
                var random = SeededGenerator(seed: seed &+ UInt64(index))
                var model = ModelMap()
                for row in try state.rows(.all) { model.set(row.key, row.value, at: row.writtenAt) }
                for _ in 0..<6 {
                  let write = ModelWrite.random(&random)
                  try write.apply(to: state)
                  write.apply(to: &model, at: state.commitVersion)
                  let range = random.range()
                  let reverse = Bool.random(using: &random)
                  try expectEqual(
                    try state.rows(range, reverse: reverse), model.scan(range, reverse: reverse), "\(range)")
                  let key = random.key()
                  try expectEqual(try state.row(key), model.get(key), "key \(key)")
                }
              }
            }
          }
          try await group.waitForAll()
        }
      }
    },
    ConformanceCheck(
      "scans and reads nested in a scan see the same state, in the present, in the past and in a body"
    ) {
      run in
      try await run.withDatabase { database in
        let keys = (UInt8(0)..<12).map { Key([$0, 0]) }
        let first = try await database.execute(validating: nil) { state in
          for key in keys { try state.set(key, [1]) }
        }
        _ = try await database.execute(validating: nil) { state in
          for key in keys where key[0] % 3 == 0 { try state.set(key, [2]) }
        }
        @Sendable func nested(_ view: any ReadView) throws -> [StoredValue] {
          var seen: [StoredValue] = []
          let rows = try view.rows(.all, reverse: true)
          try view.scan(.all, reverse: false) { key, value, writtenAt in
            let key = Key(key)
            let row = ModelRow(key: key, value: StoredValue(value), writtenAt: writtenAt)
            try expectEqual(try view.row(key), row, "the row at the scan")
            try expectEqual(try view.rows(.all, reverse: true), rows, "a scan nested in a scan")
            seen.append(row.value)
            return true
          }
          return seen
        }
        let now = keys.map { [$0[0] % 3 == 0 ? UInt8(2) : 1] }
        try expectEqual(try await database.read(at: nil, nested), now, "values now")
        try expectEqual(
          try await database.read(at: first.version, nested), keys.map { _ in [1] }, "values then")
        try expectEqual(
          try await database.execute(validating: nil) { try nested($0) }.result, now, "in a body")
      }
    },
    ConformanceCheck("a body may write while it scans, and the scan shows the state at its start") { run in
      try await run.withDatabase { database in
        _ = try await database.execute(validating: nil) { state in
          for byte in UInt8(0)..<10 { try state.set([byte], [byte]) }
        }
        let seen = try await database.execute(validating: nil) { state in
          var seen: [UInt8] = []
          try state.scan(.all, reverse: false) { key, _, _ in
            seen.append(key[0])
            try state.clear([key[0]])
            try state.set([key[0], 1], [])
            return true
          }
          return seen
        }
        try expectEqual(seen.result, Array(0..<10), "keys visited")
        let remaining = try await database.read(at: nil) { try $0.rows(.all).map(\.key) }
        try expectEqual(remaining, (UInt8(0)..<10).map { [$0, 1] }, "remaining keys")
      }
    },
  ]
}
