// Reads and writes `firebase-export-metadata.json`, the list of an export's parts and their paths.
//
//     {"version": …, "firestore": {"version": …, "path": "firestore_export",
//       "metadata_file": "firestore_export/firestore_export.overall_export_metadata"},
//      "database": {"version": …, "path": "database_export"},
//      "auth": {"version": …, "path": "auth_export"},
//      "hearth": {"databases": [{"database": "projects/p/databases/d", "metadata_file": …}]}}
//
// The member `hearth` is an extension of this server: exports of the emulator suite contain only one Firestore
// database. The suite's importer ignores it.

import FirestoreModel
import JSON
import RealtimeModel

/// The contents of an export's directory.
struct ExportManifest: Sendable {
  /// A Firestore database other than the project's default one.
  struct Other: Sendable {
    var database: String
    var file: String
  }

  static let fileName = "firebase-export-metadata.json"
  private static let knownMembers: Set<String> = ["version", "firestore", "database", "auth", "hearth"]
  /// Maximum size of a manifest, in bytes: room for some hundred thousand databases.
  static let maximumBytes = 16 << 20

  var version: String
  /// The path of the default database's `.overall_export_metadata`.
  var firestore: String?
  /// The directory with a JSON file for each Realtime Database.
  var database: String?
  /// The directory with the accounts.
  var auth: String?
  var others: [Other] = []
  /// The names of parts whose emulators this server does not have.
  var unknown: [String] = []

  /// Creates the manifest of a new export.
  init(version: String) { self.version = version }

  /// Reads the manifest of a directory. Without a manifest, the directory may be the export of one product.
  /// - Throws: INVALID_ARGUMENT, or the error of a file that cannot be read.
  init(_ source: ExportSource) throws {
    let names = try ExportFiles.names(in: source.root)
    if names.contains(Self.fileName) {
      let path = try source.path(Self.fileName, in: source.root)
      try self.init(json: try ExportFiles.read(path, atMost: Self.maximumBytes), path)
    } else if let file = names.first(where: { $0.hasSuffix(ExportMetadata.overallSuffix) }) {
      self.init(version: "")
      firestore = file
    } else if names.contains(where: { $0.hasSuffix(".json") }) {
      self.init(version: "")
      database = "."
    } else {
      throw FirestoreError.invalidArgument(
        "\(source.root) holds no export: neither \(Self.fileName), nor a file *\(ExportMetadata.overallSuffix), nor "
          + "a Realtime Database's *.json.")
    }
  }

  private init(json bytes: [UInt8], _ path: String) throws {
    guard let root = (try? JSONValue(json: bytes))?.object else {
      throw FirestoreError.invalidArgument("Unable to parse metadata file \(path): it holds no JSON object.")
    }
    func text(_ value: JSONValue?, _ name: String) throws -> String {
      guard let text = value?[name]?.string, !text.isEmpty else {
        throw FirestoreError.invalidArgument("\(path) names no \(name) where it must be a string.")
      }
      return text
    }
    version = root["version"]?.string ?? ""
    if let part = root["firestore"] { firestore = try text(part, "metadata_file") }
    if let part = root["database"] { database = try text(part, "path") }
    if let part = root["auth"] { auth = try text(part, "path") }
    if let list = root["hearth"]?["databases"] {
      guard let list = list.array else {
        throw FirestoreError.invalidArgument("\(path) names no databases where they must be an array.")
      }
      for other in list {
        others.append(Other(database: try text(other, "database"), file: try text(other, "metadata_file")))
      }
    }
    unknown = root.members.map(\.key).filter { !Self.knownMembers.contains($0) }
  }

  /// The manifest as JSON.
  var json: [UInt8] {
    var root: JSONObject = ["version": .string(version)]
    if let firestore {
      root["firestore"] = .object([
        "version": .string(version), "path": .string(EmulatorDataDirectory.firestorePath),
        "metadata_file": .string(firestore),
      ])
    }
    if let database {
      root["database"] = .object(["version": .string(version), "path": .string(database)])
    }
    if let auth { root["auth"] = .object(["version": .string(version), "path": .string(auth)]) }
    if !others.isEmpty {
      let list = others.map { other -> JSONValue in
        .object(["database": .string(other.database), "metadata_file": .string(other.file)])
      }
      root["hearth"] = .object(["databases": .array(list)])
    }
    return JSONValue.object(root).json(pretty: true)
  }
}
