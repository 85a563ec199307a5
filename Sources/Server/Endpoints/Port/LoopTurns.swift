// The turns of one event loop. Connections with much to do there, be it bytes to take or tasks to run, wait in one line, each
// for a turn of about half a millisecond; whoever has little to do never stands in it.
//
// Invariant: between two turns the event loop looks for what others have sent. It looks only once it has carried out all that is
// due, however long that takes: what connections cause is therefore little outside turns, too.

import NIOCore
public import NIOPosix

/// What waits for turns; confined to one event loop.
protocol TurnTaker: AnyObject {
  /// Does work for about as long as a turn takes.
  func takeTurn()
}

/// Those of one event loop that wait for their turns.
///
/// `@unchecked Sendable`: each is reached through a variable of its event loop's thread only, and touched there alone.
final class LoopTurns: @unchecked Sendable {
  /// How long a turn takes, about.
  static let turn = TimeAmount.microseconds(500)
  /// The shortest time between two turns: the loop looks at its sockets only when nothing else is due.
  private static let pause = TimeAmount.microseconds(20)
  /// Each event loop has a thread of its own.
  private static let ofThread = ThreadSpecificVariable<LoopTurns>()

  private var queue = CircularBuffer<any TurnTaker>(initialCapacity: 0)
  /// Whether the loop has something scheduled that keeps it from waiting for its sockets; so it is while anyone waits.
  private var isScheduled = false
  /// Whether this loop belongs to ``EventLoops``, so that its looks at its sockets are known.
  private var isTold = false
  /// Nanoseconds of tasks outside turns since the last look at the sockets.
  private var spent: Int64 = 0

  /// Those of the calling thread, which is an event loop's.
  static var current: LoopTurns {
    if let turns = ofThread.currentValue { return turns }
    let turns = LoopTurns()
    ofThread.currentValue = turns
    return turns
  }

  /// Whether nobody waits.
  var isIdle: Bool { queue.isEmpty }

  /// Has someone wait for a turn.
  func add(_ taker: any TurnTaker, on eventLoop: any EventLoop) {
    queue.append(taker)
    schedule(on: eventLoop, in: Self.pause)
  }

  /// Whether something may still be done outside turns before the loop looks at its sockets, if that is to take so many turns
  /// at most.
  func hasTimeBesides(turns: Int64) -> Bool { !isTold || spent < turns * Self.turn.nanoseconds }

  /// Does something outside turns, and returns how many nanoseconds that took.
  @discardableResult
  func besides(_ body: () -> Void) -> Int64 {
    let began = NIODeadline.now()
    body()
    let took = (.now() - began).nanoseconds
    spent += took
    return took
  }

  /// Hears that the loop has carried out all that was due and is about to look at its sockets, which is when turns are given.
  ///
  /// What is scheduled here it would not know of yet: it would wait for its sockets. What was scheduled before keeps it from that.
  fileprivate func loopWillLook() {
    isTold = true
    spent = 0
    if isScheduled, !queue.isEmpty { giveTurns() }
  }

  private func schedule(on eventLoop: any EventLoop, in pause: TimeAmount) {
    guard !isScheduled, !queue.isEmpty else { return }
    isScheduled = true
    eventLoop.assumeIsolated().scheduleTask(in: pause) { self.isDue(on: eventLoop) }
  }

  private func isDue(on eventLoop: any EventLoop) {
    isScheduled = false
    if isTold { return schedule(on: eventLoop, in: Self.pause) }
    // Where tasks come all the time and its looks are not known, half of it is left to them and to the sockets.
    schedule(on: eventLoop, in: max(giveTurns(), Self.pause))
  }

  /// Gives turns to those in front, until a turn's time is over, and returns how long that took.
  @discardableResult
  private func giveTurns() -> TimeAmount {
    let began = NIODeadline.now()
    var took = TimeAmount.zero
    while took < Self.turn, let taker = queue.popFirst() {
      taker.takeTurn()
      took = .now() - began
    }
    return took
  }

  /// Tells the turns of each loop when it looks at its sockets.
  fileprivate struct Ticks: NIOEventLoopMetricsDelegate {
    func processedTick(info: NIOEventLoopTickInfo) { LoopTurns.current.loopWillLook() }
  }
}

/// The event loops that the server's ports run on: one for each processor, for the life of the process.
public enum EventLoops {
  /// The group, made at its first use. It is never shut down.
  public static let shared = MultiThreadedEventLoopGroup(
    numberOfThreads: System.coreCount, metricsDelegate: LoopTurns.Ticks())
}
