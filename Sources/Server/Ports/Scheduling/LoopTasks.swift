// Runs the tasks of a connection on its event loop, so that a request is served on the thread that read it.
//
// Decision: docs/decisions/0018-fairness-on-an-event-loop.md

package import NIOCore

/// Starts the tasks of one connection: on its event loop if the platform has task executors, otherwise on the default
/// executor.
package struct LoopTasks: Sendable {
  private let executor: (any Sendable & AnyObject)?

  /// Creates the value for one connection. Call it on the event loop.
  package init(_ eventLoop: any EventLoop) {
    if #available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *) {
      executor = LoopExecutor(eventLoop)
    } else {
      executor = nil
    }
  }

  package func start(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    if #available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *), let executor = executor as? LoopExecutor
    {
      return Task(executorPreference: executor) { await operation() }
    }
    return Task { await operation() }
  }
}

/// Runs the jobs of one connection's tasks on its event loop. Long work is divided into time slices.
///
/// An event loop polls its sockets only when no task is due. The pause between two slices lets it poll.
///
/// Invariant: jobs run in the order of their arrival.
@available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, *)
private final class LoopExecutor: TaskExecutor {
  private struct State {
    var waiting = CircularBuffer<UnownedJob>(initialCapacity: 0)
    /// The remaining nanoseconds in which jobs run immediately. When it is used up, jobs wait for a time slice.
    var allowance = LoopExecutor.slice
    var refilled = NIODeadline.now()
  }

  /// Nanoseconds of a time slice, and the maximum allowance.
  private static let slice: Int64 = 500_000
  /// The allowance grows by one nanosecond every `share` nanoseconds. Jobs that run immediately therefore take at most
  /// an eighth of the loop's time on average.
  private static let share: Int64 = 8
  private static let pause = TimeAmount.microseconds(50)

  private let eventLoop: any EventLoop
  private let state: NIOLoopBoundBox<State>

  init(_ eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
    state = NIOLoopBoundBox(State(), eventLoop: eventLoop)
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    eventLoop.execute { self.run(job) }
  }

  private func run(_ job: UnownedJob) {
    if state.value.waiting.isEmpty {
      let now = NIODeadline.now()
      let earned = (now - state.value.refilled).nanoseconds / Self.share
      state.value.allowance = min(state.value.allowance + earned, Self.slice)
      state.value.refilled = now
      if state.value.allowance > 0 {
        job.runSynchronously(on: asUnownedTaskExecutor())
        state.value.allowance = max(state.value.allowance - (.now() - now).nanoseconds, 0)
        return
      }
      scheduleSlice()
    }
    state.value.waiting.append(job)
  }

  private func scheduleSlice() {
    eventLoop.assumeIsolated().scheduleTask(in: Self.pause) { self.runSlice() }
  }

  private func runSlice() {
    let end = NIODeadline.now() + .nanoseconds(Self.slice)
    repeat {
      guard let job = state.value.waiting.popFirst() else { return }
      job.runSynchronously(on: asUnownedTaskExecutor())
    } while .now() < end
    if !state.value.waiting.isEmpty { scheduleSlice() }
  }
}
