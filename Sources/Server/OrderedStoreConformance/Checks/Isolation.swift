// Conformance checks of isolation: readers see complete commits, in order, and only durable ones.

internal import OrderedStore

extension ConformanceCheck {
  static let isolation: [ConformanceCheck] = [
    ConformanceCheck("every read of a pinned view sees the same state") { run in
      try await run.withDatabase { database in
        let first = try await database.execute(validating: nil) { state in
          for key in UInt8(0)..<200 { try state.set([key], [key]) }
        }
        let pinned = try database.pinView()
        for round in UInt8(1)..<6 {
          _ = try await database.execute(validating: nil) { state in
            for key in UInt8(0)..<200 where key % 5 == round % 5 { try state.clear([key]) }
            try state.set([round], [99])
            try state.set([200 + round], [round])
          }
          let rows = try await pinned.read { try $0.rows(.all).map(\.value) }
          try expectEqual(rows, (UInt8(0)..<200).map { [$0] }, "the pinned view after \(round) commits")
          try expectEqual(try await pinned.read { try $0.get([7])?.value }, [7], "a row of the pinned view")
        }
        try expectEqual(pinned.version, first.version, "the version of the pinned view")
      }
    },
    ConformanceCheck("readers see complete commits only, and their versions never fall") { run in
      try await run.withDatabase { database in
        let keys = (UInt8(0)..<20).map { Key([$0]) }
        _ = try await database.execute(validating: nil) { state in
          for key in keys { try state.set(key, number: 0) }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<4 {
            group.addTask {
              for _ in 0..<40 {
                _ = try await database.execute(validating: nil) { state in
                  let next = try state.number(keys[0]) + 1
                  for key in keys { try state.set(key, number: next) }
                }
              }
            }
          }
          for _ in 0..<4 {
            group.addTask {
              var last = -1
              var lastVersion = Version.zero
              while last < 160 {
                let (version, numbers) = try await database.read(at: nil) { view in
                  (view.version, try keys.map { try view.number($0) })
                }
                try expect(Set(numbers).count == 1, "a reader saw part of a commit: \(numbers)")
                try expect(numbers[0] >= last, "a reader saw \(numbers[0]) after \(last)")
                try expect(version >= lastVersion, "a reader's version fell")
                (last, lastVersion) = (numbers[0], version)
                // Reads from memory never suspend this task, so it must yield to let the writers run.
                await Task.yield()
              }
            }
          }
          try await group.waitForAll()
        }
      }
    },
    ConformanceCheck("databases of one store are isolated from each other") { run in
      let store = try await run.open()
      var databases: [any OrderedDatabase] = []
      for index in 0..<5 {
        databases.append(try await store.database(named: "db/\(index)", history: .seconds(60)))
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, database) in databases.enumerated() {
          group.addTask {
            for round in UInt8(0)..<30 {
              _ = try await database.execute(validating: nil) { state in
                try state.set([round], [UInt8(index)])
                try state.log([UInt8(index)], nil)
              }
            }
          }
        }
        try await group.waitForAll()
      }
      _ = try await databases[1].execute(validating: nil) { try $0.clear(.all) }
      for (index, database) in databases.enumerated() {
        let values = try await database.read(at: nil) { try $0.rows(.all).map(\.value) }
        try expectEqual(
          values, Array(repeating: [UInt8(index)], count: index == 1 ? 0 : 30), "rows of \(index)")
        let log = try await database.log(after: .zero, limit: 100).map(\.payload)
        try expectEqual(log, Array(repeating: [UInt8(index)], count: 30), "log of \(index)")
      }
      try await store.close()
    },
  ]
}
