// Exports and imports all data of an emulator in the directory format of the Firebase emulator suite. The hub,
// `--import` and `--export-on-exit` use it.
//
//     firebase-export-metadata.json
//     firestore_export/firestore_export.overall_export_metadata …   the project's default database
//     database_export/<namespace>.json                              each Realtime Database with data
//     auth_export/accounts.json …                                   the project's accounts
//     other_databases/<n>/<n>.overall_export_metadata …             other Firestore databases with data (extension)
//
// Invariants
//   1. The contents of a directory are replaced only after a complete export exists next to them, and only if they are an
//      export or empty.
//   2. Each database is exported in one consistent state, one database after another.

package import FirestoreEngine
import FirestoreModel
package import Logging
package import RealtimeEngine

/// The reason why data was not exported or imported, as a text for the user.
package struct EmulatorDataError: Error, Sendable, CustomStringConvertible {
  /// The text: the error, its place, and the allowed values.
  package var description: String
}

/// Exports and imports an emulator's data.
package struct EmulatorDataDirectory: Sendable {
  /// A product whose data can be exported.
  package enum Product: String, Sendable, CaseIterable {
    /// Cloud Firestore.
    case firestore
    /// The Realtime Database.
    case database
    /// Authentication.
    case auth
  }

  static let firestorePath = "firestore_export"
  static let databasePath = "database_export"
  static let authPath = "auth_export"
  static let otherPath = "other_databases"

  private let firestore: FirestoreEngine
  private let exports: EmulatorExports
  private let realtime: RealtimeExports
  private let auth: AuthExports?
  private let products: [Product]
  private let database: DatabaseName
  private let version: String
  private let log: Logger
  private let lock = ExportLock()

  /// Creates the value for an emulator's two engines.
  /// - Parameters:
  ///   - realtime: the Realtime Database; nil if it is not served.
  ///   - auth: the accounts; nil if authentication is not served.
  ///   - project: the project whose default database becomes the export's Firestore database.
  ///   - version: the server's version, which exports contain.
  package init(
    firestore: FirestoreEngine, realtime: RealtimeEngine?, auth: AuthExports?, project: String,
    version: String, log: Logger
  ) {
    self.firestore = firestore
    exports = EmulatorExports(engine: firestore)
    self.realtime = RealtimeExports(engine: realtime, log: log)
    self.auth = auth
    products = Product.allCases.filter { product in
      switch product {
      case .firestore: true
      case .database: realtime != nil
      case .auth: auth != nil
      }
    }
    database = DatabaseName(project: project)
    self.version = version
    self.log = log
  }

  // MARK: Export

  /// Writes all data to a directory, and replaces an existing export.
  /// - Parameters:
  ///   - path: the directory, which is created if necessary. A directory with other contents is rejected.
  ///   - targets: the products by name; nil for all. Names of emulators that do not run are ignored.
  /// - Throws: ``EmulatorDataError``.
  package func export(to path: String, targets: [String]? = nil) async throws(EmulatorDataError) {
    let products = products.filter { targets?.contains($0.rawValue) ?? true }
    guard !products.isEmpty else {
      throw EmulatorDataError(description: "No running emulators support import/export.")
    }
    await lock.lock()
    do throws(EmulatorDataError) {
      try await export(products, to: path)
    } catch {
      await lock.unlock()
      throw error
    }
    await lock.unlock()
    log.notice(
      "the emulators' data was exported",
      metadata: ["path": "\(path)", "targets": "\(products.map(\.rawValue).joined(separator: ","))"])
  }

  /// Checks whether an export to a directory is possible, without creating anything.
  /// - Throws: ``EmulatorDataError`` for a path that ``export(to:targets:)`` would reject.
  package func checkExport(to path: String) async throws(EmulatorDataError) {
    do throws(FirestoreError) {
      try await ExportFiles.blocking(.failedPrecondition) { try ExportDirectory.check(path) }
    } catch {
      throw EmulatorDataError(description: error.message)
    }
  }

  private func export(_ products: [Product], to path: String) async throws(EmulatorDataError) {
    do throws(FirestoreError) {
      let directory = try await ExportFiles.blocking(.internalError) { try ExportDirectory(path) }
      var metadata = ExportManifest(version: version)
      do throws(FirestoreError) {
        if products.contains(.firestore) { try await exportFirestore(directory.staging, &metadata) }
        if products.contains(.database) {
          let target = "\(directory.staging)/\(Self.databasePath)"
          try await ExportFiles.blocking(.internalError) { try ExportFiles.makeDirectories(target) }
          try await realtime.export(to: target)
          metadata.database = Self.databasePath
        }
        if products.contains(.auth), let auth {
          let target = "\(directory.staging)/\(Self.authPath)"
          try await ExportFiles.blocking(.internalError) { try ExportFiles.makeDirectories(target) }
          try await auth.export(to: target)
          metadata.auth = Self.authPath
        }
        let written = metadata
        try await ExportFiles.blocking(.internalError) { try directory.replace(with: written) }
      } catch {
        await directory.discard()
        throw error
      }
    } catch {
      throw EmulatorDataError(description: error.message)
    }
  }

  private func exportFirestore(
    _ directory: String, _ metadata: inout ExportManifest
  ) async throws(FirestoreError) {
    try await exports.export(database, to: directory, as: Self.firestorePath)
    metadata.firestore = "\(Self.firestorePath)/\(Self.firestorePath)\(ExportMetadata.overallSuffix)"
    // An emulator creates a database for every name that a request contains, so databases without documents are
    // skipped.
    var others: [DatabaseName] = []
    for name in try await firestore.databaseNames() where name != database {
      if try await !exports.isEmpty(name) { others.append(name) }
    }
    guard !others.isEmpty else { return }
    let target = "\(directory)/\(Self.otherPath)"
    try await ExportFiles.blocking(.internalError) { try ExportFiles.makeDirectories(target) }
    for (index, other) in others.enumerated() {
      try await exports.export(other, to: target, as: "\(index)")
      metadata.others.append(
        .init(
          database: other.description,
          file: "\(Self.otherPath)/\(index)/\(index)\(ExportMetadata.overallSuffix)"))
    }
  }

  // MARK: Import

  /// Imports a directory. It may be an export of this server, of the emulator suite or of Firestore alone, or contain
  /// JSON files of the Realtime Database. An import adds documents to existing ones, and replaces each Realtime Database.
  /// - Parameter mayBeMissing: whether a missing or empty directory counts as an empty export.
  /// - Throws: ``EmulatorDataError`` for a directory that is missing or cannot be read.
  package func load(from path: String, mayBeMissing: Bool = false) async throws(EmulatorDataError) {
    do throws(FirestoreError) {
      let found = try await ExportFiles.blocking(.invalidArgument) {
        try Self.open(path, mayBeMissing: mayBeMissing)
      }
      guard let (source, manifest) = found else { return }
      try await load(manifest, source)
    } catch {
      throw EmulatorDataError(description: error.message)
    }
    log.notice("an export was imported", metadata: ["path": "\(path)"])
  }

  private static func open(
    _ path: String, mayBeMissing: Bool
  ) throws -> (ExportSource, ExportManifest)? {
    if mayBeMissing, !ExportFiles.exists(path) { return nil }
    let source = try ExportSource(path)
    try ExportDirectory.recoverForReading(source.root)
    if mayBeMissing, try ExportFiles.names(in: source.root).isEmpty { return nil }
    return (source, try ExportManifest(source))
  }

  private func load(_ manifest: ExportManifest, _ source: ExportSource) async throws(FirestoreError) {
    var files: [(database: DatabaseName, name: String)] = manifest.firestore.map { [(database, $0)] } ?? []
    for other in manifest.others { files.append((try DatabaseName(parsing: other.database), other.file)) }
    var read: Set<String> = []
    for (database, name) in files {
      let path = try await ExportFiles.blocking(.invalidArgument) { try source.path(name, in: source.root) }
      // No file is imported twice. The size of the files therefore bounds the work, even if the manifest names a file
      // many times.
      guard read.insert(path).inserted else {
        throw .invalidArgument("The export names \(path) for more than one database.")
      }
      try await exports.importDatabase(path, in: source, into: database)
    }
    if let directory = manifest.database {
      if products.contains(.database) {
        try await realtime.importDatabases(directory, in: source)
      } else {
        log.warning("the Realtime Databases of the import are left out: none is served here")
      }
    }
    if let directory = manifest.auth {
      if let auth {
        try await auth.importAccounts(directory, in: source, log: log)
      } else {
        log.warning("the accounts of the import are left out: authentication is not served here")
      }
    }
    for name in manifest.unknown {
      log.warning(
        "a part of the import is left out: this server has no such emulator",
        metadata: ["part": "\(name.prefix(100))"])
    }
  }
}
