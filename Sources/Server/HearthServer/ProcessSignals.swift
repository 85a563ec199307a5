// Handles the signals of the process, from before the server's start to the end of the process.
//
// Invariants
//   1. After the first SIGTERM or SIGINT the process ends within the promised time. A second one ends it
//      immediately.
//   2. SIGHUP never ends the process.
//   3. Signals are handled on a dedicated queue, because the thread pools may be blocked.
//
// Decision: docs/decisions/0014-signals-of-our-own.md

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

/// The signal handlers of this process. They are active while this object exists.
// SAFETY: the sources are accessed only during init and deinit; all other mutable state is locked.
final class ProcessSignals: @unchecked Sendable {
  private struct State {
    var isReady = false
    /// The signal that stops the process.
    var stopSignal: Int32?
    var lastSignal: NIODeadline?
    var onStop: [@Sendable () -> Void] = []
  }

  /// The time from the signal to the forced end of a server that does not export, in seconds.
  private static let stopSeconds = 9.5
  /// The time from the signal to the forced end of a server that exports at exit, in seconds.
  private static let exportSeconds = 599.5
  /// The time within which repeated signals count as one. One key press can cause several signals, because
  /// the terminal and the parent process may each forward it.
  private static let echoWindow = TimeAmount.milliseconds(100)

  /// Receives one element for each SIGHUP. Several signals during the handling of an earlier one become a
  /// single element.
  let hangups: AsyncStream<Void>

  private let hangup: AsyncStream<Void>.Continuation
  private let queue = DispatchQueue(label: "hearth.signals")
  private let state = NIOLockedValueBox(State())
  private let isExporting: Bool
  private let log: Logger
  private let exit: @Sendable (Int32) -> Void
  private var sources: [any DispatchSourceSignal] = []

  /// Starts to handle signals.
  /// - Parameters:
  ///   - isExporting: whether stopping includes an export.
  ///   - exit: ends the process immediately.
  init(isExporting: Bool, log: Logger, exit: @escaping @Sendable (Int32) -> Void = { _exit($0) }) {
    self.isExporting = isExporting
    self.log = log
    self.exit = exit
    (hangups, hangup) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let registrations = DispatchGroup()
    for number in [SIGTERM, SIGINT, SIGHUP] {
      #if canImport(Darwin)
        // On Apple's systems the signal's default action would otherwise end the process before the handler runs.
        signal(number, SIG_IGN)
      #endif
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler { [weak self] in self?.receive(number) }
      registrations.enter()
      source.setRegistrationHandler { registrations.leave() }
      source.resume()
      sources.append(source)
    }
    _ = registrations.wait(timeout: .now() + 1)
  }

  deinit {
    hangup.finish()
    for source in sources { source.cancel() }
  }

  /// The signal that stops the process; nil if none was received.
  var stopSignal: Int32? { state.withLockedValue { $0.stopSignal } }

  /// Marks the server as ready, unless a signal was received before. Later signals stop a running server.
  /// - Returns: the signal that was received before; nil if the server is ready. The caller must then stop
  ///   the server, within the deadline for a stop during the start.
  func becomeReady() -> Int32? {
    state.withLockedValue { state in
      if state.stopSignal == nil { state.isReady = true }
      return state.stopSignal
    }
  }

  /// Calls `body` when a signal stops the process, or immediately if one was received.
  func whenStopped(_ body: @escaping @Sendable () -> Void) {
    let isStopped = state.withLockedValue { state in
      if state.stopSignal == nil { state.onStop.append(body) }
      return state.stopSignal != nil
    }
    if isStopped { body() }
  }

  private enum Action {
    case ignore
    case stop([@Sendable () -> Void], isReady: Bool)
    case exitNow(isReady: Bool)
  }

  /// Handles a signal.
  func receive(_ number: Int32) {
    if number == SIGHUP {
      hangup.yield()
      return
    }
    let now = NIODeadline.now()
    let action = state.withLockedValue { state -> Action in
      if let last = state.lastSignal, now - last < Self.echoWindow { return .ignore }
      state.lastSignal = now
      guard state.stopSignal == nil else { return .exitNow(isReady: state.isReady) }
      state.stopSignal = number
      defer { state.onStop = [] }
      return .stop(state.onStop, isReady: state.isReady)
    }
    switch action {
    case .ignore: return
    case .stop(let bodies, let isReady):
      setDeadline(number, isReady && isExporting ? Self.exportSeconds : Self.stopSeconds)
      for body in bodies { body() }
    case .exitNow(let isReady):
      log.error(
        isReady
          ? "a second signal ended the process immediately: \(durability)" : "\(Self.stoppedBeforeReady)")
      exit(StoppedBeforeReady.exitCode(of: number))
    }
  }

  /// Schedules the forced end of the process, so that a long scan or a stuck client cannot delay the end
  /// beyond the promised time. Ending at any moment is safe, because acknowledged writes are on disk.
  private func setDeadline(_ number: Int32, _ seconds: Double) {
    queue.asyncAfter(deadline: .now() + seconds) { [self] in
      guard state.withLockedValue({ $0.isReady }) else {
        log.error("\(Self.stoppedBeforeReady)")
        return exit(StoppedBeforeReady.exitCode(of: number))
      }
      log.error("stopping took more than \(seconds) s: the process ends now; \(durability)")
      exit(1)
    }
  }

  private typealias StoppedBeforeReady = HearthServer.StoppedBeforeReady
  private static let stoppedBeforeReady = StoppedBeforeReady.message

  private var durability: Logger.Message {
    isExporting
      ? "every acknowledged write is on disk; an incomplete export is discarded, and the export before it stays"
      : "every acknowledged write is on disk"
  }
}
