// Tests the tasks that run on an event loop.

import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

@testable import Ports

@Suite("Tasks on an event loop")
struct LoopTasksTests {
  @Test("Tasks run on their event loop in the order in which they were started")
  func order() async throws {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let order = NIOLockedValueBox<[Int]>([])
    let all = try await loop.submit {
      let tasks = LoopTasks(loop)
      return (0..<300).map { index in
        tasks.start {
          loop.preconditionInEventLoop()
          order.withLockedValue { $0.append(index) }
        }
      }
    }.get()
    for task in all { await task.value }
    #expect(order.withLockedValue { $0 } == Array(0..<300))
  }
}
