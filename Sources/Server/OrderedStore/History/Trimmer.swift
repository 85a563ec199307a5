// Takes away what lies below the history windows, in the background and in bounded steps: first a floor is raised
// (reads below are refused from then on), then log records and undo rows up to it are deleted.
//
// Invariants
//   1. What is deleted lies at or below the floor, and the floor is written in the batch that deletes.
//   2. A step looks at a bounded number of rows, so that commits never wait long behind it.
// Undo rows lie by key, not by version: a sweep walks over all of them, step by step, and begins anew once the floor
// has moved on by a part of the window.

import Locking

/// The trimmer of one store.
final class Trimmer: Sendable {
  /// The rows a step looks at.
  static let stepRows = 4000
  /// How long the log of a database without history is kept, in microseconds.
  static let logAge: UInt64 = 60_000_000

  private struct Sweep {
    var core: DatabaseCore
    /// The floor of the last sweep that came to its end.
    var done = Version.zero
  }

  private struct State {
    var sweeps: [Sweep] = []
    var stopped = false
  }

  private let engine: any StorageEngine
  private let pipeline: CommitPipeline
  private let options: StoreOptions
  private let state: Guarded<State>
  private let thread: DedicatedThread?

  init(_ engine: any StorageEngine, _ pipeline: CommitPipeline, _ options: StoreOptions) {
    self.engine = engine
    self.pipeline = pipeline
    self.options = options
    let state = Guarded(State())
    self.state = state
    guard options.trimmingIntervalMilliseconds > 0 else {
      thread = nil
      return
    }
    let trimming = Trimming(engine, pipeline, options)
    thread = DedicatedThread {
      while true {
        let stopped =
          state.wait(milliseconds: options.trimmingIntervalMilliseconds) { $0.stopped ? true : nil } ?? false
        if stopped { return }
        Trimmer.pass(state, trimming, options, eager: false)
      }
    }
  }

  func add(_ core: DatabaseCore) { state.withLock { $0.sweeps.append(Sweep(core: core)) } }

  func remove(_ core: DatabaseCore) { state.withLock { $0.sweeps.removeAll { $0.core === core } } }

  func stop() {
    state.withLock { $0.stopped = true }
    state.broadcast()
  }

  func join() { thread?.join() }

  /// Trims everything there is to trim.
  func trimAll() throws {
    Trimmer.pass(state, Trimming(engine, pipeline, options), options, eager: true)
    if let failure = pipeline.failure { throw failure }
  }

  /// One pass over all databases.
  private static func pass(
    _ state: Guarded<State>, _ trimming: Trimming, _ options: StoreOptions, eager: Bool
  ) {
    for core in state.withLock({ $0.sweeps.map(\.core) }) {
      do {
        try trim(core, state, trimming, options, eager: eager)
      } catch {
        options.report("trimming \(core.name) failed: \(error)")
      }
    }
  }

  private static func trim(
    _ core: DatabaseCore, _ state: Guarded<State>, _ trimming: Trimming, _ options: StoreOptions, eager: Bool
  ) throws {
    let now = options.clock.now()
    let window = core.history.microseconds ?? logAge
    guard now > window else { return }
    let target = min(Version(microseconds: now - window), core.standing.latestVersion)
    guard let done = state.withLock({ $0.sweeps.first { $0.core === core }?.done }) else { return }
    // Before it was created there is nothing to trim, and its whole log stays readable from the start.
    guard target > max(done, core.created) else { return }
    guard eager || target.microseconds - done.microseconds >= max(window / 16, 1_000_000) else { return }
    core.standing.raiseFloor(to: target)
    let floor = core.standing.floorVersion
    for space in [Space.log, .undo] {
      var position: Key? = core.layout.prefix(space)
      while let next = position {
        if !eager, state.withLock({ $0.stopped }) { return }
        position = try trimming.step(core, space, from: next, upTo: floor)
      }
    }
    state.withLock { state in
      guard let index = state.sweeps.firstIndex(where: { $0.core === core }) else { return }
      state.sweeps[index].done = floor
    }
  }
}

extension HistoryWindow {
  /// The window's length; nil if only open reads count.
  var microseconds: UInt64? {
    guard case .seconds(let seconds) = self else { return nil }
    let (product, overflows) = UInt64(max(seconds, 0)).multipliedReportingOverflow(by: 1_000_000)
    return overflows ? .max : product
  }
}
