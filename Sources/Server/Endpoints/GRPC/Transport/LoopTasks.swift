// Tasks that run on an event loop, so that a request is served without leaving the thread that read it.

import NIOCore

/// Starts tasks on one event loop, where the platform can; elsewhere on the default executor.
struct LoopTasks: Sendable {
  private let executor: (any Sendable & AnyObject)?

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

  init(_ eventLoop: any EventLoop) {
    self.eventLoop = eventLoop
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    eventLoop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
