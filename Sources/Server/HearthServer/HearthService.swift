// Runs a server as a service, until a signal stops the process. The command `hearth serve` calls it.

import EmbeddedStore
import Logging

extension HearthServer {
  /// The error of a server that was stopped by a signal before it was ready.
  public struct StoppedBeforeReady: Error, Sendable, CustomStringConvertible {
    /// The signal that stopped the start.
    public var signal: Int32

    /// The exit code of the process: 128 plus the signal's number, as shells expect.
    public var exitCode: Int32 { Self.exitCode(of: signal) }

    /// The message of the error.
    public var description: String { Self.message }

    static let message = "stopped before it was ready"

    static func exitCode(of signal: Int32) -> Int32 { 128 + signal }
  }

  /// Starts the server, calls `ready` with its addresses, and serves until SIGTERM or SIGINT. Then drains and
  /// stops.
  ///
  /// Returns within ten seconds of the signal, or within ten minutes if it exports at exit. A second signal
  /// ends the process immediately.
  /// - Throws: ``HearthError`` if the server does not start or its export fails; ``StoppedBeforeReady``.
  public static func serve(
    _ configuration: HearthConfiguration, ready: @escaping @Sendable ([Listener]) -> Void
  ) async throws {
    var log = Logger(label: "hearth") { StreamLogHandler.standardError(label: $0) }
    log.logLevel = configuration.logLevel
    // Signal handling begins before anything is opened, so that no signal ends the process while it opens
    // files or ports.
    let signals = ProcessSignals(isExporting: configuration.exportOnExit != nil, log: log)
    OpenFileBudget.raiseLimit()
    let server = HearthServer(configuration, log: log)
    let listeners = try await start(server, signals)
    try await serve(server, listeners, signals, ready: ready)
  }

  /// Serves with a started server until a signal stops the process.
  static func serve(
    _ server: HearthServer, _ listeners: [Listener], _ signals: ProcessSignals,
    ready: @escaping @Sendable ([Listener]) -> Void
  ) async throws {
    if let signal = signals.becomeReady() {
      // The signal arrived at the end of the start, which therefore completed. The process must end within
      // the deadline for a stopped start, which is too short for an export.
      await server.stopWithoutExport()
      throw StoppedBeforeReady(signal: signal)
    }
    let reloading = Task {
      for await _ in signals.hangups {
        await server.reloadRules()
        await server.reloadIndexes()
      }
    }
    let trimming = Task { await HeapTrimming.run(memory: SystemMemory.bytes) }
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

  /// Starts the server. Cancels the start when a signal stops the process.
  private static func start(_ server: HearthServer, _ signals: ProcessSignals) async throws -> [Listener] {
    let starting = Task { try await server.start() }
    signals.whenStopped { starting.cancel() }
    do {
      return try await starting.value
    } catch {
      guard let signal = signals.stopSignal else { throw error }
      throw StoppedBeforeReady(signal: signal)
    }
  }
}
