// Conformance checks of the limits: keys up to 32 KiB, values up to 16 MiB and commits up to 64 MiB are stored.
// Larger ones fail and write nothing.

internal import OrderedStore

extension ConformanceCheck {
  static let limits: [ConformanceCheck] = [
    ConformanceCheck("keys of 32 KiB are stored, found, scanned and read in the past") { run in
      try await run.withDatabase { database in
        let zeros = Key(repeating: 0, count: 32 << 10)
        let ones = Key(repeating: 255, count: 32 << 10)
        let first = try await database.execute(validating: nil) { state in
          try state.set(zeros, [1])
          try state.set(ones, [2])
        }
        _ = try await database.execute(validating: nil) { state in
          try state.clear(zeros)
          try state.set(ones, [3])
        }
        let now = try await database.read(at: nil) { try $0.rows(.all).map(\.value) }
        try expectEqual(now, [[3]], "values now")
        let then = try await database.read(at: first.version) {
          try $0.rows(.all, reverse: true).map(\.value)
        }
        try expectEqual(then, [[2], [1]], "values then")
        for key in [zeros, ones] {
          try await expectError(.limitExceeded, "a key of 32 KiB and one byte") {
            _ = try await database.execute(validating: nil) { try $0.set(key + [1], []) }
          }
          try await expectError(.limitExceeded, "clearing a key of 32 KiB and one byte") {
            _ = try await database.execute(validating: nil) { try $0.clear(key + [1]) }
          }
        }
      }
    },
    ConformanceCheck("values of 16 MiB are stored, overwritten and read in the past") { run in
      try await run.withDatabase { database in
        let large = StoredValue(repeating: 7, count: 16 << 20)
        let first = try await database.execute(validating: nil) { try $0.set([1], large) }
        _ = try await database.execute(validating: nil) { try $0.set([1], [1]) }
        let then = try await database.read(at: first.version) { try $0.get([1])?.value.count }
        try expectEqual(then, large.count, "bytes of the value then")
        let now = try await database.read(at: nil) { try $0.get([1])?.value }
        try expectEqual(now, [1], "the value now")
        try await expectError(.limitExceeded, "a value of 16 MiB and one byte") {
          _ = try await database.execute(validating: nil) { try $0.set([1], large + [1]) }
        }
        let after = try await database.read(at: nil) { try $0.get([1])?.value }
        try expectEqual(after, [1], "the value after a failed write")
      }
    },
    ConformanceCheck("a commit of 64 MiB is stored, and a commit of one byte more fails and writes nothing") {
      run in
      try await run.withDatabase(history: .activeReadersOnly) { database in
        let large = StoredValue(repeating: 7, count: 16 << 20)
        // The commit has four keys of one byte, and a log record that is one byte too long or just fits.
        for (record, fits) in [(13, false), (12, true)] {
          let commit = {
            _ = try await database.execute(validating: nil) { state in
              for byte in UInt8(0)..<3 { try state.set([byte], large) }
              try state.set([3], StoredValue(large.dropLast(16)))
              try state.log(StoredValue(repeating: 1, count: record), nil)
            }
          }
          if fits {
            try await commit()
          } else {
            try await expectError(.limitExceeded, "a commit of 64 MiB and a byte", commit)
          }
          let rows = try await database.read(at: nil) { view in
            try (UInt8(0)..<4).filter { try view.get([$0]) != nil }.count
          }
          try expectEqual(rows, fits ? 4 : 0, "rows")
          let records = try await database.log(after: .zero, limit: 9).map(\.payload.count)
          try expectEqual(records, fits ? [record] : [], "bytes of log records")
        }
      }
    },
    ConformanceCheck(
      "a commit just below 64 MiB is stored and read in the past, and clearing its range counts only the keys"
    ) { run in
      try await run.withDatabase { database in
        let large = StoredValue(repeating: 7, count: (16 << 20) - 1024)
        let first = try await database.execute(validating: nil) { state in
          for byte in UInt8(0)..<4 { try state.set([byte], large) }
          try state.log([1], nil)
        }
        _ = try await database.execute(validating: nil) { try $0.clear(.all) }
        for byte in UInt8(0)..<4 {
          let then = try await database.read(at: first.version) { try $0.get([byte])?.value.count }
          try expectEqual(then, large.count, "bytes of value \(byte) then")
        }
        let now = try await database.read(at: nil) { try $0.rows(.all).count }
        try expectEqual(now, 0, "rows now")
      }
    },
    ConformanceCheck("a commit that would add more than 256 MiB to history fails and removes nothing") {
      run in
      try await run.withDatabase { database in
        let large = StoredValue(repeating: 7, count: (16 << 20) - 100)
        for byte in UInt8(0)..<17 {
          _ = try await database.execute(validating: nil) { try $0.insert([byte], large) }
        }
        try await expectError(.limitExceeded, "clearing 272 MiB") {
          _ = try await database.execute(validating: nil) { try $0.clear(.all) }
        }
        let remaining = try await database.execute(validating: nil) { state in
          try state.clear([0])
          return try (UInt8(0)..<17).filter { try state.get([$0]) != nil }.count
        }
        try expectEqual(remaining.result, 16, "rows after one more was removed")
      }
    },
    ConformanceCheck("concurrent large commits all succeed") { run in
      try await run.withDatabase(history: .activeReadersOnly) { database in
        let large = StoredValue(repeating: 7, count: 12 << 20)
        try await withThrowingTaskGroup(of: Void.self) { group in
          for index in UInt8(0)..<10 {
            group.addTask {
              _ = try await database.execute(validating: nil) { state in
                try state.set([index], large)
                try state.set([100], number: try state.number([100]) + 1)
              }
            }
          }
          try await group.waitForAll()
        }
        let count = try await database.read(at: nil) { try $0.number([100]) }
        try expectEqual(count, 10, "commits")
        for index in UInt8(0)..<10 {
          let size = try await database.read(at: nil) { try $0.get([index])?.value.count }
          try expectEqual(size, large.count, "bytes of value \(index)")
        }
      }
    },
    ConformanceCheck("database names have 1 to 1,024 bytes") { run in
      let store = try await run.open()
      let longest = String(repeating: "n", count: 1024)
      try expectEqual(
        try await store.database(named: longest, history: .activeReadersOnly).name, longest, "name")
      for name in [longest + "n", ""] {
        try await expectError(.limitExceeded, "a name of \(name.utf8.count) bytes") {
          _ = try await store.database(named: name, history: .activeReadersOnly)
        }
      }
      try await store.close()
    },
  ]
}
