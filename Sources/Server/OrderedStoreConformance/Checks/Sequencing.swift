// Conformance checks of `execute`, which runs the caller's closure (the body) in the store. Bodies run one at
// a time, in the order of the calls. Each body sees all commits before it, and its writes apply completely or
// not at all.

internal import OrderedStore

private struct BodyError: Error {}

extension ConformanceCheck {
  static let sequencing: [ConformanceCheck] = [
    ConformanceCheck("concurrent increments of one key are all counted") { run in
      try await run.withDatabase(history: .activeReadersOnly) { database in
        try await withThrowingTaskGroup(of: Version.self) { group in
          for _ in 0..<20 {
            group.addTask {
              var last = Version.zero
              for _ in 0..<25 {
                let committed = try await database.execute(validating: nil) { state in
                  let number = try state.number([1]) + 1
                  try state.set([1], number: number)
                  return number
                }
                try expect(committed.version > last, "versions seen by one caller rise")
                try expect(committed.wrote, "an increment writes")
                last = committed.version
                let seen = try await database.read(at: nil) { try $0.number([1]) }
                try expect(seen >= committed.result, "an acknowledged increment is visible")
              }
              return last
            }
          }
          try await group.waitForAll()
        }
        let total = try await database.read(at: nil) { try $0.number([1]) }
        try expectEqual(total, 500, "the sum of all increments")
      }
    },
    ConformanceCheck("a body that throws writes nothing, and the next body sees none of its writes") { run in
      try await run.withDatabase { database in
        let before = try await database.execute(validating: nil) { state in
          try state.set([1], [1])
          try state.set([2], [2])
        }
        let failing = Task {
          try await database.execute(validating: nil) { state -> Void in
            try state.set([1], [9])
            try state.clear([2])
            try state.set([3], [9])
            try state.log([9], nil)
            throw BodyError()
          }
        }
        do {
          _ = try await failing.value
          throw ConformanceFailure("the body's error was not thrown")
        } catch is BodyError {}
        let state = try await database.execute(validating: nil) { try $0.rows(.all).map(\.value) }
        try expectEqual(state.result, [[1], [2]], "rows after the failed body")
        try expectEqual(state.version, before.version, "the version after the failed body")
        try expect(try await database.log(after: .zero, limit: 10).isEmpty, "a failed body logs nothing")
      }
    },
    ConformanceCheck("a body that writes nothing commits nothing and returns the version of the state it saw")
    { run in
      try await run.withDatabase { database in
        let wrote = try await database.execute(validating: nil) { try $0.set([1], [1]) }
        let read = try await database.execute(validating: nil) { try $0.get([1])?.value }
        try expectEqual(read.result, [1], "the value that the body saw")
        try expectEqual(read.version, wrote.version, "the version of the state that the body saw")
        try expect(!read.wrote, "reading is not writing")
        let cleared = try await database.execute(validating: nil) { try $0.clear([2]) }
        try expect(!cleared.wrote, "clearing an absent key is not writing")
        try expectEqual(database.latestVersion, wrote.version, "the newest version")
      }
    },
    ConformanceCheck("a body that changes nothing can reserve a new version") { run in
      try await run.withDatabase { database in
        var last = try await database.execute(validating: nil) { try $0.set([1], [1]) }.version
        for _ in 0..<3 {
          let reserved = try await database.execute(validating: nil) { state in
            state.reserveCommitVersion()
            try state.clear([2])
            return state.commitVersion
          }
          try expect(!reserved.wrote, "reserving a version is not writing")
          try expectEqual(reserved.version, reserved.result, "the reserved version")
          try expect(reserved.version > last, "a reserved version is above all earlier versions")
          try expectEqual(database.latestVersion, reserved.version, "the newest version")
          let written = try await database.read(at: nil) { try $0.get([1])?.writtenAt }
          try expect(written.map { $0 < reserved.version } == true, "nothing was written")
          last = try await database.reserveVersion()
          try expect(last > reserved.version, "a later reservation is above it")
        }
        try expect(
          try await database.log(after: .zero, limit: 10).isEmpty, "reserving a version logs nothing")
      }
    },
    ConformanceCheck("a body sees its own writes at the version of its commit") { run in
      try await run.withDatabase { database in
        let committed = try await database.execute(validating: nil) { state in
          try state.set([1], [1])
          return (state.commitVersion, state.version, try state.get([1])?.writtenAt)
        }
        try expectEqual(committed.result.0, committed.version, "commitVersion")
        try expectEqual(committed.result.1, committed.version, "version")
        try expectEqual(committed.result.2, committed.version, "writtenAt of an own write")
        let stored = try await database.read(at: nil) { try $0.get([1])?.writtenAt }
        try expectEqual(stored, committed.version, "writtenAt of the stored row")
      }
    },
    ConformanceCheck("a reserved version is above every earlier commit and below every later one") { run in
      try await run.withDatabase { database in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<8 {
            group.addTask {
              var last = Version.zero
              for _ in 0..<20 {
                let commit = try await database.execute(validating: nil) { state in
                  try state.set([1], number: try state.number([1]) + 1)
                }
                let reserved = try await database.reserveVersion()
                try expect(commit.version > last, "a commit is above the versions reserved before it")
                try expect(reserved > commit.version, "a reservation is above the commits before it")
                let now = try await database.read(at: reserved) { try $0.number([1]) }
                let again = try await database.read(at: reserved) { try $0.number([1]) }
                try expectEqual(again, now, "a reserved version always shows the same state")
                last = reserved
              }
            }
          }
          try await group.waitForAll()
        }
      }
    },
    ConformanceCheck(
      "a range that concurrent commits clear and fill contains exactly the rows of the last fill"
    ) { run in
      try await run.withDatabase { database in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for round in UInt8(0)..<40 {
            group.addTask {
              _ = try await database.execute(validating: nil) { state in
                let before = try state.rows(KeyRange(prefix: [5])).map(\.value)
                try expect(Set(before).count <= 1, "a body saw rows of two fills: \(before)")
                try expect(before.isEmpty || before.count == 10, "a body saw \(before.count) of 10 rows")
                try state.clear(KeyRange(prefix: [5]))
                for byte in UInt8(0)..<10 { try state.set([5, byte], [round]) }
              }
            }
          }
          try await group.waitForAll()
        }
        let rows = try await database.read(at: nil) { try $0.rows(KeyRange(prefix: [5])).map(\.value) }
        try expect(rows.count == 10 && Set(rows).count == 1, "the last fill is complete: \(rows)")
      }
    },
  ]
}
