// The configuration of a server. The command makes it from flags, variables, firebase.json and defaults (see
// ConfigurationSources). Programs that run a server in their process, such as tests, make it directly.

public import Logging

/// The complete configuration of a server.
public struct HearthConfiguration: Sendable {
  /// The storage of a server.
  public enum Storage: Sendable, Equatable {
    /// Files in this directory, which is created if it is missing.
    case directory(String)
    /// Memory, until the process ends.
    case ephemeral
  }

  /// An address to listen on.
  public struct Address: Sendable, Equatable {
    /// An address or a host name of this machine.
    public var host: String
    /// The port; 0 lets the system choose.
    public var port: Int

    /// Makes an address.
    public init(host: String = "127.0.0.1", port: Int) {
      self.host = host
      self.port = port
    }
  }

  /// A certificate chain and its key, as PEM files.
  public struct TLSFiles: Sendable, Equatable {
    /// The path of the certificate chain.
    public var certificate: String
    /// The path of the private key.
    public var key: String

    /// Makes a pair of files.
    public init(certificate: String, key: String) {
      self.certificate = certificate
      self.key = key
    }
  }

  /// The treatment of a query that lacks an index which the hosted product would require.
  public enum IndexMode: String, Sendable {
    /// The query runs.
    case automatic
    /// The query fails with the same error as in the hosted product.
    case strict
  }

  /// An index file.
  public struct IndexFile: Sendable, Equatable {
    /// The ID of the databases that the file applies to.
    public var database: String
    /// The path of the file.
    public var path: String

    /// Makes an index file.
    public init(database: String = "(default)", path: String) {
      self.database = database
      self.path = path
    }
  }

  /// A file with the security rules of Firestore databases.
  public struct RulesFile: Sendable, Equatable {
    /// The id of the databases that the rules apply to; nil for `(default)`, and in an emulator also for all databases
    /// that no other file names.
    public var database: String?
    /// The path of the file.
    public var path: String

    /// Makes a rules file.
    public init(database: String? = nil, path: String) {
      self.database = database
      self.path = path
    }
  }

  /// A file with the security rules of a Realtime Database.
  public struct DatabaseRulesFile: Sendable, Equatable {
    /// The namespace of the database; nil for the project's default one.
    public var instance: String?
    /// The path of the file.
    public var path: String

    /// Makes a rules file.
    public init(instance: String? = nil, path: String) {
      self.instance = instance
      self.path = path
    }
  }

  /// The storage of the server.
  public var storage: Storage
  /// The treatment of queries that lack an index.
  public var indexMode = IndexMode.automatic
  /// The index files of Firestore.
  public var indexFiles: [IndexFile] = []
  /// The rules files of Firestore.
  public var rulesFiles: [RulesFile] = []
  /// The rules files of the Realtime Database.
  public var databaseRulesFiles: [DatabaseRulesFile] = []
  /// The limits of both products.
  public var limits = ServerLimits()
  /// The project ID. The default Realtime Database namespace, the hub and exports use it.
  public var project = "demo-project"
  /// The address of Cloud Firestore.
  public var firestore = Address(port: 8080)
  /// The address of the Realtime Database; nil to serve only Firestore.
  public var database: Address? = Address(port: 9000)
  /// The address of the Identity Toolkit and secure token APIs; nil to serve no authentication.
  public var auth: Address?
  /// Whether the start fails if the auth port is in use. Otherwise it then uses any free port.
  public var authPortIsFixed = false
  /// How a production server sends codes, and which identity providers it accepts.
  var authSettings = AuthJSON()
  /// The address of the emulator hub; nil for none.
  public var hub: Address?
  /// Whether the start fails if the hub's port is in use. Otherwise the hub then uses any free port.
  public var hubPortIsFixed = false
  /// Whether to trust callers as the emulator suite does. It accepts missing tokens, unsigned tokens and
  /// `owner`, and creates projects and databases on first use.
  public var emulator = false
  /// Whether an emulator may listen on addresses other than loopback.
  public var allowRemoteEmulator = false
  /// Further host names by which clients reach an emulator. Loopback names and addresses are always served.
  public var allowedHosts: [String] = []
  /// Web pages of other machines that may use an emulator, as origins such as `https://editor.example`; `null` for pages
  /// from files.
  public var allowedOrigins: [String] = []
  /// Whether to start although the clock is more than a year ahead of the newest stored version.
  public var acceptsClockJump = false
  /// The directory whose export an emulator imports before it serves; nil for none.
  public var importedDirectory: String?
  /// The directory to which an emulator exports all data when it stops; nil for none.
  public var exportOnExit: String?
  /// The certificate files; nil for plain text.
  public var tls: TLSFiles?
  /// The minimum level of log messages, which go to standard error.
  public var logLevel = Logger.Level.notice
  /// The grace period of open connections at shutdown, in seconds.
  public var drainSeconds = 5

  /// Makes a configuration with the defaults.
  public init(storage: Storage) {
    self.storage = storage
  }

  /// An emulator in memory on free ports of the loopback interface, for tests.
  public static func forTesting(storage: Storage = .ephemeral) -> HearthConfiguration {
    var configuration = HearthConfiguration(storage: storage)
    configuration.emulator = true
    configuration.firestore.port = 0
    configuration.database = Address(port: 0)
    configuration.logLevel = .error
    return configuration
  }

  /// Checks the configuration for unsafe and impossible combinations.
  func validate() throws(HearthError) {
    try limits.validate()
    guard Self.isProjectID(project) else {
      throw HearthError(
        "'\(project)' is not the id of a project (--project, or HEARTH_PROJECT): at most 128 letters, digits, '-', '_', "
          + "'.' and ':', the first of them a letter or digit.")
    }
    for (path, flag) in [(importedDirectory, "--import"), (exportOnExit, "--export-on-exit")]
    where path != nil {
      guard emulator else {
        throw HearthError("\(flag) needs --emulator: only an emulator's data can be exported completely.")
      }
    }
    if let database, database.port == firestore.port, database.port != 0,
      Self.overlap(database.host, firestore.host)
    {
      throw HearthError(
        "Cloud Firestore (--firestore-port) and the Realtime Database (--database-port) are both given port "
          + "\(firestore.port) on \(firestore.host). Each needs its own: change one of the two, or give 0 for any free one. "
          + "Both may also come from HEARTH_FIRESTORE_PORT, HEARTH_DATABASE_PORT and firebase.json.")
    }
    try validateOrigins()
    guard emulator, !allowRemoteEmulator else { return }
    let hosts = [
      firestore.host, database?.host ?? firestore.host, auth?.host ?? firestore.host,
      hub?.host ?? firestore.host,
    ]
    for host in hosts where !Self.isLoopback(host) {
      throw HearthError(
        "--emulator trusts everyone, so it does not listen on \(host), beyond this machine. Use --host 127.0.0.1, "
          + "or add --allow-remote-emulator if everyone who can reach \(host) may read and change all data.")
    }
  }

  /// Whether listeners on two hosts with the same port may conflict.
  private static func overlap(_ a: String, _ b: String) -> Bool {
    let (a, b) = (a == "localhost" ? "127.0.0.1" : a, b == "localhost" ? "127.0.0.1" : b)
    return a == b || [a, b].contains { $0 == "0.0.0.0" || $0 == "::" }
  }

  /// Whether a name is a valid project ID. It must be usable in paths and host names, because requests of
  /// both products contain it there.
  private static func isProjectID(_ name: String) -> Bool {
    func isPlain(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: false
      }
    }
    return name.utf8.count <= 128 && name.utf8.first.map(isPlain) == true
      && name.utf8.allSatisfy { isPlain($0) || "-_.:".utf8.contains($0) }
  }

  static func isLoopback(_ host: String) -> Bool {
    if host == "localhost" || host == "::1" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }
}
