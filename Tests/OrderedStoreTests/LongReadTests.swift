// Tests of the limit for reads on the caller's thread, which may be an event loop. A long read must move to a reader
// thread of the store.

import Locking
import OrderedStore
import Testing

/// A task executor with a single thread, like an event loop.
private final class SingleThreadExecutor: TaskExecutor {
  private let pool = ThreadPool(threads: 1)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    pool.submit { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

@Suite("Long reads move from the caller's thread to a reader thread")
struct LongReadTests {
  private static let rows = 2000

  private func withRows(_ body: (any OrderedDatabase, Version) async throws -> Void) async throws {
    let store = try MemoryStore(StoreOptions(trimmingIntervalMilliseconds: 0))
    let database = try await store.database(named: "a", history: .seconds(60))
    var first = Version.zero
    for round in UInt8(0)..<2 {
      let version = try await database.execute(validating: nil) { state in
        for row in 0..<LongReadTests.rows { try state.set([UInt8(row >> 8), UInt8(row & 255)], [round]) }
      }.version
      if round == 0 { first = version }
    }
    try await body(database, first)
    try await store.close()
  }

  @Test("A long scan does not delay a point read on its caller's thread")
  func longScansLeaveTheThread() async throws {
    try await withRows { database, first in
      for version in [nil, first] as [Version?] {
        let loop = SingleThreadExecutor()
        let hasCompleted = Guarded(false)
        let (reached, reachedContinuation) = AsyncStream.makeStream(of: Void.self)
        let scan = Task(executorPreference: loop) {
          try await database.read(at: version) { view in
            var count = 0
            var pointReadCompleted = false
            try view.scan(KeyRange(start: [], end: nil), reverse: false) { _, _, _ in
              count += 1
              if count == LongReadTests.rows / 2 {
                reachedContinuation.finish()
                // In the middle of the scan, wait until the point read has completed. The point read could not
                // complete if this scan occupied the caller's thread.
                pointReadCompleted = hasCompleted.wait(milliseconds: 20_000) { $0 ? true : nil } ?? false
              }
              return true
            }
            return (count, pointReadCompleted)
          }
        }
        for await _ in reached {}
        let get = Task(executorPreference: loop) {
          let value = try await database.read(at: nil) { try $0.get([0, 1])?.value }
          hasCompleted.withLock { $0 = true }
          hasCompleted.broadcast()
          return value
        }
        #expect(try await get.value == [1])
        let (count, pointReadCompleted) = try await scan.value
        #expect(count == LongReadTests.rows)
        #expect(pointReadCompleted, "the scan occupied the thread until it timed out")
      }
    }
  }

  @Test(
    "Short scans and point reads run once on the caller's thread; long scans run again on a reader thread")
  func shortReadsStayOnTheThread() async throws {
    try await withRows { database, first in
      for version in [nil, first] as [Version?] {
        for (rows, runs) in [(0, 1), (1, 1), (30, 1), (1000, 2)] {
          let count = Guarded(0)
          let seen = try await database.read(at: version) { view in
            count.withLock { $0 += 1 }
            _ = try view.get([0, 7])
            var seen = 0
            guard rows > 0 else { return 0 }
            try view.scan(KeyRange(start: [], end: nil), reverse: true) { _, _, _ in
              seen += 1
              return seen < rows
            }
            return seen
          }
          #expect(seen == rows)
          #expect(
            count.withLock { $0 } == runs, "\(rows) rows at \(version.map(String.init(describing:)) ?? "now")"
          )
        }
      }
      for index in UInt8(0)..<200 {
        _ = try await database.execute(validating: nil) { try $0.log([index], nil) }
      }
      #expect(
        try await database.log(after: .zero, limit: 1000).map(\.payload) == (UInt8(0)..<200).map { [$0] })
      #expect(try await database.log(after: .zero, limit: 3).map(\.payload) == [[0], [1], [2]])
    }
  }

  @Test("A read body that catches the internal error of a long scan still runs again on a reader thread")
  func caughtMisses() async throws {
    try await withRows { database, _ in
      let seen = try await database.read(at: nil) { view in
        var seen = 0
        try? view.scan(KeyRange(start: [], end: nil), reverse: false) { _, _, _ in
          seen += 1
          return true
        }
        return seen
      }
      #expect(seen == LongReadTests.rows)
    }
  }
}
