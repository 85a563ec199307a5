// Where requests of HTTP are carried out: on threads of their own. What is asked over REST may take milliseconds of a
// processor, and a client may ask and go without paying for the answer: on the threads that all of the process's tasks
// share, a crowd of such requests would stand in line before everything else, such as the times that other clients' reads
// wait for, and the Realtime Database's writes.

import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

enum RequestTasks {
  /// How many requests that read may be under way at once, of all connections: each may hold an answer that nobody is left
  /// to take, which shows only when it is written.
  static let mostReadings = 128
  private static let readings = RequestGate(mostReadings)

  /// Starts a task for a request that reads and ends by itself, once fewer than the most are under way.
  static func startReading(_ operation: @escaping @Sendable () async -> Void) -> ReadingTask {
    let place = readings.place()
    let task = start {
      guard await readings.enter(place) else { return }
      await operation()
      readings.leave()
    }
    return ReadingTask(task: task, place: place)
  }

  /// Starts a task for a request, where the platform can on the threads of requests; elsewhere on those of all tasks.
  static func start(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    if #available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *) {
      return Task(executorPreference: RequestExecutor.shared) { await operation() }
    }
    return Task { await operation() }
  }
}

@available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *)
private final class RequestExecutor: TaskExecutor {
  static let shared = RequestExecutor()

  private let threads: NIOThreadPool

  private init() {
    threads = NIOThreadPool(numberOfThreads: max(System.coreCount, 2))
    threads.start()
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    // The threads are never shut down, so that every job is run.
    threads.submit { _ in job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// A request that reads, under way or waiting for that.
struct ReadingTask: Sendable {
  fileprivate let task: Task<Void, Never>
  fileprivate let place: RequestGate.Place

  /// Has it end soon, or not begin.
  func cancel() {
    if !cancelIfWaiting() { task.cancel() }
  }

  /// Has it not begin. False if it has begun.
  func cancelIfWaiting() -> Bool { place.giveUp() }
}

/// Lets a number of tasks pass at a time, the others in the order in which they came.
final class RequestGate: Sendable {
  /// A task's place in the line.
  final class Place: Sendable {
    private enum State {
      case before
      case waiting(CheckedContinuation<Bool, Never>)
      case over(hasEntered: Bool)
    }

    private let state = NIOLockedValueBox(State.before)

    /// Waits until it is let in or given up.
    fileprivate func wait(_ continuation: CheckedContinuation<Bool, Never>) {
      let outcome = state.withLockedValue { state -> Bool? in
        if case .over(let hasEntered) = state { return hasEntered }
        state = .waiting(continuation)
        return nil
      }
      if let outcome { continuation.resume(returning: outcome) }
    }

    /// Lets the task in. False if it was given up.
    fileprivate func enter() -> Bool { end(hasEntered: true) }

    /// Gives the place up. False if the task was let in.
    func giveUp() -> Bool { end(hasEntered: false) }

    private func end(hasEntered: Bool) -> Bool {
      let (isFirst, waiting) = state.withLockedValue { state -> (Bool, CheckedContinuation<Bool, Never>?) in
        if case .over = state { return (false, nil) }
        defer { state = .over(hasEntered: hasEntered) }
        if case .waiting(let continuation) = state { return (true, continuation) }
        return (true, nil)
      }
      waiting?.resume(returning: hasEntered)
      return isFirst
    }
  }

  private struct State {
    var free: Int
    var waiting = CircularBuffer<Place>(initialCapacity: 0)
  }

  private let state: NIOLockedValueBox<State>

  init(_ most: Int) { state = NIOLockedValueBox(State(free: most)) }

  /// The last place in the line; the first ones are let in at once.
  func place() -> Place {
    let place = Place()
    let enters = state.withLockedValue { state in
      guard state.free > 0 else {
        state.waiting.append(place)
        return false
      }
      state.free -= 1
      return true
    }
    if enters { _ = place.enter() }
    return place
  }

  /// Waits for a place's turn. False if it was given up meanwhile.
  func enter(_ place: Place) async -> Bool {
    await withCheckedContinuation { place.wait($0) }
  }

  /// Lets the next in.
  func leave() {
    while true {
      let next = state.withLockedValue { state -> Place? in
        if let next = state.waiting.popFirst() { return next }
        state.free += 1
        return nil
      }
      guard let next, !next.enter() else { return }
    }
  }
}
