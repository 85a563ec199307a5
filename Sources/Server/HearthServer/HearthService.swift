// Runs a server until the process is told to stop: what `hearth serve` does.

import EmbeddedStore
import Logging

extension HearthServer {
  /// Why a server that was asked to stop while it started never served.
  public struct StoppedBeforeReady: Error, Sendable, CustomStringConvertible {
    /// The signal that asked.
    public var signal: Int32

    /// The code that the process should end with: 128 and the signal's number, as shells tell of a signal.
    public var exitCode: Int32 { Self.exitCode(of: signal) }

    /// The text of the error.
    public var description: String { Self.text }

    static let text = "stopped before it was ready"

    static func exitCode(of signal: Int32) -> Int32 { 128 + signal }
  }

  /// Starts the server, calls `ready` with its addresses, and serves until SIGTERM or SIGINT; then drains and stops.
  ///
  /// Returns within ten seconds of the signal; with an export at the end, within ten minutes. A second signal ends the
  /// process at once.
  /// - Throws: ``HearthError`` if it does not start, or its export at the end fails; ``StoppedBeforeReady``.
  public static func serve(
    _ configuration: HearthConfiguration, ready: @escaping @Sendable ([Listener]) -> Void
  ) async throws {
    var log = Logger(label: "hearth") { StreamLogHandler.standardError(label: $0) }
    log.logLevel = configuration.logLevel
    // Before anything is opened: no signal may end what was begun on its way.
    let signals = ProcessSignals(isExporting: configuration.exportOnExit != nil, log: log)
    OpenFileBudget.raiseLimit()
    let server = HearthServer(configuration, log: log)
    let listeners = try await start(server, signals)
    try await serve(server, listeners, signals, ready: ready)
  }

  /// Serves with a server that has started until the process is told to stop.
  static func serve(
    _ server: HearthServer, _ listeners: [Listener], _ signals: ProcessSignals,
    ready: @escaping @Sendable ([Listener]) -> Void
  ) async throws {
    if let signal = signals.becomeReady() {
      // The start was over before it heard of the signal. The time to leave is that of a start, too short for an export.
      await server.stopWithoutExport()
      throw StoppedBeforeReady(signal: signal)
    }
    let reloading = Task {
      for await _ in signals.hangups { await server.reloadIndexes() }
    }
    let trimming = Task { await HeapTrimming.run() }
    defer {
      reloading.cancel()
      trimming.cancel()
    }
    ready(listeners)
    await withCheckedContinuation { (stopped: CheckedContinuation<Void, Never>) in
      signals.whenStopped { stopped.resume() }
    }
    try await server.stopAndExport()
  }

  /// Starts the server, or gives that up as soon as the process is asked to leave.
  private static func start(_ server: HearthServer, _ signals: ProcessSignals) async throws -> [Listener] {
    let starting = Task { try await server.start() }
    signals.whenStopped { starting.cancel() }
    do {
      return try await starting.value
    } catch {
      guard let signal = signals.stop else { throw error }
      throw StoppedBeforeReady(signal: signal)
    }
  }
}
