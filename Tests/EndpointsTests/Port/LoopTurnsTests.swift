// The turns of an event loop: many jobs of one connection hold up nobody else's, none is lost, and their order stays.

import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import Testing

@testable import Endpoints

@Suite("Turns of an event loop")
struct LoopTurnsTests {
  @Test("a connection with much to do leaves the loop to others between its turns")
  func others() async throws {
    let loop = EventLoops.shared.next()
    let (busy, light) = try await loop.submit { (LoopTasks(loop), LoopTasks(loop)) }.get()
    let done = NIOLockedValueBox(0)
    let jobs = 400
    let all = (0..<jobs).map { _ in
      busy.start {
        let end = NIODeadline.now() + .microseconds(200)
        while .now() < end {}
        done.withLockedValue { $0 += 1 }
      }
    }
    var most = 0
    for _ in 0..<20 {
      let before = done.withLockedValue { $0 }
      let ran = NIOLockedValueBox(0)
      await light.start { ran.withLockedValue { $0 = done.withLockedValue { $0 } } }.value
      let after = ran.withLockedValue { $0 }
      if after < jobs { most = max(most, after - before) }
    }
    for task in all { await task.value }
    #expect(done.withLockedValue { $0 } == jobs)
    // A turn takes three such jobs; a machine that is busy lets more run before the light one is handed to the loop.
    #expect(most < jobs / 4)
  }

  @Test("jobs run in the order in which they came, in turns or not")
  func order() async throws {
    let loop = EventLoops.shared.next()
    let tasks = try await loop.submit { LoopTasks(loop) }.get()
    let order = NIOLockedValueBox<[Int]>([])
    let all = try await loop.submit {
      (0..<300).map { index in
        tasks.start {
          let end = NIODeadline.now() + .microseconds(20)
          while .now() < end {}
          order.withLockedValue { $0.append(index) }
        }
      }
    }.get()
    for task in all { await task.value }
    #expect(order.withLockedValue { $0 } == Array(0..<300))
  }

  @Test("what waits for a turn gets one, also where nothing else happens on the loop")
  func idle() async throws {
    for loop in [EventLoops.shared.next(), EventLoops.shared.next()] {
      let taken = loop.makePromise(of: Void.self)
      try await loop.submit { LoopTurns.current.add(Taker(3, taken, loop), on: loop) }.get()
      try await taken.futureResult.get()
    }
  }

  /// Takes a number of turns, each asked for in the one before.
  private final class Taker: TurnTaker {
    private var left: Int
    private let taken: EventLoopPromise<Void>
    private let loop: any EventLoop

    init(_ turns: Int, _ taken: EventLoopPromise<Void>, _ loop: any EventLoop) {
      left = turns
      self.taken = taken
      self.loop = loop
    }

    func takeTurn() {
      left -= 1
      if left > 0 { LoopTurns.current.add(self, on: loop) } else { taken.succeed() }
    }
  }
}
