// Conformance checks of validation: a commit fails with a conflict if a row that it has read has changed
// since. A new row in a scanned range (a phantom) counts as a change.

import Locking
internal import OrderedStore

extension ConformanceCheck {
  static let validation: [ConformanceCheck] = [
    ConformanceCheck("a read set causes a conflict exactly if a later commit changed one of its rows") {
      run in
      try await run.withDatabase { database in
        var random = run.random
        var versions = [database.latestVersion]
        var touched: [(version: Version, keys: Set<Key>)] = []
        var model = ModelMap()
        for round in 0..<120 {
          var keys: Set<Key> = []
          for _ in 0..<2 {
            let key = random.key()
            let value = Bool.random(using: &random) ? random.value() : nil
            let changes = value != nil || model.get(key) != nil
            let committed = try await database.execute(validating: nil) { state in
              if let value { try state.set(key, value) } else { try state.clear(key) }
            }
            if let value { model.set(key, value, at: committed.version) } else { model.clear(key) }
            if changes { keys.insert(key) }
            touched.append((committed.version, keys))
            keys = []
            versions.append(committed.version)
          }
          let readVersion = versions[max(0, versions.count - 1 - Int.random(in: 0..<12, using: &random))]
          let reads = ReadSet(
            version: readVersion, keys: (0..<2).map { _ in random.key() },
            ranges: Bool.random(using: &random) ? [random.range()] : [])
          let later = touched.filter { $0.version > readVersion }.reduce(into: Set<Key>()) {
            $0.formUnion($1.keys)
          }
          let conflicts = later.contains { key in
            reads.keys.contains(key) || reads.ranges.contains { $0.contains(key) }
          }
          do {
            _ = try await database.execute(validating: reads) { _ in }
            try expect(!conflicts, "round \(round): \(reads) should conflict with \(later)")
          } catch let error as StoreError {
            try expect(error == .conflict, "round \(round): threw \(error)")
            try expect(conflicts, "round \(round): \(reads) should not conflict with \(later)")
          }
        }
      }
    },
    ConformanceCheck("a row inserted into a scanned range causes a conflict, and the body does not run") {
      run in
      for history in [HistoryWindow.seconds(3600), .activeReadersOnly] {
        let store = try await run.open()
        let database = try await store.database(named: "conformance/\(history)", history: history)
        let read = try await database.reserveVersion()
        _ = try await database.execute(validating: nil) { try $0.set([5, 1], [1]) }
        _ = try await database.execute(validating: nil) { try $0.clear([5, 1]) }
        let ranges = [KeyRange(prefix: [5])]
        try await expectError(.conflict, "an insertion and a removal since") {
          _ = try await database.execute(validating: ReadSet(version: read, ranges: ranges)) {
            try $0.set([9], [9])
          }
        }
        let ran = try await database.read(at: nil) { try $0.get([9]) != nil }
        try expect(!ran, "the body of a conflict wrote")
        _ = try await database.execute(validating: ReadSet(version: database.latestVersion, ranges: ranges)) {
          _ in
        }
        try await store.close()
      }
    },
    ConformanceCheck("a large range that was read long ago is validated without delaying later calls") {
      run in
      try await run.withDatabase { database in
        for step in 0..<20 {
          _ = try await database.execute(validating: nil) { state in
            for row in 0..<100 { try state.set([5, UInt8(step), UInt8(row)], [1]) }
          }
        }
        for change in [nil, [5, 7], [6]] as [Key?] {
          let read = try await database.reserveVersion()
          // The sequencer forgets a write after a minute.
          _ = try await database.execute(validating: nil) { try $0.set([9], [8]) }
          run.clock.move(by: 120_000_000)
          _ = try await database.execute(validating: nil) { try $0.set([9], [9]) }
          let order = Guarded<[String]>([])
          let isFilled = Guarded(false)
          database.execute(validating: nil) { _ in
            isFilled.wait { $0 ? () : nil }
          } completion: { _ in
          }
          let (outcomes, sender) = AsyncStream.makeStream(of: StoreError?.self)
          database.execute(validating: ReadSet(version: read, ranges: [KeyRange(prefix: [5])])) { _ in
            order.withLock { $0.append("validated") }
          } completion: { result in
            if case .failure(let error) = result {
              sender.yield(error as? StoreError)
            } else {
              sender.yield(nil)
            }
          }
          // The later call may change a row before or after the reader thread validates the range.
          database.execute(validating: nil) { state in
            order.withLock { $0.append("later") }
            if let change { try state.set(change, [2]) }
          } completion: { _ in
          }
          isFilled.withLock { $0 = true }
          isFilled.broadcast()
          let conflicts = change?.first == 5
          for await outcome in outcomes {
            try expectEqual(
              outcome, conflicts ? .conflict : nil, "the outcome with a change of \(change ?? [])")
            break
          }
          try expectEqual(order.withLock { $0 }, conflicts ? ["later"] : ["later", "validated"], "the order")
        }
      }
    },
    ConformanceCheck("optimistic transactions with validated reads are serializable") { run in
      try await run.withDatabase { database in
        let accounts = 6
        _ = try await database.execute(validating: nil) { state in
          for account in 0..<accounts { try state.set([1, UInt8(account)], number: 100) }
        }
        let seed = run.seed
        try await withThrowingTaskGroup(of: Int.self) { group in
          for worker in 0..<8 {
            group.addTask { try await transfers(database, accounts, seed: seed &+ UInt64(worker)) }
          }
          try await group.waitForAll()
        }
        let balances = try await database.read(at: nil) { view in
          try (0..<accounts).map { try view.number([1, UInt8($0)]) }
        }
        try expectEqual(balances.reduce(0, +), accounts * 100, "the sum over all accounts")
        // Each transfer scans the complete range, and writes the number of rows that it saw into a new marker
        // row.
        let markers = try await database.read(at: nil) { try $0.rows(KeyRange(prefix: [2])).map(\.value) }
        try expectEqual(
          Set(markers).count, markers.count, "no two transfers saw the same count: no write skew")
      }
    },
  ]

  /// Runs the transfers of one worker. Each reads outside the sequencer, validates its reads inside, and
  /// retries after a conflict.
  /// - Returns: the number of conflicts.
  private static func transfers(_ database: any OrderedDatabase, _ accounts: Int, seed: UInt64) async throws
    -> Int
  {
    var random = SeededGenerator(seed: seed)
    var conflicts = 0
    for step in 0..<12 {
      let from = UInt8.random(in: 0..<UInt8(accounts), using: &random)
      let to = (from + 1) % UInt8(accounts)
      let amount = Int.random(in: 1...10, using: &random)
      let marker: Key = [2] + Array("\(seed).\(step)".utf8)
      while true {
        let (version, balances, count) = try await database.read(at: nil) { view in
          (
            view.version, (try view.number([1, from]), try view.number([1, to])),
            try view.rows(KeyRange(prefix: [2])).count
          )
        }
        let reads = ReadSet(version: version, keys: [[1, from], [1, to]], ranges: [KeyRange(prefix: [2])])
        do {
          _ = try await database.execute(validating: reads) { state in
            try state.set([1, from], number: balances.0 - amount)
            try state.set([1, to], number: balances.1 + amount)
            try state.set(marker, number: count)
          }
          break
        } catch let error as StoreError where error == .conflict {
          conflicts += 1
        }
      }
    }
    return conflicts
  }
}
