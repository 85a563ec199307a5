// The trimmer of a store deletes history that is older than the history windows of its databases. It works in
// the background and in bounded steps. It first raises the floor of a database: reads below that version fail
// from then on. Then it deletes log records and undo rows (old values of rows) up to the floor.
//
// Invariants
//   1. Deleted rows are at or below the floor, and the batch that deletes them also writes the floor.
//   2. A step reads a bounded number of rows, so that commits never wait long for it.
//
// A sweep is the deletion of one database's rows up to one floor. Undo rows are ordered by key, not by version, so a sweep
// must scan all of them. The next sweep starts only after the floor can advance by one sixteenth of the window.
//
// Decision: docs/decisions/0004-history-and-reads.md

import Locking

/// The trimmer of one store.
final class Trimmer: Sendable {
  /// The maximum number of rows that a step reads.
  static let maximumStepRows = 4000
  /// The time that the log of a database without history is retained, in microseconds.
  static let logAge: UInt64 = 60_000_000

  private struct Sweep {
    var database: OpenDatabase
    /// The floor of the last completed sweep.
    var completedFloor = Version.zero
  }

  private struct State {
    var sweeps: [DatabaseNumber: Sweep] = [:]
    var isStopped = false
  }

  private let worker: Worker
  private let thread: DedicatedThread?

  init(_ engine: any StorageEngine, _ pipeline: CommitPipeline, _ options: StoreOptions) {
    let worker = Worker(engine: engine, pipeline: pipeline, options: options)
    self.worker = worker
    guard options.trimmingIntervalMilliseconds > 0 else {
      thread = nil
      return
    }
    thread = DedicatedThread {
      while true {
        let isStopped = worker.state.wait(milliseconds: options.trimmingIntervalMilliseconds) {
          $0.isStopped ? true : nil
        }
        if isStopped == true { return }
        worker.trimDatabases(force: false)
      }
    }
  }

  func add(_ database: OpenDatabase) {
    worker.state.withLock { $0.sweeps[database.layout.number] = Sweep(database: database) }
  }

  func remove(_ database: OpenDatabase) {
    worker.state.withLock { $0.sweeps[database.layout.number] = nil }
  }

  func stop() {
    worker.state.withLock { $0.isStopped = true }
    worker.state.broadcast()
  }

  func join() { thread?.join() }

  /// Trims all databases now, even if a regular pass would wait until there is more to delete. Blocks.
  func trimAll() throws {
    worker.trimDatabases(force: true)
    if let failure = worker.pipeline.failure { throw failure }
  }

  /// The part of a trimmer that its thread uses. The thread retains this part only, so that it does not keep
  /// the trimmer alive.
  private struct Worker: Sendable {
    let engine: any StorageEngine
    let pipeline: CommitPipeline
    let options: StoreOptions
    let state = Guarded(State())

    /// Makes one pass over all databases.
    /// - Parameter force: whether to trim even a little history, and also after the trimmer was stopped.
    func trimDatabases(force: Bool) {
      for sweep in state.withLock({ Array($0.sweeps.values) }) {
        do {
          try trim(sweep.database, after: sweep.completedFloor, force: force)
        } catch {
          options.report("trimming \(sweep.database.name) failed: \(error)")
        }
      }
    }

    private func trim(_ database: OpenDatabase, after completed: Version, force: Bool) throws {
      let now = options.clock.now()
      let window = database.history.microseconds ?? logAge
      guard now > window else { return }
      let target = min(Version(microseconds: now - window), database.publishedState.latestVersion)
      // Until the target has passed the creation of the database, there is nothing to trim, and the floor is not raised:
      // the complete log stays readable.
      guard target > max(completed, database.createdVersion) else { return }
      guard force || target.microseconds - completed.microseconds >= max(window / 16, 1_000_000)
      else { return }
      database.publishedState.raiseFloor(to: target)
      let floor = database.publishedState.floorVersion
      precondition(floor >= target, "invariant: the floor is raised before rows below it are deleted")
      for space in [KeySpace.log, .undo] {
        var position: Key? = database.layout.prefix(space)
        while let start = position {
          if !force, state.withLock({ $0.isStopped }) { return }
          position = try step(database, space, from: start, upTo: floor)
        }
      }
      state.withLock { $0.sweeps[database.layout.number]?.completedFloor = floor }
    }

    /// Reads rows of a key space from a position and deletes those at or below the floor.
    /// - Returns: the position of the next step; nil at the end of the key space.
    private func step(
      _ database: OpenDatabase, _ space: KeySpace, from position: Key, upTo floor: Version
    ) throws -> Key? {
      guard pipeline.failure == nil, let published = try? database.publishedState.publishedView() else {
        return nil
      }
      let end = database.layout.end(of: space)
      let cursor = try published.snapshot.cursor(from: position, to: end, .disk)
      let batch = engine.makeBatch()
      var next: Key?
      var rowCount = 0
      try cursor.seekToFirst()
      while cursor.isValid {
        let key = cursor.key
        guard rowCount < maximumStepRows else {
          next = Key(key)
          break
        }
        rowCount += 1
        guard let version = StorageKeyLayout.trailingVersion(of: key) else { throw RowReader.corruptedRow }
        if version <= floor {
          batch.delete(key)
        } else if space == .log {
          break
        }
        try cursor.next()
      }
      guard !batch.isEmpty else { return next }
      CatalogueRows.putFloor(floor, of: database.layout.number, in: batch)
      do {
        try engine.commit(batch)
      } catch {
        throw pipeline.fail(error as? StoreError ?? StoreError.unavailable("\(error)"))
      }
      return next
    }
  }
}

extension HistoryWindow {
  /// The length of the window; nil if the database retains no history.
  var microseconds: UInt64? {
    guard case .seconds(let seconds) = self else { return nil }
    let (product, overflows) = UInt64(max(seconds, 0)).multipliedReportingOverflow(by: 1_000_000)
    return overflows ? .max : product
  }
}
