// `hearth serve`: reads the options, starts a server, says where it listens, and runs until it is told to stop.

import ArgumentParser
import Foundation
import HearthServer
import Logging

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Serve Cloud Firestore and the Realtime Database.",
    discussion: """
      Prints one line for each address it listens on, then "ready". SIGTERM and SIGINT let open requests finish and \
      end the process within ten seconds; an export at the end may take ten minutes. A second signal ends it at once: \
      everything acknowledged is on disk, and of an export that is not whole nothing is kept, so that the one before it \
      stays. A start that is not "ready" yet is given up, with nothing exported. Either ends with 128 and the signal's \
      number.

      Each option may also be set by a variable, HEARTH_ and its name in capitals (HEARTH_FIRESTORE_PORT), or, where \
      it says so, by firebase.json. A flag goes before a variable, a variable before firebase.json.

      The index files that firebase.json names are read again on SIGHUP, which never ends the process.

      Without --emulator every request for data is answered UNAUTHENTICATED: this version knows no accounts yet.
      """)

  @Option(help: ArgumentHelp("Keep data in this directory, made if missing.", valueName: "dir"))
  var data: String?

  @Flag(help: "Keep data in memory and forget it at the end, in place of --data.")
  var ephemeral = false

  @Option(
    help: ArgumentHelp(
      "The project of database namespaces that name none. (default: demo-project)", valueName: "id"))
  var project: String?

  @Option(
    help: ArgumentHelp(
      "The address to listen on; also emulators.*.host of firebase.json. (default: 127.0.0.1)",
      valueName: "address"))
  var host: String?

  @Option(
    help: ArgumentHelp(
      "Cloud Firestore's port, 0 for any free one; also emulators.firestore.port. (default: 8080)",
      valueName: "port"))
  var firestorePort: Int?

  @Option(
    help: ArgumentHelp(
      "The Realtime Database's port, 0 for any free one; also emulators.database.port. (default: 9000)",
      valueName: "port"))
  var databasePort: Int?

  @Option(
    help: ArgumentHelp(
      "The port of the emulators' hub, with --emulator; also emulators.hub.port. (default: 4400, or any free one)",
      valueName: "port"))
  var hubPort: Int?

  @Flag(
    help: """
      Trust every caller, as the emulator suite does: no token, unsigned tokens and 'owner' are accepted, and any \
      project or database springs into being. Refuses to listen beyond this machine.
      """)
  var emulator = false

  @Flag(help: "Let --emulator listen beyond this machine: whoever reaches it may read and change all data.")
  var allowRemoteEmulator = false

  @Option(
    name: .customLong("import"),
    help: ArgumentHelp(
      "With --emulator: read this directory before serving, an export of the emulator suite or of this server. A directory "
        + "that is missing is read as empty where --export-on-exit names it, too.", valueName: "dir"))
  var importedDirectory: String?

  @Option(
    help: ArgumentHelp(
      "With --emulator: export all data to this directory at the end, as the emulator suite does. It may be missing or "
        + "empty, or hold an export, which is replaced; the server does not start with another.",
      valueName: "dir"))
  var exportOnExit: String?

  @Option(help: ArgumentHelp("Serve TLS with this certificate chain (PEM).", valueName: "file"))
  var tlsCert: String?

  @Option(help: ArgumentHelp("The certificate's private key (PEM).", valueName: "file"))
  var tlsKey: String?

  @Option(
    help: ArgumentHelp(
      "The project's firebase.json. One that names a rules file is refused, since rules are not enforced yet. "
        + "(default: firebase.json in the working directory, if there is one)", valueName: "file"))
  var config: String?

  @Option(
    help: ArgumentHelp(
      "automatic: answer every valid query; strict: refuse those for which the hosted product would ask for an index. "
        + "(default: automatic)", valueName: "mode"))
  var indexes: String?

  @Option(
    help: ArgumentHelp(
      "A JSON file of limits to raise above the products' own, such as {\"firestore\": {\"documentBytes\": 4194304}}; "
        + "docs/limits.md lists them.", valueName: "file"))
  var limits: String?

  @Option(
    help: ArgumentHelp(
      "What to log to standard error: trace, debug, info, notice, warning, error or critical. (default: notice)",
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
    flags.hubPort = hubPort
    flags.emulator = emulator
    flags.allowRemoteEmulator = allowRemoteEmulator
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
