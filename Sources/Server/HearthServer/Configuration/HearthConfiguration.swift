// What a server is started with, after flags, variables, firebase.json and defaults have been laid over each other
// (see ConfigurationSources). In-process users, such as tests, fill it in themselves.

public import Logging

/// A server's whole configuration.
public struct HearthConfiguration: Sendable {
  /// Where data is kept.
  public enum Storage: Sendable, Equatable {
    /// In files under this directory, which is made if it is missing.
    case directory(String)
    /// In memory, until the process ends.
    case ephemeral
  }

  /// An address to listen on.
  public struct Address: Sendable, Equatable {
    /// An address or a name of this machine.
    public var host: String
    /// 0 lets the system choose.
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

    /// Names the files.
    public init(certificate: String, key: String) {
      self.certificate = certificate
      self.key = key
    }
  }

  /// What happens to a query that the hosted product would not answer without another index.
  public enum IndexMode: String, Sendable {
    /// It is answered.
    case automatic
    /// It is refused, with the product's error.
    case strict
  }

  /// A file that chooses indexes.
  public struct IndexFile: Sendable, Equatable {
    /// The id of the databases that it is for.
    public var database: String
    /// Where it is.
    public var path: String

    /// Names a file.
    public init(database: String = "(default)", path: String) {
      self.database = database
      self.path = path
    }
  }

  /// Where data is kept.
  public var storage: Storage
  /// Which queries are answered.
  public var indexes = IndexMode.automatic
  /// The files that choose Firestore's indexes.
  public var indexFiles: [IndexFile] = []
  /// The limits of both products.
  public var limits = ServerLimits()
  /// The project that database namespaces belong to which name none themselves.
  public var project = "demo-project"
  /// Where Cloud Firestore listens.
  public var firestore = Address(port: 8080)
  /// Where the Realtime Database listens; nil to serve Firestore alone.
  public var database: Address? = Address(port: 9000)
  /// Where the emulators' hub listens, in an emulator; nil for none.
  public var hub: Address?
  /// Whether a hub's port that is in use is an error; else any free one takes its place.
  public var hubPortIsFixed = false
  /// Whether to trust callers as the emulator suite does: no token, unsigned tokens and `owner` are accepted, and any
  /// project and database springs into being.
  public var emulator = false
  /// Whether an emulator may listen beyond loopback.
  public var allowRemoteEmulator = false
  /// A directory whose export an emulator reads before it serves anyone; nil for none.
  public var importedDirectory: String?
  /// Where an emulator exports all data when it stops; nil for nowhere.
  public var exportOnExit: String?
  /// Nil for clear text.
  public var tls: TLSFiles?
  /// What is logged, to standard error.
  public var logLevel = Logger.Level.notice
  /// How long open connections may take to finish at shutdown, in seconds.
  public var drainSeconds = 5

  /// A configuration with the defaults.
  public init(storage: Storage) {
    self.storage = storage
  }

  /// An emulator in memory on free ports of the loopback interface, as tests want it.
  public static func forTesting(storage: Storage = .ephemeral) -> HearthConfiguration {
    var configuration = HearthConfiguration(storage: storage)
    configuration.emulator = true
    configuration.firestore.port = 0
    configuration.database = Address(port: 0)
    configuration.logLevel = .error
    return configuration
  }

  /// Refuses combinations that would be unsafe, or cannot be.
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
        throw HearthError("\(flag) needs --emulator: only an emulator's data is exported whole.")
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
    guard emulator, !allowRemoteEmulator else { return }
    let hosts = [firestore.host, database?.host ?? firestore.host, hub?.host ?? firestore.host]
    for host in hosts where !Self.isLoopback(host) {
      throw HearthError(
        "--emulator trusts everyone, so it does not listen on \(host), beyond this machine. Use --host 127.0.0.1, "
          + "or add --allow-remote-emulator if everyone who can reach \(host) may read and change all data.")
    }
  }

  /// Whether two hosts may be the same address.
  private static func overlap(_ a: String, _ b: String) -> Bool {
    let (a, b) = (a == "localhost" ? "127.0.0.1" : a, b == "localhost" ? "127.0.0.1" : b)
    return a == b || [a, b].contains { $0 == "0.0.0.0" || $0 == "::" }
  }

  /// Whether a name can be a project's: it stands in paths of both products, and in names of hosts.
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
