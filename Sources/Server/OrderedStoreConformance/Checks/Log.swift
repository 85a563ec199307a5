// Conformance checks of the log: every logged commit is in the log on disk and is delivered to each follower (a callback
// that receives log records), in order and without gaps.

import Locking
internal import OrderedStore

extension ConformanceCheck {
  static let log: [ConformanceCheck] = [
    ConformanceCheck("the log contains every logged commit in order, in pages of any size") { run in
      try await run.withDatabase { database in
        var random = run.random
        var expected: [(Version, StoredValue)] = []
        for index in 0..<80 {
          let logs = Int.random(in: 0..<4, using: &random) > 0
          let payload = Array("\(index)".utf8)
          let committed = try await database.execute(validating: nil) { state in
            try state.set([1], payload)
            if logs { try state.log(payload, nil) }
          }
          if logs { expected.append((committed.version, payload)) }
        }
        for page in [1, 7, 1000] {
          var seen: [LogRecord] = []
          var after = Version.zero
          while case let records = try await database.log(after: after, limit: page), let last = records.last
          {
            try expect(records.count <= page, "a page of \(records.count) records, \(page) were requested")
            seen += records
            after = last.version
          }
          try expectEqual(seen.map(\.version), expected.map(\.0), "versions in pages of \(page)")
          try expectEqual(seen.map(\.payload), expected.map(\.1), "payloads in pages of \(page)")
        }
      }
    },
    ConformanceCheck("a commit may log once without writing") { run in
      try await run.withDatabase { database in
        let committed = try await database.execute(validating: nil) { try $0.log([1], nil) }
        try expect(committed.wrote, "logging counts as writing")
        try expectEqual(
          try await database.log(after: .zero, limit: 9).map(\.version), [committed.version], "the log")
        try await expectError(.limitExceeded, "two records in one commit") {
          _ = try await database.execute(validating: nil) { state in
            try state.log([1], nil)
            try state.log([2], nil)
          }
        }
      }
    },
    ConformanceCheck("log and follower together contain every record once, wherever the subscription starts")
    { run in
      try await run.withDatabase { database in
        let writers = Task {
          try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<6 {
              group.addTask {
                for round in 0..<40 {
                  _ = try await database.execute(validating: nil) { state in
                    try state.log(Array("\(writer).\(round)".utf8), round)
                  }
                }
              }
            }
            try await group.waitForAll()
          }
        }
        var followers: [(subscription: any LogSubscription, seen: Guarded<[LogRecord]>)] = []
        for _ in 0..<10 {
          let seen = Guarded<[LogRecord]>([])
          followers.append((database.follow { record in seen.withLock { $0.append(record) } }, seen))
          _ = try await database.reserveVersion()
        }
        try await writers.value
        let complete = try await database.log(after: .zero, limit: 1000).map(\.version)
        try expectEqual(complete.count, 240, "records in the log")
        try expectEqual(complete, Array(Set(complete)).sorted(), "versions of the log")
        for (subscription, seen) in followers {
          let delivered = seen.withLock { $0 }
          let before = complete.filter { $0 <= subscription.startsAfter }
          try expectEqual(
            before + delivered.map(\.version), complete, "log up to the start, then the delivered records")
          try expect(delivered.allSatisfy { $0.attachment is Int }, "a follower gets the attachment")
          _ = try await database.read(at: subscription.startsAfter) { _ in }
        }
      }
    },
    ConformanceCheck(
      "a call that is sequenced after a commit returns only after the commit was delivered to followers"
    ) { run in
      try await run.withDatabase { database in
        let newest = Guarded(Version.zero)
        let subscription = database.follow { record in newest.withLock { $0 = record.version } }
        try await withThrowingTaskGroup(of: Void.self) { group in
          for caller in 0..<8 {
            group.addTask {
              for round in 0..<25 {
                let key: Key = [UInt8(caller % 2)]
                if (round + caller) % 3 == 0 {
                  let read = try await database.execute(validating: nil) {
                    try $0.rows(.all).map(\.writtenAt).max()
                  }
                  let delivered = newest.withLock { $0 }
                  try expect(
                    (read.result ?? .zero) <= delivered, "a body returned a row before its delivery")
                } else if (round + caller) % 3 == 1 {
                  let committed = try await database.execute(validating: nil) { state in
                    try state.set(key, [])
                    try state.log([], nil)
                  }
                  try expect(
                    newest.withLock { $0 } >= committed.version, "a commit returned before its delivery")
                } else {
                  let reserved = try await database.reserveVersion()
                  let shown = try await database.read(at: reserved) {
                    try $0.rows(.all).map(\.writtenAt).max()
                  }
                  try expect((shown ?? .zero) <= newest.withLock { $0 }, "a reservation overtook a delivery")
                }
              }
            }
          }
          try await group.waitForAll()
        }
        subscription.cancel()
      }
    },
    ConformanceCheck("a follower may cancel itself and subscribe another follower during a delivery") { run in
      try await run.withDatabase { database in
        let received = Guarded<[StoredValue]>([])
        let later = Guarded<[StoredValue]>([])
        let subscriptions = Guarded<[any LogSubscription]>([])
        let first = database.follow { record in
          received.withLock { $0.append(record.payload) }
          for subscription in subscriptions.withLock({ $0 }) { subscription.cancel() }
          let next = database.follow { record in later.withLock { $0.append(record.payload) } }
          subscriptions.withLock { $0.append(next) }
        }
        subscriptions.withLock { $0.append(first) }
        for byte in UInt8(1)...3 {
          _ = try await database.execute(validating: nil) { try $0.log([byte], nil) }
        }
        try expectEqual(received.withLock { $0 }, [[1]], "records of the first follower")
        try expectEqual(later.withLock { $0 }, [[2], [3]], "records of the second follower")
        for subscription in subscriptions.withLock({ $0 }) { subscription.cancel() }
      }
    },
    ConformanceCheck("a cancelled follower receives nothing more") { run in
      try await run.withDatabase { database in
        let count = Guarded(0)
        let subscription = database.follow { _ in count.withLock { $0 += 1 } }
        _ = try await database.execute(validating: nil) { try $0.log([1], nil) }
        subscription.cancel()
        _ = try await database.execute(validating: nil) { try $0.log([2], nil) }
        try expectEqual(count.withLock { $0 }, 1, "records delivered")
      }
    },
  ]
}
