// What the process is told by signals, from before its start to its end.
//
// Invariants: from the first SIGTERM or SIGINT on it is gone within the time that was promised; a second one ends it at
// once; SIGHUP never ends it. All of that on a queue of its own, since the pools may be what is stuck.

import Dispatch
import Logging
import NIOConcurrencyHelpers
import NIOCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

/// The signals of this process, heard from its making on.
///
/// `@unchecked Sendable`: the sources are touched while it is made and when it goes, all else is locked.
final class ProcessSignals: @unchecked Sendable {
  private struct State {
    var isReady = false
    /// The signal that asked the process to leave.
    var stop: Int32?
    var lastHeard: NIODeadline?
    var onStop: [@Sendable () -> Void] = []
  }

  /// How long a server may take to leave that has nothing to export.
  private static let secondsToLeave = 9.5
  /// And one that has.
  private static let secondsToExport = 599.5
  /// A terminal and the tools between pass on one and the same signal: nobody asks twice within that.
  private static let echo = TimeAmount.milliseconds(100)

  /// Each SIGHUP; those that come while one is seen to are one.
  let hangups: AsyncStream<Void>

  private let hangup: AsyncStream<Void>.Continuation
  private let queue = DispatchQueue(label: "hearth.signals")
  private let state = NIOLockedValueBox(State())
  private let isExporting: Bool
  private let log: Logger
  private let exit: @Sendable (Int32) -> Void
  private var sources: [any DispatchSourceSignal] = []

  /// - Parameters:
  ///   - isExporting: whether leaving includes an export.
  ///   - exit: ends the process at once.
  init(isExporting: Bool, log: Logger, exit: @escaping @Sendable (Int32) -> Void = { _exit($0) }) {
    self.isExporting = isExporting
    self.log = log
    self.exit = exit
    (hangups, hangup) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let registered = DispatchGroup()
    for number in [SIGTERM, SIGINT, SIGHUP] {
      #if canImport(Darwin)
        // The system's own answer to it would come first.
        signal(number, SIG_IGN)
      #endif
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler { [weak self] in self?.receive(number) }
      registered.enter()
      source.setRegistrationHandler { registered.leave() }
      source.resume()
      sources.append(source)
    }
    _ = registered.wait(timeout: .now() + 1)
  }

  deinit {
    hangup.finish()
    for source in sources { source.cancel() }
  }

  /// The signal that asked the process to leave; nil if none did.
  var stop: Int32? { state.withLockedValue { $0.stop } }

  /// From here on the server serves, and leaving is stopping it.
  /// - Returns: the signal that has asked the process to leave before; then it is leaving a start, as was promised.
  func becomeReady() -> Int32? {
    state.withLockedValue { state in
      if state.stop == nil { state.isReady = true }
      return state.stop
    }
  }

  /// Does something once the process is asked to leave: now, if it was.
  func whenStopped(_ body: @escaping @Sendable () -> Void) {
    let isStopped = state.withLockedValue { state in
      if state.stop == nil { state.onStop.append(body) }
      return state.stop != nil
    }
    if isStopped { body() }
  }

  private enum Demand {
    case nothing
    case leave([@Sendable () -> Void], isReady: Bool)
    case end(isReady: Bool)
  }

  /// Hears a signal.
  func receive(_ number: Int32) {
    if number == SIGHUP {
      hangup.yield()
      return
    }
    let now = NIODeadline.now()
    let demand = state.withLockedValue { state -> Demand in
      if let last = state.lastHeard, now - last < Self.echo { return .nothing }
      state.lastHeard = now
      guard state.stop == nil else { return .end(isReady: state.isReady) }
      state.stop = number
      defer { state.onStop = [] }
      return .leave(state.onStop, isReady: state.isReady)
    }
    switch demand {
    case .nothing: return
    case .leave(let bodies, let isReady):
      limit(number, to: isReady && isExporting ? Self.secondsToExport : Self.secondsToLeave)
      for body in bodies { body() }
    case .end(let isReady):
      log.error(isReady ? "ended at once by a second signal: \(remains)" : "\(Self.stoppedEarly)")
      exit(StoppedBeforeReady.exitCode(of: number))
    }
  }

  /// What was acknowledged is on disk, so leaving is safe at any moment; a long scan or a stuck client may not hold the
  /// process beyond what its operator was promised.
  private func limit(_ number: Int32, to seconds: Double) {
    queue.asyncAfter(deadline: .now() + seconds) { [self] in
      guard state.withLockedValue({ $0.isReady }) else {
        log.error("\(Self.stoppedEarly)")
        return exit(StoppedBeforeReady.exitCode(of: number))
      }
      log.error("leaving took more than \(seconds) s: the process ends now; \(remains)")
      exit(1)
    }
  }

  private typealias StoppedBeforeReady = HearthServer.StoppedBeforeReady
  private static let stoppedEarly = StoppedBeforeReady.text

  private var remains: Logger.Message {
    isExporting
      ? "everything acknowledged is on disk; an export that is not whole is dropped, and the one before it stays"
      : "everything acknowledged is on disk"
  }
}
