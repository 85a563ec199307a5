// Runs a server until the process is told to stop: the piece that `hearth serve` hands to the service group.

import Dispatch
import EmbeddedStore
import Logging
import ServiceLifecycle
import UnixSignals

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#else
  import Darwin
#endif

extension HearthServer {
  /// Starts the server, calls `ready` with its addresses, and serves until SIGTERM or SIGINT; then drains and stops.
  ///
  /// Returns within ten seconds of the signal; with an export at the end, within ten minutes.
  /// - Throws: ``HearthError`` if it does not start, or its export at the end fails.
  public static func serve(
    _ configuration: HearthConfiguration, ready: @escaping @Sendable ([Listener]) -> Void
  ) async throws {
    OpenFiles.raiseLimit()
    var log = Logger(label: "hearth") { StreamLogHandler.standardError(label: $0) }
    log.logLevel = configuration.logLevel
    let service = HearthService(server: HearthServer(configuration, log: log), log: log, ready: ready)
    var quiet = log
    quiet.logLevel = max(log.logLevel, .error)
    var group = ServiceGroupConfiguration(
      services: [
        .init(
          service: service, successTerminationBehavior: .gracefullyShutdownGroup,
          failureTerminationBehavior: .cancelGroup)
      ],
      gracefulShutdownSignals: [.sigterm, .sigint], logger: quiet)
    group.maximumGracefulShutdownDuration = configuration.exportOnExit == nil ? .seconds(9) : .seconds(599)
    try await ServiceGroup(configuration: group).run()
  }
}

private struct HearthService: Service {
  let server: HearthServer
  let log: Logger
  let ready: @Sendable ([HearthServer.Listener]) -> Void

  func run() async throws {
    let listeners = try await server.start()
    // From here on, so that the signal never ends a server that is ready.
    let hangups = await UnixSignalsSequence(trapping: .sighup)
    let reloading = Task { [server] in
      for await _ in hangups { await server.reloadIndexes() }
    }
    defer { reloading.cancel() }
    ready(listeners)
    try await gracefulShutdown()
    // What was acknowledged is on disk, so leaving is safe at any moment; a long scan or a stuck client may not hold
    // the process beyond what its operator was promised. On a queue of its own: the pools may be what is stuck.
    let seconds = server.configuration.exportOnExit == nil ? 9.5 : 599.5
    DispatchQueue(label: "hearth.shutdown").asyncAfter(deadline: .now() + seconds) { [log] in
      log.error(
        "leaving took more than \(seconds) s: the process ends now; everything acknowledged is on disk")
      _exit(1)
    }
    try await server.stopAndExport()
  }
}
