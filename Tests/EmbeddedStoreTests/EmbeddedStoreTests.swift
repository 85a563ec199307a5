// Tests of the embedded store that need its directory: restarts, locking, and reads from disk.

import Locking
import Foundation
import EmbeddedStore
import OrderedStore
import Testing

@Suite("Embedded store")
struct EmbeddedStoreTests {
  @Test("Acknowledged commits survive a restart")
  func commitsSurviveRestart() async throws {
    let scratch = try ScratchDirectory()
    let directory = scratch.path + "/new/data"
    let store = try await EmbeddedStore.open(directory: directory)
    let database = try await store.database(named: "realtime/a", history: .seconds(3600))
    let first = try await database.execute(validating: nil) { state in
      try state.set([1], [10])
      try state.log([7], nil)
    }
    let second = try await database.execute(validating: nil) { try $0.set([1], [20]) }
    try await store.close()

    let again = try await EmbeddedStore.open(directory: directory)
    let same = try await again.database(named: "realtime/a", history: .seconds(3600))
    #expect(same.latestVersion >= second.version)
    #expect(try await same.read(at: nil) { try $0.get([1])?.value } == [20])
    #expect(try await same.read(at: first.version) { try $0.get([1])?.value } == [10])
    #expect(try await same.log(after: .zero, limit: 10).map(\.payload) == [[7]])
    try await again.close()
  }

  @Test("A clock far ahead of the newest version prevents opening, and changes nothing")
  func clockAhead() async throws {
    let scratch = try ScratchDirectory()
    let day: UInt64 = 86_400_000_000
    let start: UInt64 = 1_700_000_000_000_000
    func store(atDay days: UInt64, maximumLead: UInt64?) async throws -> EmbeddedStore {
      var options = StoreOptions(clock: StoreClock { start + days * day })
      options.maximumClockLead = maximumLead
      return try await EmbeddedStore.open(directory: scratch.path, EmbeddedOptions(store: options))
    }
    func write(_ store: EmbeddedStore) async throws -> Version {
      let database = try await store.database(named: "a", history: .activeReadersOnly)
      let version = try await database.execute(validating: nil) { try $0.set([1], [1]) }.version
      try await store.close()
      return version
    }
    _ = try await write(try await store(atDay: 0, maximumLead: 366 * day))
    let error = await #expect(throws: StoreError.self) {
      _ = try await store(atDay: 400, maximumLead: 366 * day)
    }
    #expect(
      error?.code == .clockAhead && error?.message.contains("399 days ahead") == true, "\(error as Any)")
    // The failed opening stored no version of its time, day 400. With a clock of day 300, the next version is therefore
    // of day 300.
    #expect(
      try await write(try await store(atDay: 300, maximumLead: 366 * day)).microseconds < start + 301 * day)
    #expect(try await write(try await store(atDay: 900, maximumLead: nil)).microseconds >= start + 900 * day)
  }

  @Test("Opening a directory in use fails with the process ID of its owner")
  func directoryInUse() async throws {
    let scratch = try ScratchDirectory()
    let store = try await EmbeddedStore.open(directory: scratch.path)
    let error = await #expect(throws: StoreError.self) {
      _ = try await EmbeddedStore.open(directory: scratch.path)
    }
    #expect(error?.code == .locked)
    #expect(error?.message.contains("process \(getpid())") == true)
    try await store.close()
    try await EmbeddedStore.open(directory: scratch.path).close()
  }

  @Test("After close(), also by two callers at once, the directory can be opened again")
  func directoryIsFreeAfterClose() async throws {
    let scratch = try ScratchDirectory()
    for _ in 0..<5 {
      let store = try await EmbeddedStore.open(directory: scratch.path)
      let database = try await store.database(named: "a", history: .activeReadersOnly)
      for byte in UInt8(0)..<20 {
        database.execute(validating: nil, { try $0.set([byte], [byte]) }, completion: { _ in })
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<2 { group.addTask { try await store.close() } }
        try await group.next()
        let again = try await EmbeddedStore.open(directory: scratch.path)
        // The calls that were queued when the store was closed have been executed.
        let same = try await again.database(named: "a", history: .activeReadersOnly)
        #expect(try await same.read(at: nil) { try $0.get([19])?.value } == [19])
        try await again.close()
        try await group.waitForAll()
      }
    }
  }

  @Test("No two files of a directory differ only by case, so case-insensitive file systems work")
  func caseInsensitiveFileNames() async throws {
    let scratch = try ScratchDirectory()
    let store = try await EmbeddedStore.open(directory: scratch.path)
    let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
    #expect(Set(names.map { $0.lowercased() }).count == names.count, "\(names)")
    try await store.close()
  }

  @Test("A read of rows on disk runs again on a reader thread, and later reads find the rows in memory")
  func readsFromDisk() async throws {
    let scratch = try ScratchDirectory()
    let options = EmbeddedOptions(blockCacheBytes: 32 << 20, memtableBytes: 64 << 10)
    let store = try await EmbeddedStore.open(directory: scratch.path, options)
    let database = try await store.database(named: "a", history: .seconds(3600))
    var first = Version.zero
    for round in UInt8(0)..<2 {
      for part in UInt8(0)..<20 {
        let version = try await database.execute(validating: nil) { state in
          for row in UInt8(0)..<100 {
            try state.set([part, row], [round] + Array(repeating: row, count: 300))
          }
        }.version
        if round == 0 { first = version }
      }
    }
    try await store.close()

    // The cache is empty after opening. The first read therefore needs the disk and runs twice. A later read
    // finds the rows in memory and runs once.
    let again = try await EmbeddedStore.open(directory: scratch.path, options)
    let same = try await again.database(named: "a", history: .seconds(3600))
    for (version, round) in [(nil, 1), (first, 0)] as [(Version?, UInt8)] {
      var runs: [Int] = []
      // Compaction may replace cached blocks, so several reads may need the disk before one finds its rows in
      // memory.
      while runs.last != 1, runs.count < 200 {
        let count = Guarded(0)
        let rows = try await same.read(at: version) { view in
          count.withLock { $0 += 1 }
          var rows = 0
          // The range has few enough rows for a scan on the caller's thread.
          try view.scan(KeyRange(start: [3, 20], end: [3, 60]), reverse: false) { key, value, _ in
            rows += value[0] == round && value[1] == key[1] ? 1 : 0
            return true
          }
          return rows
        }
        #expect(rows == 40)
        runs.append(count.withLock { $0 })
      }
      #expect(runs.first == 2 && runs.last == 1, "runs of the body: \(runs)")
    }
    #expect(try await same.read(at: nil) { try $0.get([3, 4])?.value.first } == 1)
    #expect(try await same.read(at: first) { try $0.get([3, 4])?.value.first } == 0)
    try await again.close()
  }

  @Test("Reads of tables that are not open find existing rows, and no absent rows")
  func readsOfClosedTables() async throws {
    let scratch = try ScratchDirectory()
    var options = EmbeddedOptions(blockCacheBytes: 32 << 20, memtableBytes: 64 << 10)
    options.maximumOpenTables = 20
    // Every start writes one table with the rows of the log. RocksDB merges tables only when there are more
    // than four.
    for round in UInt8(0)..<16 {
      let store = try await EmbeddedStore.open(directory: scratch.path, options)
      let database = try await store.database(named: "a", history: .activeReadersOnly)
      for part in UInt8(0)..<16 where part < round {
        #expect(try await database.read(at: nil) { try $0.get([part, 1])?.value } == [part], "\(round)")
        #expect(try await database.read(at: nil) { try $0.get([part, 2])?.value } == nil, "\(round)")
      }
      _ = try await database.execute(validating: nil) { state in
        for row in [UInt8(0), 1, 3] { try state.set([round, row], [round]) }
      }
      try await store.close()
    }
  }

  @Test("The rows of a removed database are absent after a restart")
  func removedDatabase() async throws {
    let scratch = try ScratchDirectory()
    let store = try await EmbeddedStore.open(directory: scratch.path)
    for name in ["a", "b"] {
      let database = try await store.database(named: name, history: .seconds(60))
      _ = try await database.execute(validating: nil) { state in
        for byte in UInt8(0)..<100 { try state.set([byte], [1]) }
      }
    }
    try await store.removeDatabase(named: "a")
    try await store.close()
    let again = try await EmbeddedStore.open(directory: scratch.path)
    #expect(try await again.databaseNames() == ["b"])
    for (name, expected) in [("a", 0), ("b", 100)] {
      let database = try await again.database(named: name, history: .seconds(60))
      let count = try await database.read(at: nil) { view in
        var count = 0
        try view.scan(KeyRange(start: [], end: nil), reverse: true) { _, _, _ in
          count += 1
          return true
        }
        return count
      }
      #expect(count == expected)
    }
    try await again.close()
  }

  @Test("Opening a directory that is a file or cannot be created fails with the system's reason")
  func invalidDirectories() async throws {
    let scratch = try ScratchDirectory()
    let file = scratch.path + "/file"
    #expect(FileManager.default.createFile(atPath: file, contents: nil))
    for (path, reason) in [(file, "not a directory"), (file + "/below", "Not a directory")] {
      let error = await #expect(throws: StoreError.self) { _ = try await EmbeddedStore.open(directory: path) }
      #expect(error?.code == .unavailable)
      #expect(error?.message.localizedCaseInsensitiveContains(reason) == true, "\(error?.message ?? "")")
    }
  }
}
