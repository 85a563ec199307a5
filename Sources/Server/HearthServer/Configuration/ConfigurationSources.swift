// The sources of a configuration, in order of precedence: flag, HEARTH_* variable, firebase.json, default. An invalid
// value is an error that names its source. The server does not fall back to the next source.

public import Logging

/// The command line flags of `hearth serve`; nil for flags that are not given.
public struct ServeFlags: Sendable {
  /// `--data`.
  public var data: String?
  /// `--ephemeral`.
  public var ephemeral = false
  /// `--project`.
  public var project: String?
  /// `--host`.
  public var host: String?
  /// `--firestore-port`.
  public var firestorePort: Int?
  /// `--database-port`.
  public var databasePort: Int?
  /// `--auth-port`.
  public var authPort: Int?
  /// `--auth-config`.
  public var authConfig: String?
  /// `--hub-port`.
  public var hubPort: Int?
  /// `--emulator`.
  public var emulator = false
  /// `--allow-remote-emulator`.
  public var allowRemoteEmulator = false
  /// `--accept-clock`.
  public var acceptClock = false
  /// `--allow-host`, once for each name.
  public var allowedHosts: [String] = []
  /// `--allow-origin`, once for each origin.
  public var allowedOrigins: [String] = []
  /// `--import`.
  public var importedDirectory: String?
  /// `--export-on-exit`.
  public var exportOnExit: String?
  /// `--tls-cert`.
  public var tlsCertificate: String?
  /// `--tls-key`.
  public var tlsKey: String?
  /// `--config`.
  public var config: String?
  /// `--limits`.
  public var limits: String?
  /// `--indexes`.
  public var indexes: String?
  /// `--log-level`.
  public var logLevel: Logger.Level?

  /// Makes an empty set of flags.
  public init() {}
}

extension HearthConfiguration {
  /// Resolves the configuration from flags, environment and firebase.json.
  /// - Parameters:
  ///   - environment: the variables of the process.
  ///   - readFile: returns the bytes of a file; nil if it does not exist.
  /// - Throws: ``HearthError`` that names the setting and its source.
  public static func resolve(
    _ flags: ServeFlags, environment: [String: String], readFile: (String) throws -> [UInt8]?
  ) throws(HearthError) -> HearthConfiguration {
    let variables = Variables(environment)
    let file = try firebaseJSON(flags.config ?? variables.value("HEARTH_CONFIG"), readFile)

    var configuration = HearthConfiguration(storage: try storage(flags, variables))
    configuration.project = flags.project ?? variables.value("HEARTH_PROJECT") ?? configuration.project
    let host = flags.host ?? variables.value("HEARTH_HOST")
    let firestoreFlag = try port(flags.firestorePort, "--firestore-port")
    let databaseFlag = try port(flags.databasePort, "--database-port")
    let firestorePort = try variables.port("HEARTH_FIRESTORE_PORT")
    let databasePort = try variables.port("HEARTH_DATABASE_PORT")
    configuration.firestore = Address(
      host: host ?? file.firestore.host ?? configuration.firestore.host,
      port: firestoreFlag ?? firestorePort ?? file.firestore.port
        ?? configuration.firestore.port)
    configuration.database = Address(
      host: host ?? file.database.host ?? "127.0.0.1",
      port: databaseFlag ?? databasePort ?? file.database.port ?? 9000)
    let authFlag = try port(flags.authPort, "--auth-port")
    let authVariable = try variables.port("HEARTH_AUTH_PORT")
    let authPort = authFlag ?? authVariable ?? file.auth.port
    configuration.auth = Address(host: host ?? file.auth.host ?? "127.0.0.1", port: authPort ?? 9099)
    configuration.authPortIsFixed = authPort != nil
    if let path = flags.authConfig ?? variables.value("HEARTH_AUTH_CONFIG") {
      configuration.authSettings = try authSettings(path, readFile)
    }
    let emulator = try variables.flag("HEARTH_EMULATOR")
    let hubFlag = try port(flags.hubPort, "--hub-port")
    let hubVariable = try variables.port("HEARTH_HUB_PORT")
    if flags.emulator || emulator {
      let hubPort = hubFlag ?? hubVariable ?? file.hub.port
      configuration.hub = Address(host: host ?? file.hub.host ?? "127.0.0.1", port: hubPort ?? 4400)
      configuration.hubPortIsFixed = hubPort != nil
    } else if hubFlag != nil {
      throw HearthError("--hub-port needs --emulator: only an emulator has a hub.")
    }
    let allowRemote = try variables.flag("HEARTH_ALLOW_REMOTE_EMULATOR")
    configuration.emulator = flags.emulator || emulator
    configuration.allowRemoteEmulator = flags.allowRemoteEmulator || allowRemote
    let acceptClock = try variables.flag("HEARTH_ACCEPT_CLOCK")
    configuration.acceptsClockJump = flags.acceptClock || acceptClock
    configuration.allowedHosts = flags.allowedHosts + variables.list("HEARTH_ALLOW_HOST")
    configuration.allowedOrigins = flags.allowedOrigins + variables.list("HEARTH_ALLOW_ORIGIN")
    configuration.exportOnExit = flags.exportOnExit ?? variables.value("HEARTH_EXPORT_ON_EXIT")
    configuration.importedDirectory = flags.importedDirectory ?? variables.value("HEARTH_IMPORT")
    configuration.tls = try tls(
      flags.tlsCertificate ?? variables.value("HEARTH_TLS_CERT"),
      flags.tlsKey ?? variables.value("HEARTH_TLS_KEY"))
    if let mode = flags.indexes ?? variables.value("HEARTH_INDEXES") {
      guard let mode = IndexMode(rawValue: mode) else {
        throw HearthError("--indexes must be automatic or strict, not '\(mode)' (or HEARTH_INDEXES).")
      }
      configuration.indexMode = mode
    }
    configuration.indexFiles = file.indexFiles
    configuration.rulesFiles = file.rulesFiles
    configuration.databaseRulesFiles = file.databaseRulesFiles
    if let path = flags.limits ?? variables.value("HEARTH_LIMITS") {
      configuration.limits = try limits(path, readFile)
    }
    let logLevel = try variables.logLevel("HEARTH_LOG_LEVEL")
    configuration.logLevel = flags.logLevel ?? logLevel ?? configuration.logLevel
    try configuration.validate()
    return configuration
  }

  private static func firebaseJSON(
    _ configuredPath: String?, _ readFile: (String) throws -> [UInt8]?
  ) throws(HearthError) -> FirebaseJSON {
    let path = configuredPath ?? "firebase.json"
    let bytes: [UInt8]?
    do {
      bytes = try readFile(path)
    } catch {
      throw HearthError("The configuration file \(path) cannot be read: \(error)")
    }
    guard let bytes else {
      if configuredPath != nil {
        throw HearthError("The configuration file \(path) does not exist (--config).")
      }
      return FirebaseJSON()
    }
    return try FirebaseJSON(bytes, path: path)
  }

  private static func authSettings(
    _ path: String, _ readFile: (String) throws -> [UInt8]?
  ) throws(HearthError) -> AuthJSON {
    let bytes: [UInt8]?
    do {
      bytes = try readFile(path)
    } catch {
      throw HearthError("The file \(path) cannot be read: \(error) (--auth-config)")
    }
    guard let bytes else {
      throw HearthError("The file \(path) does not exist (--auth-config, or HEARTH_AUTH_CONFIG).")
    }
    return try AuthJSON(bytes, path: path)
  }

  private static func limits(
    _ path: String, _ readFile: (String) throws -> [UInt8]?
  ) throws(HearthError) -> ServerLimits {
    let bytes: [UInt8]?
    do {
      bytes = try readFile(path)
    } catch {
      throw HearthError("The limits file \(path) cannot be read: \(error)")
    }
    guard let bytes else {
      throw HearthError("The limits file \(path) does not exist (--limits, or HEARTH_LIMITS).")
    }
    return try LimitsJSON.read(bytes, path: path)
  }

  private static func storage(_ flags: ServeFlags, _ variables: Variables) throws(HearthError) -> Storage {
    if flags.ephemeral, flags.data != nil {
      throw HearthError("--data and --ephemeral exclude each other: give one of them.")
    }
    if flags.ephemeral { return .ephemeral }
    if let data = flags.data { return try directory(data) }
    let ephemeral = try variables.flag("HEARTH_EPHEMERAL")
    if let data = variables.value("HEARTH_DATA") {
      if ephemeral {
        throw HearthError("HEARTH_DATA and HEARTH_EPHEMERAL exclude each other: set one of them.")
      }
      return try directory(data)
    }
    if ephemeral { return .ephemeral }
    throw HearthError(
      "Where should data be kept? Give --data DIR to keep it there, or --ephemeral to forget it at the end.")
  }

  private static func directory(_ path: String) throws(HearthError) -> Storage {
    if path.isEmpty { throw HearthError("--data needs the path of a directory.") }
    return .directory(path)
  }

  private static func tls(_ certificate: String?, _ key: String?) throws(HearthError) -> TLSFiles? {
    switch (certificate, key) {
    case (nil, nil): return nil
    case (let certificate?, let key?): return TLSFiles(certificate: certificate, key: key)
    case (_?, nil):
      throw HearthError("--tls-cert needs --tls-key: the certificate's private key as a PEM file.")
    case (nil, _?): throw HearthError("--tls-key needs --tls-cert: the certificate chain as a PEM file.")
    }
  }

  private static func port(_ value: Int?, _ source: String) throws(HearthError) -> Int? {
    guard let value else { return nil }
    guard (0...65_535).contains(value) else {
      throw HearthError("\(source) \(value) is not a port: 0 (any free one) to 65535.")
    }
    return value
  }

  /// The HEARTH_* variables. An empty value counts as unset.
  private struct Variables {
    private let values: [String: String]

    init(_ values: [String: String]) {
      self.values = values
    }

    func value(_ name: String) -> String? {
      values[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The parts of a value that commas separate.
    func list(_ name: String) -> [String] {
      value(name)?.split(separator: ",").map { $0.filter { $0 != " " } }.filter { !$0.isEmpty } ?? []
    }

    func flag(_ name: String) throws(HearthError) -> Bool {
      switch value(name)?.lowercased() {
      case nil, "0", "false", "no": return false
      case "1", "true", "yes": return true
      default: throw HearthError("\(name) must be true or false.")
      }
    }

    func port(_ name: String) throws(HearthError) -> Int? {
      guard let string = value(name) else { return nil }
      guard let value = Int(string) else { throw HearthError("\(name)=\(string) is not a port.") }
      return try HearthConfiguration.port(value, name)
    }

    func logLevel(_ name: String) throws(HearthError) -> Logger.Level? {
      guard let string = value(name) else { return nil }
      guard let level = Logger.Level(rawValue: string.lowercased()) else {
        let names = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
        throw HearthError("\(name)=\(string) is not a log level: \(names).")
      }
      return level
    }
  }
}
