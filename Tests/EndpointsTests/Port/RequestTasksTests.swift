// How many requests that read are under way at once, and what becomes of those that wait.

import NIOConcurrencyHelpers
import Testing

@testable import Endpoints

@Suite("Tasks of requests")
struct RequestTasksTests {
  @Test("tasks are let in up to the most at once, then in the order in which they came")
  func line() async {
    let gate = RequestGate(2)
    let places = (0..<5).map { _ in gate.place() }
    #expect(await gate.enter(places[0]))
    #expect(await gate.enter(places[1]))
    let entered = NIOLockedValueBox<[Int]>([])
    let waiting = (2..<5).map { index in
      Task {
        let isLetIn = await gate.enter(places[index])
        entered.withLockedValue { $0.append(index) }
        return isLetIn
      }
    }
    for (index, task) in waiting.enumerated() {
      #expect(entered.withLockedValue { $0 }.count == index)
      gate.leave()
      #expect(await task.value)
    }
    #expect(entered.withLockedValue { $0 } == [2, 3, 4])
  }

  @Test("a place that is given up lets nobody in and holds up nobody")
  func givenUp() async {
    let gate = RequestGate(1)
    let (first, second, third) = (gate.place(), gate.place(), gate.place())
    #expect(await gate.enter(first))
    #expect(!first.giveUp())
    let waits = Task { await gate.enter(second) }
    #expect(second.giveUp())
    #expect(await !waits.value)
    gate.leave()
    #expect(await gate.enter(third))
    gate.leave()
    // Nobody waits: the next comes in at once.
    #expect(await gate.enter(gate.place()))
  }

  @Test("readings beyond the most wait, and one that is cancelled meanwhile never begins")
  func readings() async {
    let (gates, opened) = AsyncStream.makeStream(of: Void.self)
    let opening = Task { for await _ in gates {} }
    let begun = NIOLockedValueBox(0)
    let running = (0..<RequestTasks.mostReadings).map { _ in
      RequestTasks.startReading {
        begun.withLockedValue { $0 += 1 }
        await opening.value
      }
    }
    let (late, isLate) = AsyncStream.makeStream(of: Bool.self)
    let cancelled = RequestTasks.startReading { isLate.yield(true) }
    let waiting = RequestTasks.startReading { isLate.yield(false) }
    cancelled.cancel()
    while begun.withLockedValue({ $0 }) < RequestTasks.mostReadings { await Task.yield() }
    #expect(!running[0].cancelIfWaiting())
    opened.finish()
    var found = late.makeAsyncIterator()
    #expect(await found.next() == false)
    #expect(!waiting.cancelIfWaiting())
  }
}
