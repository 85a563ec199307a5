// The command `hearth serve` parses the options, starts a server, prints its addresses, and runs until a
// signal stops it.

import ArgumentParser
import Foundation
import HearthServer
import Logging

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Serve Cloud Firestore, the Realtime Database and authentication.",
    discussion: """
      Prints one line for each listening address, then "ready". On SIGTERM or SIGINT, open requests finish and the \
      process ends within ten seconds, or within ten minutes if it exports at exit. A second signal ends it immediately: \
      every acknowledged write is on disk, an incomplete export is discarded, and the export before it stays. A signal \
      before "ready" cancels the start, without an export. Both end with exit code 128 plus the signal's number.

      Each option can also be set by an environment variable, HEARTH_ and its name in capitals (HEARTH_FIRESTORE_PORT), \
      or, where documented below, by firebase.json. A flag overrides a variable, and a variable overrides firebase.json.

      SIGHUP reloads the index files that firebase.json names. It never ends the process.

      Without --emulator callers need credentials: 'hearth credentials create' makes those of servers and administrators. \
      Users sign in at the auth port; without rules they have no access to data.
      """)

  @Option(
    help: ArgumentHelp("Keep data in this directory, which is created if it is missing.", valueName: "dir"))
  var data: String?

  @Flag(help: "Keep data in memory instead of --data, and lose it at the end.")
  var ephemeral = false

  @Option(
    help: ArgumentHelp(
      "The project of database namespaces that name no project. (default: demo-project)", valueName: "id"))
  var project: String?

  @Option(
    help: ArgumentHelp(
      "The address to listen on; also emulators.*.host of firebase.json. (default: 127.0.0.1)",
      valueName: "address"))
  var host: String?

  @Option(
    help: ArgumentHelp(
      "Cloud Firestore's port, 0 for any free port; also emulators.firestore.port. (default: 8080)",
      valueName: "port"))
  var firestorePort: Int?

  @Option(
    help: ArgumentHelp(
      "The Realtime Database's port, 0 for any free port; also emulators.database.port. (default: 9000)",
      valueName: "port"))
  var databasePort: Int?

  @Option(
    help: ArgumentHelp(
      "The port of authentication, 0 for any free port; also emulators.auth.port. (default: 9099, or with --emulator any free port)",
      valueName: "port"))
  var authPort: Int?

  @Option(
    help: ArgumentHelp(
      "Without --emulator: a JSON file that names how codes are sent and which identity providers are accepted; "
        + "docs/production.md describes it.", valueName: "file"))
  var authConfig: String?

  @Option(
    help: ArgumentHelp(
      "The port of the emulator hub, with --emulator; also emulators.hub.port. (default: 4400, or any free port)",
      valueName: "port"))
  var hubPort: Int?

  @Flag(
    help: """
      Trust every caller like the emulator suite: accept missing tokens, unsigned tokens and 'owner', and create \
      projects and databases on first use. Listens on this machine only.
      """)
  var emulator = false

  @Flag(
    help: "Let --emulator listen beyond this machine: everyone who reaches it may read and change all data.")
  var allowRemoteEmulator = false

  @Flag(
    help:
      "Start although the clock is more than a year ahead of the stored data, because the server did not run for so long."
  )
  var acceptClock = false

  @Option(
    help: ArgumentHelp(
      "With --emulator: a further host name by which clients reach the server; repeatable. Loopback names and addresses are "
        + "always served.", valueName: "name"))
  var allowHost: [String] = []

  @Option(
    help: ArgumentHelp(
      "With --emulator: let web pages of this origin use the server, such as https://editor.example, or null for pages from "
        + "files; repeatable. Pages of this machine always may.", valueName: "origin"))
  var allowOrigin: [String] = []

  @Option(
    name: .customLong("import"),
    help: ArgumentHelp(
      "With --emulator: import this directory before serving, an export of the emulator suite or of this server. It may "
        + "be missing if --export-on-exit names the same directory.", valueName: "dir"))
  var importedDirectory: String?

  @Option(
    help: ArgumentHelp(
      "With --emulator: export all data to this directory at the end, like the emulator suite. It must be missing, empty, "
        + "or an export, which is replaced; otherwise the server does not start.",
      valueName: "dir"))
  var exportOnExit: String?

  @Option(help: ArgumentHelp("Serve TLS with this certificate chain (PEM).", valueName: "file"))
  var tlsCert: String?

  @Option(help: ArgumentHelp("The certificate's private key (PEM).", valueName: "file"))
  var tlsKey: String?

  @Option(
    help: ArgumentHelp(
      "The project's firebase.json: ports, indexes and rules files. "
        + "(default: firebase.json in the working directory, if it exists)", valueName: "file"))
  var config: String?

  @Option(
    help: ArgumentHelp(
      "automatic: run every valid query; strict: reject queries for which the hosted product requires an index. "
        + "(default: automatic)", valueName: "mode"))
  var indexes: String?

  @Option(
    help: ArgumentHelp(
      "A JSON file of limits to raise above the products' limits, such as {\"firestore\": {\"documentBytes\": 4194304}}; "
        + "docs/limits.md lists them.", valueName: "file"))
  var limits: String?

  @Option(
    help: ArgumentHelp(
      "The minimum level of log messages on standard error: trace, debug, info, notice, warning, error or critical. (default: notice)",
      valueName: "level"))
  var logLevel: String?

  func run() async throws {
    do {
      let configuration = try resolve()
      try await HearthServer.serve(configuration) { listeners in
        var lines = listeners.map { "\($0.product) listens on \($0.url)\n" }
        lines.append("ready\n")
        FileHandle.standardOutput.write(Data(lines.joined().utf8))
      }
    } catch let error as HearthServer.StoppedBeforeReady {
      FileHandle.standardError.write(Data("hearth: \(error)\n".utf8))
      throw ExitCode(error.exitCode)
    } catch let error as HearthError {
      FileHandle.standardError.write(Data("hearth: \(error)\n".utf8))
      throw ExitCode.failure
    }
  }

  private func resolve() throws -> HearthConfiguration {
    var flags = ServeFlags()
    flags.data = data
    flags.ephemeral = ephemeral
    flags.project = project
    flags.host = host
    flags.firestorePort = firestorePort
    flags.databasePort = databasePort
    flags.authPort = authPort
    flags.authConfig = authConfig
    flags.hubPort = hubPort
    flags.emulator = emulator
    flags.allowRemoteEmulator = allowRemoteEmulator
    flags.acceptClock = acceptClock
    flags.allowedHosts = allowHost
    flags.allowedOrigins = allowOrigin
    flags.importedDirectory = importedDirectory
    flags.exportOnExit = exportOnExit
    flags.tlsCertificate = tlsCert
    flags.tlsKey = tlsKey
    flags.config = config
    flags.indexes = indexes
    flags.limits = limits
    if let logLevel {
      guard let level = Logger.Level(rawValue: logLevel.lowercased()) else {
        throw ValidationError("'\(logLevel)' is not a log level.")
      }
      flags.logLevel = level
    }
    return try HearthConfiguration.resolve(
      flags, environment: ProcessInfo.processInfo.environment, readFile: ConfigurationFile.read)
  }
}
