// Parses an index file, firestore.indexes.json, in the format of the Firebase tools.
//
// Invariant: no part of the file is silently ignored. A part without effect is in `warnings`, and an invalid
// part is an error with line, column and JSON path.

import FirestoreEngine
import FirestoreModel

/// The indexes of a file.
struct IndexesJSON {
  var configuration = DatabaseIndexConfiguration()
  /// The parts of the file that have no effect here.
  var warnings: [String] = []

  private let source: [UInt8]
  private let path: String
  private let dimensions: Int

  /// Parses a file.
  /// - Parameters:
  ///   - path: the name of the file, for messages.
  ///   - dimensions: the maximum number of dimensions of a vector.
  /// - Throws: ``HearthError`` with line and column.
  init(
    _ bytes: [UInt8], path: String, dimensions: Int = FirestoreLimits.standard.vectorDimensions
  ) throws(HearthError) {
    self.dimensions = dimensions
    source = bytes
    self.path = path
    let root = try LocatedJSON.parse(bytes, path: path)
    guard case .object = root.content else { throw error(root, "", "must be an object") }
    warnAboutUnknownMembers(except: ["indexes", "fieldOverrides"], in: root, "")
    for (position, index) in try array(root["indexes"], "indexes").enumerated() {
      try add(index: index, "indexes[\(position)]")
    }
    for (position, override) in try array(root["fieldOverrides"], "fieldOverrides").enumerated() {
      try add(override: override, "fieldOverrides[\(position)]")
    }
  }

  // MARK: Indexes

  private mutating func add(index: LocatedJSON, _ jsonPath: String) throws(HearthError) {
    try requireObject(index, jsonPath)
    warnAboutUnknownMembers(
      except: ["collectionGroup", "collectionId", "queryScope", "fields", "unique"] + Self.properties,
      in: index, jsonPath)
    let collection = try collectionID(index, jsonPath)
    guard let scopeValue = index["queryScope"] else {
      throw error(index, jsonPath, "needs a queryScope: COLLECTION or COLLECTION_GROUP")
    }
    let scope = try scope(scopeValue, "\(jsonPath).queryScope")
    if let unique = index["unique"] { throw error(unique, "\(jsonPath).unique", "is not supported") }
    try checkProperties(of: index, jsonPath)
    guard let list = index["fields"] else { throw error(index, jsonPath, "needs fields") }
    var fields: [DatabaseIndexConfiguration.Field] = []
    var direction: StructuredQuery.Direction?
    var repeatsField = false
    let elements = try array(list, "\(jsonPath).fields")
    for (position, element) in elements.enumerated() {
      let fieldJSONPath = "\(jsonPath).fields[\(position)]"
      warnAboutUnknownMembers(except: ["fieldPath"] + Self.modes, in: element, fieldJSONPath)
      warnAboutVectorMembers(in: element, fieldJSONPath)
      let field = try self.field(element, fieldJSONPath)
      if direction != nil { throw error(element, fieldJSONPath, "follows __name__, which ends an index") }
      guard !field.path.isDocumentID else {
        switch field.mode {
        case .ascending: direction = .ascending
        case .descending: direction = .descending
        default: throw error(element, fieldJSONPath, "is __name__, which can only be ordered")
        }
        continue
      }
      if fields.contains(where: { $0.path == field.path && $0.mode != .contains && field.mode != .contains })
      {
        // Firebase rejects this index alone.
        warn(element, fieldJSONPath, "names the field \(field.path) twice: the index is left out")
        repeatsField = true
        continue
      }
      if case .vector? = fields.last?.mode {
        throw error(element, fieldJSONPath, "follows a vector, which ends an index")
      }
      fields.append(field)
    }
    if repeatsField { return }
    try check(fields, list, "\(jsonPath).fields", endsWithName: direction != nil)
    guard isForThisAPI(index, jsonPath) else { return }
    configuration.indexes.append(.init(collection, scope, fields, nameDirection: direction))
  }

  private func check(
    _ fields: [DatabaseIndexConfiguration.Field], _ list: LocatedJSON, _ jsonPath: String, endsWithName: Bool
  ) throws(HearthError) {
    if fields.count > EngineLimits.maximumCompositeFields {
      throw error(
        list, jsonPath,
        "has \(fields.count) fields; at most \(EngineLimits.maximumCompositeFields) are allowed")
    }
    if fields.count(where: { $0.mode == .contains }) > 1 {
      throw error(list, jsonPath, "has more than one field with an arrayConfig; one is allowed")
    }
    if case .vector? = fields.first?.mode { return }
    if fields.isEmpty || (fields.count == 1 && !endsWithName) {
      throw error(
        list, jsonPath, "must have two fields or more; one alone is indexed by itself, or by fieldOverrides")
    }
  }

  private func field(_ value: LocatedJSON, _ jsonPath: String) throws(HearthError)
    -> DatabaseIndexConfiguration.Field
  {
    try requireObject(value, jsonPath)
    guard let name = value["fieldPath"] else { throw error(value, jsonPath, "needs a fieldPath") }
    let path = try fieldPath(name, "\(jsonPath).fieldPath")
    return DatabaseIndexConfiguration.Field(path, try mode(value, jsonPath))
  }

  /// The index mode: exactly one of order, arrayConfig and vectorConfig, or the old `mode`.
  private func mode(_ value: LocatedJSON, _ jsonPath: String) throws(HearthError)
    -> DatabaseIndexConfiguration.Mode
  {
    let keys = Self.modes.filter { value[$0] != nil }
    guard keys.count == 1, let key = keys.first, let setting = value[key] else {
      throw error(value, jsonPath, "must have exactly one of order, arrayConfig and vectorConfig")
    }
    let settingJSONPath = "\(jsonPath).\(key)"
    switch key {
    case "order", "mode":
      switch try string(setting, settingJSONPath) {
      case "ASCENDING": return .ascending
      case "DESCENDING": return .descending
      case "ARRAY_CONTAINS" where key == "mode": return .contains
      case let other: throw error(setting, settingJSONPath, "must be ASCENDING or DESCENDING, not '\(other)'")
      }
    case "arrayConfig":
      let text = try string(setting, settingJSONPath)
      guard text == "CONTAINS" else {
        throw error(setting, settingJSONPath, "must be CONTAINS, not '\(text)'")
      }
      return .contains
    case "vectorConfig": return .vector(dimension: try dimension(setting, settingJSONPath))
    default: throw error(setting, settingJSONPath, "is not supported: text cannot be searched")
    }
  }

  private func dimension(_ value: LocatedJSON, _ jsonPath: String) throws(HearthError) -> Int {
    try requireObject(value, jsonPath)
    guard let dimension = value["dimension"], case .number(let number) = dimension.content,
      let integer = Int(exactly: number), (1...dimensions).contains(integer)
    else {
      throw error(
        value["dimension"] ?? value, "\(jsonPath).dimension", "must be 1 to \(dimensions)")
    }
    guard value["flat"] != nil else { throw error(value, jsonPath, "must be flat: {}") }
    return integer
  }

  // MARK: Overrides

  private mutating func add(override: LocatedJSON, _ jsonPath: String) throws(HearthError) {
    try requireObject(override, jsonPath)
    warnAboutUnknownMembers(
      except: ["collectionGroup", "collectionId", "fieldPath", "ttl", "indexes"], in: override, jsonPath)
    let collection = try collectionID(override, jsonPath)
    guard let name = override["fieldPath"] else { throw error(override, jsonPath, "needs a fieldPath") }
    let isWildcard = try string(name, "\(jsonPath).fieldPath") == "*"
    let field = isWildcard ? nil : try fieldPath(name, "\(jsonPath).fieldPath")
    if let ttl = override["ttl"] {
      guard case .boolean(let expires) = ttl.content else {
        throw error(ttl, "\(jsonPath).ttl", "must be true or false")
      }
      if expires { warn(ttl, "\(jsonPath).ttl", "has no effect: documents do not expire") }
    }
    guard let list = override["indexes"] else {
      if override["ttl"] == nil { throw error(override, jsonPath, "needs indexes, or ttl") }
      return
    }
    var indexes: [DatabaseIndexConfiguration.Override.Index] = []
    for (position, element) in try array(list, "\(jsonPath).indexes").enumerated() {
      let indexJSONPath = "\(jsonPath).indexes[\(position)]"
      try requireObject(element, indexJSONPath)
      warnAboutUnknownMembers(
        except: ["queryScope", "unique"] + Self.modes + Self.properties, in: element, indexJSONPath)
      if let unique = element["unique"] {
        warn(unique, "\(indexJSONPath).unique", "has no effect: values may repeat")
      }
      let scope =
        try element["queryScope"].map { (value) throws(HearthError) in
          try self.scope(value, "\(indexJSONPath).queryScope")
        }
        ?? .collection
      let mode = try mode(element, indexJSONPath)
      if case .vector = mode {
        throw error(element, indexJSONPath, "is a vector index, which belongs in indexes")
      }
      if isWildcard, scope == .collectionGroup {
        throw error(
          element, indexJSONPath, "would index all fields of a collection group; name the fields instead")
      }
      try checkProperties(of: element, indexJSONPath)
      if isForThisAPI(element, indexJSONPath) { indexes.append(.init(scope, mode)) }
    }
    if configuration.overrides.contains(where: { $0.collectionID == collection && $0.field == field }) {
      throw error(override, jsonPath, "overrides a field of '\(collection)' a second time")
    }
    configuration.overrides.append(.init(collection, field, indexes))
  }

  // MARK: Parts

  /// The members that select how a field is indexed. `mode` is the old form of all of them.
  private static let modes = ["order", "arrayConfig", "vectorConfig", "searchConfig", "mode"]
  /// The members of an index that describe it apart from its fields.
  private static let properties = ["density", "multikey", "apiScope"]

  /// Warns of each unknown member, such as a misspelled one.
  private mutating func warnAboutUnknownMembers(
    except knownMembers: [String], in value: LocatedJSON, _ jsonPath: String
  ) {
    guard case .object(let members) = value.content else { return }
    for (key, member) in members where !knownMembers.contains(key) {
      warn(member, jsonPath.isEmpty ? key : "\(jsonPath).\(key)", "is not known and has no effect")
    }
  }

  /// Warns of unknown members in a field's `vectorConfig`.
  private mutating func warnAboutVectorMembers(in field: LocatedJSON, _ jsonPath: String) {
    guard let vector = field["vectorConfig"] else { return }
    warnAboutUnknownMembers(except: ["dimension", "flat"], in: vector, "\(jsonPath).vectorConfig")
    if let flat = vector["flat"] {
      warnAboutUnknownMembers(except: [], in: flat, "\(jsonPath).vectorConfig.flat")
    }
  }

  /// Checks the members of an index that are valid but have no effect in this server.
  private mutating func checkProperties(of index: LocatedJSON, _ jsonPath: String) throws(HearthError) {
    if let density = index["density"] {
      let text = try string(density, "\(jsonPath).density")
      guard ["SPARSE_ALL", "SPARSE_ANY", "DENSE"].contains(text) else {
        throw error(density, "\(jsonPath).density", "must be SPARSE_ALL, SPARSE_ANY or DENSE, not '\(text)'")
      }
      if text != "SPARSE_ALL" {
        warn(density, "\(jsonPath).density", "is SPARSE_ALL here; no query needs more")
      }
    }
    if let multikey = index["multikey"] {
      guard case .boolean(let isMultikey) = multikey.content else {
        throw error(multikey, "\(jsonPath).multikey", "must be true or false")
      }
      if isMultikey { warn(multikey, "\(jsonPath).multikey", "has no effect; no query needs it") }
    }
    if let api = index["apiScope"] {
      let text = try string(api, "\(jsonPath).apiScope")
      guard ["ANY_API", "DATASTORE_MODE_API", "MONGODB_COMPATIBLE_API"].contains(text) else {
        throw error(
          api, "\(jsonPath).apiScope",
          "must be ANY_API, DATASTORE_MODE_API or MONGODB_COMPATIBLE_API, not '\(text)'")
      }
    }
  }

  /// Whether an index belongs to the API that this server implements.
  private mutating func isForThisAPI(_ index: LocatedJSON, _ jsonPath: String) -> Bool {
    guard let api = index["apiScope"], case .string(let text) = api.content, text != "ANY_API" else {
      return true
    }
    warn(api, "\(jsonPath).apiScope", "is \(text), which is not served: the index is left out")
    return false
  }

  private func collectionID(_ value: LocatedJSON, _ jsonPath: String) throws(HearthError) -> String {
    guard let id = value["collectionGroup"] ?? value["collectionId"] else {
      throw error(value, jsonPath, "needs a collectionGroup")
    }
    let text = try string(id, "\(jsonPath).collectionGroup")
    do throws(FirestoreError) { try ResourceID.validate(collectionID: text) } catch {
      throw self.error(id, "\(jsonPath).collectionGroup", "is no collection id: \(error.message)")
    }
    return text
  }

  private func fieldPath(_ value: LocatedJSON, _ jsonPath: String) throws(HearthError) -> FieldPath {
    let text = try string(value, jsonPath)
    do throws(FirestoreError) { return try FieldPath(parsing: text) } catch {
      throw self.error(value, jsonPath, "is no field path: \(error.message)")
    }
  }

  private func scope(_ value: LocatedJSON, _ jsonPath: String) throws(HearthError)
    -> DatabaseIndexConfiguration.Scope
  {
    switch try string(value, jsonPath) {
    case "COLLECTION": return .collection
    case "COLLECTION_GROUP", "COLLECTION_RECURSIVE": return .collectionGroup
    case let other: throw error(value, jsonPath, "must be COLLECTION or COLLECTION_GROUP, not '\(other)'")
    }
  }

  private func string(_ value: LocatedJSON, _ jsonPath: String) throws(HearthError) -> String {
    guard case .string(let string) = value.content else { throw error(value, jsonPath, "must be a string") }
    return string
  }

  private func array(_ value: LocatedJSON?, _ jsonPath: String) throws(HearthError) -> [LocatedJSON] {
    guard let value else { return [] }
    guard case .array(let elements) = value.content else { throw error(value, jsonPath, "must be an array") }
    return elements
  }

  private func requireObject(_ value: LocatedJSON, _ jsonPath: String) throws(HearthError) {
    guard case .object = value.content else { throw error(value, jsonPath, "must be an object") }
  }

  private func error(_ value: LocatedJSON, _ jsonPath: String, _ problem: String) -> HearthError {
    HearthError("\(location(value.offset, jsonPath)) \(problem).")
  }

  private mutating func warn(_ value: LocatedJSON, _ jsonPath: String, _ problem: String) {
    warnings.append("\(location(value.offset, jsonPath)) \(problem)")
  }

  private func location(_ offset: Int, _ jsonPath: String) -> String {
    "\(path):\(LocatedJSON.lineAndColumn(of: offset, in: source)): \(jsonPath.isEmpty ? "the file" : jsonPath)"
  }
}
