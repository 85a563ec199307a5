// Tasks that run on an event loop, so that a request is served without leaving the thread that read it.

import NIOCore

/// Starts the tasks of one connection on its event loop, where the platform can; elsewhere on the default executor.
struct LoopTasks: Sendable {
  private let executor: (any Sendable & AnyObject)?

  /// Made on the event loop.
  init(_ eventLoop: any EventLoop) {
    if #available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *) {
      executor = LoopExecutor(eventLoop)
    } else {
      executor = nil
    }
  }

  func start(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    if #available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *), let executor = executor as? LoopExecutor
    {
      return Task(executorPreference: executor) { await operation() }
    }
    return Task { await operation() }
  }
}

@available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *)
private final class LoopExecutor: TaskExecutor {
  private let eventLoop: any EventLoop
  private let jobs: NIOLoopBound<LoopJobs>

  init(_ eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    jobs = NIOLoopBound(LoopJobs(eventLoop), eventLoop: eventLoop)
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    eventLoop.execute { self.jobs.value.run(job, on: self) }
  }
}

/// The jobs of one connection's tasks. They run as they come while they take little of the event loop's time; where they
/// take more, the connection waits for its turns, however many calls it makes.
///
/// Invariant: jobs run in the order in which they came.
@available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *)
private final class LoopJobs: TurnTaker {
  /// What a connection that was idle may take at once.
  private static let burst = LoopTurns.turn.nanoseconds
  /// The share of the loop's time that it may take without turns is one of so many.
  private static let share: Int64 = 8

  private let eventLoop: any EventLoop
  private var waiting = CircularBuffer<(UnownedJob, LoopExecutor)>(initialCapacity: 0)
  /// Nanoseconds that may still be taken without turns; debts are not kept.
  private var left = LoopJobs.burst
  private var filled = NIODeadline.now()

  init(_ eventLoop: any EventLoop) { self.eventLoop = eventLoop }

  func run(_ job: UnownedJob, on executor: LoopExecutor) {
    if waiting.isEmpty {
      let turns = LoopTurns.current
      let now = NIODeadline.now()
      left = min(left + (now - filled).nanoseconds / Self.share, Self.burst)
      filled = now
      if left > 0, turns.hasTimeBesides(turns: 8) {
        left = max(left - turns.besides { job.runSynchronously(on: executor.asUnownedTaskExecutor()) }, 0)
        return
      }
      turns.add(self, on: eventLoop)
    }
    waiting.append((job, executor))
  }

  func takeTurn() {
    let end = NIODeadline.now() + LoopTurns.turn
    repeat {
      guard let (job, executor) = waiting.popFirst() else { return }
      job.runSynchronously(on: executor.asUnownedTaskExecutor())
    } while .now() < end
    if !waiting.isEmpty { LoopTurns.current.add(self, on: eventLoop) }
  }
}
