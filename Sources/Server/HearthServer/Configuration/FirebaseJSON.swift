// A project's firebase.json. The server reads the emulators' hosts and ports, the index files, and the files with
// security rules.
//
// Invariant: rules are never silently ignored. If the file names rules in a form that this server does not support,
// that is an error.

import JSON
import RealtimeModel

/// The settings of a firebase.json that the server uses.
struct FirebaseJSON: Equatable {
  struct Emulator: Equatable {
    var host: String?
    var port: Int?
  }

  var firestore = Emulator()
  var database = Emulator()
  var auth = Emulator()
  var hub = Emulator()
  var indexFiles: [HearthConfiguration.IndexFile] = []
  var rulesFiles: [HearthConfiguration.RulesFile] = []
  var databaseRulesFiles: [HearthConfiguration.DatabaseRulesFile] = []

  init() {}

  /// Parses a file.
  /// - Parameter path: the name of the file, for messages.
  init(_ bytes: [UInt8], path: String) throws(HearthError) {
    // This parser rejects duplicate members, because a duplicate could hide the member that names rules. It also adds
    // line and column to errors.
    _ = try LocatedJSON.parse(bytes, path: path)
    let json: JSONValue
    do {
      json = try JSONValue(json: Self.withoutComments(bytes), limits: JSONLimits(depth: 64, bytes: 4 << 20))
    } catch {
      throw HearthError("\(path) is not valid JSON: \(error)")
    }
    guard let root = json.object else { throw HearthError("\(path) must hold a JSON object.") }
    for section in ["firestore", "database"] { try Self.requireObjects(root[section], section, path) }
    let emulators = try Self.object(root["emulators"], "emulators", path)
    firestore = try Self.emulator("firestore", emulators, path)
    database = try Self.emulator("database", emulators, path)
    auth = try Self.emulator("auth", emulators, path)
    hub = try Self.emulator("hub", emulators, path)
    indexFiles = try Self.indexFiles(root["firestore"], path)
    rulesFiles = try Self.rulesFiles(root["firestore"], path)
    databaseRulesFiles = try Self.databaseRulesFiles(root["database"], path)
  }

  /// The value as an object; nil if it is absent or null.
  private static func object(
    _ value: JSONValue?, _ place: String, _ path: String
  ) throws(HearthError) -> JSONObject? {
    guard let value, value != .null else { return nil }
    guard let object = value.object else { throw HearthError("\(path): \(place) must be an object.") }
    return object
  }

  /// Checks the form of a product's section: an object, or an array of objects for several databases.
  private static func requireObjects(
    _ section: JSONValue?, _ name: String, _ path: String
  ) throws(HearthError) {
    guard let section, section != .null else { return }
    guard let entries = section.array else {
      guard section.object != nil else {
        throw HearthError(
          "\(path): \(name) must be an object, or an array of objects for several databases.")
      }
      return
    }
    for (index, entry) in entries.enumerated() where entry.object == nil {
      throw HearthError("\(path): \(name)[\(index)] must be an object.")
    }
  }

  /// The index files of all databases. Their paths are relative to this file.
  private static func indexFiles(
    _ section: JSONValue?, _ path: String
  ) throws(HearthError) -> [HearthConfiguration.IndexFile] {
    let entries = section?.array ?? section.map { [$0] } ?? []
    let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
    var files: [HearthConfiguration.IndexFile] = []
    for entry in entries {
      guard let value = entry.object?["indexes"], value != .null else { continue }
      guard let file = value.string, !file.isEmpty else {
        throw HearthError("\(path): firestore.indexes must be the name of a file.")
      }
      let named = entry.object?["database"] ?? .null
      guard let database = named == .null ? "(default)" : named.string, !database.isEmpty else {
        throw HearthError("\(path): firestore.database must be the id of a database.")
      }
      guard !files.contains(where: { $0.database == database }) else {
        throw HearthError("\(path): firestore names indexes of the database '\(database)' twice.")
      }
      files.append(.init(database: database, path: file.hasPrefix("/") ? file : folder + file))
    }
    return files
  }

  /// The rules files of Firestore's databases. Their paths are relative to this file.
  private static func rulesFiles(
    _ section: JSONValue?, _ path: String
  ) throws(HearthError) -> [HearthConfiguration.RulesFile] {
    let entries = section?.array ?? section.map { [$0] } ?? []
    let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
    var files: [HearthConfiguration.RulesFile] = []
    for entry in entries {
      guard let value = entry.object?["rules"], value != .null else { continue }
      guard let file = value.string, !file.isEmpty else {
        throw HearthError("\(path): firestore.rules must be the name of a file.")
      }
      let named = entry.object?["database"] ?? .null
      guard named == .null || named.string?.isEmpty == false else {
        throw HearthError("\(path): firestore.database must be the id of a database.")
      }
      guard !files.contains(where: { $0.database == named.string }) else {
        throw HearthError(
          "\(path): firestore names rules of the database '\(named.string ?? "(default)")' twice.")
      }
      files.append(.init(database: named.string, path: file.hasPrefix("/") ? file : folder + file))
    }
    return files
  }

  /// The rules files of Realtime Databases. Their paths are relative to this file.
  private static func databaseRulesFiles(
    _ section: JSONValue?, _ path: String
  ) throws(HearthError) -> [HearthConfiguration.DatabaseRulesFile] {
    let entries = section?.array ?? section.map { [$0] } ?? []
    let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
    var files: [HearthConfiguration.DatabaseRulesFile] = []
    for entry in entries {
      guard let value = entry.object?["rules"], value != .null else { continue }
      guard let file = value.string, !file.isEmpty else {
        throw HearthError("\(path): database.rules must be the name of a file.")
      }
      let target = entry.object?["target"] ?? .null
      guard target == .null else {
        throw HearthError(
          "\(path): database.target names a deploy target of .firebaserc, which this server does not read. Name the "
            + "database as 'instance' instead.")
      }
      let instance = entry.object?["instance"] ?? .null
      guard instance == .null || instance.string?.isEmpty == false else {
        throw HearthError("\(path): database.instance must be the name of a database.")
      }
      guard !files.contains(where: { $0.instance == instance.string }) else {
        throw HearthError(
          "\(path): database names rules of '\(instance.string ?? "the default database")' twice.")
      }
      files.append(.init(instance: instance.string, path: file.hasPrefix("/") ? file : folder + file))
    }
    return files
  }

  private static func emulator(
    _ name: String, _ emulators: JSONObject?, _ path: String
  ) throws(HearthError) -> Emulator {
    guard let entry = try object(emulators?[name], "emulators.\(name)", path) else { return Emulator() }
    var emulator = Emulator()
    if let value = entry["host"], value != .null {
      guard let host = value.string, !host.isEmpty else {
        throw HearthError("\(path): emulators.\(name).host must be a host name.")
      }
      emulator.host = host
    }
    if let value = entry["port"], value != .null {
      guard case .int(let port) = value, (0...65_535).contains(port) else {
        throw HearthError("\(path): emulators.\(name).port must be a number from 0 to 65535.")
      }
      emulator.port = Int(port)
    }
    return emulator
  }

  /// The byte-order mark U+FEFF, which some editors write at the start of a UTF-8 file.
  static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// Replaces comments and a byte-order mark by spaces, so that positions do not change. The Firebase tools
  /// accept `//` and `/* */` comments in this file.
  static func withoutComments(_ source: [UInt8]) -> [UInt8] {
    enum Place { case text, string, escape, line, block }
    var bytes = source
    var place = Place.text
    var index = 0
    if source.starts(with: byteOrderMark) {
      while index < byteOrderMark.count {
        bytes[index] = UInt8(ascii: " ")
        index += 1
      }
    }
    while index < bytes.count {
      let byte = bytes[index]
      let next = index + 1 < bytes.count ? bytes[index + 1] : 0
      switch place {
      case .text where byte == UInt8(ascii: "\""): place = .string
      case .text where byte == UInt8(ascii: "/") && (next == UInt8(ascii: "/") || next == UInt8(ascii: "*")):
        place = next == UInt8(ascii: "/") ? .line : .block
        bytes[index] = UInt8(ascii: " ")
        bytes[index + 1] = UInt8(ascii: " ")
        index += 1
      case .text: break
      case .string where byte == UInt8(ascii: "\\"): place = .escape
      case .string where byte == UInt8(ascii: "\""): place = .text
      case .string: break
      case .escape: place = .string
      case .line where byte == UInt8(ascii: "\n"): place = .text
      case .line: bytes[index] = UInt8(ascii: " ")
      case .block:
        bytes[index] = UInt8(ascii: " ")
        if byte == UInt8(ascii: "*"), next == UInt8(ascii: "/") {
          bytes[index + 1] = UInt8(ascii: " ")
          index += 1
          place = .text
        }
      }
      index += 1
    }
    return bytes
  }
}
