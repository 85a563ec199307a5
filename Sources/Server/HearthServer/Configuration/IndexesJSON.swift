// firestore.indexes.json, as the Firebase tools write and deploy it.
//
// Invariant: what the file says either takes effect, or stands in `warnings`, or is an error that names line, column and
// place.

import FirestoreEngine
import FirestoreModel

/// The indexes that a file chooses.
struct IndexesJSON {
  var configuration = DatabaseIndexConfiguration()
  /// What the file says without effect here.
  var warnings: [String] = []

  private let source: [UInt8]
  private let path: String
  private let dimensions: Int

  /// - Parameters:
  ///   - path: the file's name, for messages.
  ///   - dimensions: the most that a vector may have.
  /// - Throws: ``HearthError`` with line and column.
  init(
    _ bytes: [UInt8], path: String, dimensions: Int = FirestoreLimits.standard.vectorDimensions
  ) throws(HearthError) {
    self.dimensions = dimensions
    source = bytes
    self.path = path
    let root = try LocatedJSON.parse(bytes, path: path)
    guard case .object = root.content else { throw error(root, "", "must be an object") }
    warnOfOthers(than: ["indexes", "fieldOverrides"], in: root, "")
    for (position, index) in try array(root["indexes"], "indexes").enumerated() {
      try add(index: index, "indexes[\(position)]")
    }
    for (position, override) in try array(root["fieldOverrides"], "fieldOverrides").enumerated() {
      try add(override: override, "fieldOverrides[\(position)]")
    }
  }

  // MARK: Indexes

  private mutating func add(index: LocatedJSON, _ place: String) throws(HearthError) {
    try requireObject(index, place)
    warnOfOthers(
      than: ["collectionGroup", "collectionId", "queryScope", "fields", "unique"] + Self.properties,
      in: index, place)
    let collection = try collectionID(index, place)
    guard let scopeValue = index["queryScope"] else {
      throw error(index, place, "needs a queryScope: COLLECTION or COLLECTION_GROUP")
    }
    let scope = try scope(scopeValue, "\(place).queryScope")
    if let unique = index["unique"] { throw error(unique, "\(place).unique", "is not supported") }
    try noteProperties(of: index, place)
    guard let list = index["fields"] else { throw error(index, place, "needs fields") }
    var fields: [DatabaseIndexConfiguration.Field] = []
    var direction: StructuredQuery.Direction?
    let elements = try array(list, "\(place).fields")
    for (position, element) in elements.enumerated() {
      let fieldPlace = "\(place).fields[\(position)]"
      warnOfOthers(than: ["fieldPath"] + Self.modes, in: element, fieldPlace)
      warnOfVectors(in: element, fieldPlace)
      let field = try self.field(element, fieldPlace)
      if direction != nil { throw error(element, fieldPlace, "follows __name__, which ends an index") }
      guard !field.path.isDocumentID else {
        switch field.mode {
        case .ascending: direction = .ascending
        case .descending: direction = .descending
        default: throw error(element, fieldPlace, "is __name__, which can only be ordered")
        }
        continue
      }
      if fields.contains(where: { $0.path == field.path && $0.mode != .contains && field.mode != .contains })
      {
        throw error(element, fieldPlace, "names the field \(field.path) twice")
      }
      if case .vector? = fields.last?.mode {
        throw error(element, fieldPlace, "follows a vector, which ends an index")
      }
      fields.append(field)
    }
    try check(fields, list, "\(place).fields", isNamed: direction != nil)
    guard isForThisAPI(index, place) else { return }
    configuration.indexes.append(.init(collection, scope, fields, nameDirection: direction))
  }

  private func check(
    _ fields: [DatabaseIndexConfiguration.Field], _ list: LocatedJSON, _ place: String, isNamed: Bool
  ) throws(HearthError) {
    if fields.count > EngineLimits.maximumCompositeFields {
      throw error(
        list, place, "has \(fields.count) fields; at most \(EngineLimits.maximumCompositeFields) are allowed")
    }
    if fields.count(where: { $0.mode == .contains }) > 1 {
      throw error(list, place, "has more than one field with an arrayConfig; one is allowed")
    }
    if case .vector? = fields.first?.mode { return }
    if fields.isEmpty || (fields.count == 1 && !isNamed) {
      throw error(
        list, place, "must have two fields or more; one alone is indexed by itself, or by fieldOverrides")
    }
  }

  private func field(_ value: LocatedJSON, _ place: String) throws(HearthError)
    -> DatabaseIndexConfiguration.Field
  {
    try requireObject(value, place)
    guard let name = value["fieldPath"] else { throw error(value, place, "needs a fieldPath") }
    let path = try fieldPath(name, "\(place).fieldPath")
    return DatabaseIndexConfiguration.Field(path, try mode(value, place))
  }

  /// Exactly one of order, arrayConfig and vectorConfig, or the old `mode`.
  private func mode(_ value: LocatedJSON, _ place: String) throws(HearthError)
    -> DatabaseIndexConfiguration.Mode
  {
    let keys = Self.modes.filter { value[$0] != nil }
    guard keys.count == 1, let key = keys.first, let setting = value[key] else {
      throw error(value, place, "must have exactly one of order, arrayConfig and vectorConfig")
    }
    let settingPlace = "\(place).\(key)"
    switch key {
    case "order", "mode":
      switch try text(setting, settingPlace) {
      case "ASCENDING": return .ascending
      case "DESCENDING": return .descending
      case "ARRAY_CONTAINS" where key == "mode": return .contains
      case let other: throw error(setting, settingPlace, "must be ASCENDING or DESCENDING, not '\(other)'")
      }
    case "arrayConfig":
      let text = try text(setting, settingPlace)
      guard text == "CONTAINS" else { throw error(setting, settingPlace, "must be CONTAINS, not '\(text)'") }
      return .contains
    case "vectorConfig": return .vector(dimension: try dimension(setting, settingPlace))
    default: throw error(setting, settingPlace, "is not supported: text cannot be searched")
    }
  }

  private func dimension(_ value: LocatedJSON, _ place: String) throws(HearthError) -> Int {
    try requireObject(value, place)
    guard let dimension = value["dimension"], case .number(let number) = dimension.content,
      let whole = Int(exactly: number), (1...dimensions).contains(whole)
    else {
      throw error(
        value["dimension"] ?? value, "\(place).dimension", "must be 1 to \(dimensions)")
    }
    guard value["flat"] != nil else { throw error(value, place, "must be flat: {}") }
    return whole
  }

  // MARK: Overrides

  private mutating func add(override: LocatedJSON, _ place: String) throws(HearthError) {
    try requireObject(override, place)
    warnOfOthers(
      than: ["collectionGroup", "collectionId", "fieldPath", "ttl", "indexes"], in: override, place)
    let collection = try collectionID(override, place)
    guard let name = override["fieldPath"] else { throw error(override, place, "needs a fieldPath") }
    let isEverything = try text(name, "\(place).fieldPath") == "*"
    let field = isEverything ? nil : try fieldPath(name, "\(place).fieldPath")
    if let ttl = override["ttl"] {
      guard case .boolean(let expires) = ttl.content else {
        throw error(ttl, "\(place).ttl", "must be true or false")
      }
      if expires { warn(ttl, "\(place).ttl", "has no effect: documents do not expire") }
    }
    guard let list = override["indexes"] else {
      if override["ttl"] == nil { throw error(override, place, "needs indexes, or ttl") }
      return
    }
    var indexes: [DatabaseIndexConfiguration.Override.Index] = []
    for (position, element) in try array(list, "\(place).indexes").enumerated() {
      let indexPlace = "\(place).indexes[\(position)]"
      try requireObject(element, indexPlace)
      warnOfOthers(than: ["queryScope", "unique"] + Self.modes + Self.properties, in: element, indexPlace)
      if let unique = element["unique"] {
        warn(unique, "\(indexPlace).unique", "has no effect: values may repeat")
      }
      let scope =
        try element["queryScope"].map { (value) throws(HearthError) in
          try self.scope(value, "\(indexPlace).queryScope")
        }
        ?? .collection
      let mode = try mode(element, indexPlace)
      if case .vector = mode {
        throw error(element, indexPlace, "is a vector index, which belongs in indexes")
      }
      if isEverything, scope == .collectionGroup {
        throw error(
          element, indexPlace, "would index all fields of a collection group; name the fields instead")
      }
      try noteProperties(of: element, indexPlace)
      if isForThisAPI(element, indexPlace) { indexes.append(.init(scope, mode)) }
    }
    if configuration.overrides.contains(where: { $0.collectionID == collection && $0.field == field }) {
      throw error(override, place, "overrides a field of '\(collection)' a second time")
    }
    configuration.overrides.append(.init(collection, field, indexes))
  }

  // MARK: Parts

  /// What says how a field is kept; `mode` is what all were called once.
  private static let modes = ["order", "arrayConfig", "vectorConfig", "searchConfig", "mode"]
  /// What an index says about itself beside its fields and their place.
  private static let properties = ["density", "multikey", "apiScope"]

  /// Warns of each member that nobody looks at, such as a known one in another spelling.
  private mutating func warnOfOthers(than known: [String], in value: LocatedJSON, _ place: String) {
    guard case .object(let members) = value.content else { return }
    for (key, member) in members where !known.contains(key) {
      warn(member, place.isEmpty ? key : "\(place).\(key)", "is not known and has no effect")
    }
  }

  /// Warns of what nobody looks at inside a field's `vectorConfig`.
  private mutating func warnOfVectors(in field: LocatedJSON, _ place: String) {
    guard let vector = field["vectorConfig"] else { return }
    warnOfOthers(than: ["dimension", "flat"], in: vector, "\(place).vectorConfig")
    if let flat = vector["flat"] { warnOfOthers(than: [], in: flat, "\(place).vectorConfig.flat") }
  }

  /// Notes what an index says about itself that makes no difference here.
  private mutating func noteProperties(of index: LocatedJSON, _ place: String) throws(HearthError) {
    if let density = index["density"] {
      let text = try text(density, "\(place).density")
      guard ["SPARSE_ALL", "SPARSE_ANY", "DENSE"].contains(text) else {
        throw error(density, "\(place).density", "must be SPARSE_ALL, SPARSE_ANY or DENSE, not '\(text)'")
      }
      if text != "SPARSE_ALL" { warn(density, "\(place).density", "is SPARSE_ALL here; no query needs more") }
    }
    if let multikey = index["multikey"] {
      guard case .boolean(let isMultikey) = multikey.content else {
        throw error(multikey, "\(place).multikey", "must be true or false")
      }
      if isMultikey { warn(multikey, "\(place).multikey", "has no effect; no query needs it") }
    }
    if let api = index["apiScope"] {
      let text = try text(api, "\(place).apiScope")
      guard ["ANY_API", "DATASTORE_MODE_API", "MONGODB_COMPATIBLE_API"].contains(text) else {
        throw error(
          api, "\(place).apiScope",
          "must be ANY_API, DATASTORE_MODE_API or MONGODB_COMPATIBLE_API, not '\(text)'")
      }
    }
  }

  /// Whether an index is one of the API that is served.
  private mutating func isForThisAPI(_ index: LocatedJSON, _ place: String) -> Bool {
    guard let api = index["apiScope"], case .string(let text) = api.content, text != "ANY_API" else {
      return true
    }
    warn(api, "\(place).apiScope", "is \(text), which is not served: the index is left out")
    return false
  }

  private func collectionID(_ value: LocatedJSON, _ place: String) throws(HearthError) -> String {
    guard let id = value["collectionGroup"] ?? value["collectionId"] else {
      throw error(value, place, "needs a collectionGroup")
    }
    let text = try text(id, "\(place).collectionGroup")
    do throws(FirestoreError) { try ResourceID.validate(collectionID: text) } catch {
      throw self.error(id, "\(place).collectionGroup", "is no collection id: \(error.message)")
    }
    return text
  }

  private func fieldPath(_ value: LocatedJSON, _ place: String) throws(HearthError) -> FieldPath {
    let text = try text(value, place)
    do throws(FirestoreError) { return try FieldPath(parsing: text) } catch {
      throw self.error(value, place, "is no field path: \(error.message)")
    }
  }

  private func scope(_ value: LocatedJSON, _ place: String) throws(HearthError)
    -> DatabaseIndexConfiguration.Scope
  {
    switch try text(value, place) {
    case "COLLECTION": return .collection
    case "COLLECTION_GROUP", "COLLECTION_RECURSIVE": return .collectionGroup
    case let other: throw error(value, place, "must be COLLECTION or COLLECTION_GROUP, not '\(other)'")
    }
  }

  private func text(_ value: LocatedJSON, _ place: String) throws(HearthError) -> String {
    guard case .string(let text) = value.content else { throw error(value, place, "must be a text") }
    return text
  }

  private func array(_ value: LocatedJSON?, _ place: String) throws(HearthError) -> [LocatedJSON] {
    guard let value else { return [] }
    guard case .array(let elements) = value.content else { throw error(value, place, "must be an array") }
    return elements
  }

  private func requireObject(_ value: LocatedJSON, _ place: String) throws(HearthError) {
    guard case .object = value.content else { throw error(value, place, "must be an object") }
  }

  private func error(_ value: LocatedJSON, _ place: String, _ what: String) -> HearthError {
    HearthError("\(text(value.offset, place)) \(what).")
  }

  private mutating func warn(_ value: LocatedJSON, _ place: String, _ what: String) {
    warnings.append("\(text(value.offset, place)) \(what)")
  }

  private func text(_ offset: Int, _ place: String) -> String {
    "\(path):\(LocatedJSON.place(of: offset, in: source)): \(place.isEmpty ? "the file" : place)"
  }
}
