// The spec reader: parses documents, queries and events in the JSON cases of the official sync specs. It also
// formats received events as strings that can be compared with expected ones.

import FirestoreModel
import Foundation

@testable import FirebaseFirestore

enum SpecReader {
  typealias JSON = [String: Any]

  static func name(_ path: String) -> DocumentName {
    let parsed = DocumentName(database: SyncSpecRunner.database, path: ResourcePath(splitting: path))
    return parsed ?? ParentName(rootOf: SyncSpecRunner.database).collection("invalid").document("path")
  }

  static func targets(_ value: Any) -> [TargetID] { (value as? [Int] ?? []).map { TargetID($0) } }

  static func version(_ value: Any?) -> ModelTimestamp {
    ModelTimestamp(microseconds: Int64(value as? Int ?? 0))
  }

  static func error(_ body: JSON) -> FirestoreError {
    let code = StatusCode(rawValue: Int32(body["code"] as? Int ?? 2))
    return FirestoreError(code, body["message"] as? String ?? "")
  }

  static func value(_ json: Any) -> Value {
    switch json {
    case is NSNull: return .null
    case let number as NSNumber:
      if type(of: number) == type(of: NSNumber(value: true)) { return .boolean(number.boolValue) }
      let code = String(cString: number.objCType)
      if code == "d" || code == "f" {
        return Int64(exactly: number.doubleValue).map(Value.integer) ?? .double(number.doubleValue)
      }
      return .integer(number.int64Value)
    case let text as String: return .string(text)
    case let list as [Any]: return .array(list.map(value))
    case let map as JSON: return .map(fields(map))
    default: return .null
    }
  }

  static func fields(_ json: JSON) -> MapValue { MapValue(json.map { ($0.key, value($0.value)) }) }

  /// Returns an update. The keys of the JSON are dotted paths.
  static func patch(_ name: DocumentName, _ json: JSON) -> Write {
    var fields = MapValue()
    var mask: [ModelFieldPath] = []
    for (key, raw) in json.sorted(by: { $0.key < $1.key }) {
      guard let path = ModelFieldPath(segments: key.split(separator: ".").map(String.init)) else { continue }
      mask.append(path)
      if raw as? String != "<DELETE>" { fields.set(value(raw), at: path) }
    }
    return Write(.update(name, fields: fields), mask: mask, precondition: .exists(true))
  }

  static func purpose(_ text: String?) -> TargetPurpose {
    switch text {
    case "TargetPurposeExistenceFilterMismatch": .existenceFilterMismatch
    case "TargetPurposeExistenceFilterMismatchBloom": .existenceFilterMismatchBloom
    case "TargetPurposeLimboResolution": .limboResolution
    default: .listen
    }
  }

  static func bloomFilter(_ value: Any?) -> BloomFilter? {
    guard let body = value as? JSON, let bits = body["bits"] as? JSON,
      let bitmap = Data(base64Encoded: bits["bitmap"] as? String ?? "")
    else { return nil }
    return BloomFilter(
      bitmap: [UInt8](bitmap), padding: bits["padding"] as? Int ?? 0,
      hashCount: body["hashCount"] as? Int ?? 0)
  }

  // MARK: Queries

  static func query(_ json: JSON) -> ClientQuery {
    let path = ResourcePath(splitting: json["path"] as? String ?? "")
    if path.isDocument { return ClientQuery(document: name(path.description)) }
    let group = json["collectionGroup"] as? String
    var structured = StructuredQuery(from: [.init(group ?? path.id ?? "", allDescendants: group != nil)])
    let filters = (json["filters"] as? [[Any]] ?? []).compactMap(filter)
    if filters.count == 1 { structured.filter = filters[0] }
    if filters.count > 1 { structured.filter = .composite(.and, filters) }
    structured.orderBy = (json["orderBys"] as? [[String]] ?? []).compactMap { order in
      guard let field = try? ModelFieldPath(parsing: order[0]) else { return nil }
      return .init(field, order.last == "desc" ? .descending : .ascending)
    }
    structured.limit = json["limit"] as? Int
    let parent = ParentName(
      database: SyncSpecRunner.database, path: group == nil ? path.parent ?? .root : path)
    return ClientQuery(
      ModelQuery(parent: parent ?? ParentName(rootOf: SyncSpecRunner.database), structured),
      isLimitToLast: json["limitType"] as? String == "LimitToLast")
  }

  private static func filter(_ parts: [Any]) -> ModelFilter? {
    guard parts.count == 3, let field = parts[0] as? String, let op = parts[1] as? String,
      let path = try? ModelFieldPath(parsing: field)
    else { return nil }
    let operators: [String: FieldFilter.Operator] = [
      "==": .equal, "!=": .notEqual, "<": .lessThan, "<=": .lessThanOrEqual, ">": .greaterThan,
      ">=": .greaterThanOrEqual, "array-contains": .arrayContains, "in": .isIn,
      "array-contains-any": .arrayContainsAny, "not-in": .notIn,
    ]
    return operators[op].map { .field(FieldFilter(path, $0, value(parts[2]))) }
  }

  /// Returns the same string for equal queries.
  static func key(_ json: JSON) -> String {
    let data = try? JSONSerialization.data(withJSONObject: json, options: [.sortedKeys])
    return String(decoding: data ?? Data(), as: UTF8.self)
  }

  // MARK: Documents

  static func document(_ json: JSON) -> CachedDocument {
    let name = name(json["key"] as? String ?? "")
    guard let contents = json["value"] as? JSON else {
      return CachedDocument(missing: name, version: version(json["version"]))
    }
    return CachedDocument(
      found: name, fields: fields(contents), version: version(json["version"]),
      createTime: version(json["createTime"]))
  }

  static func entities(_ body: JSON) -> [WatchChange] {
    let updated = targets(body["targets"] ?? [])
    let removed = targets(body["removedTargets"] ?? [])
    if let key = body["key"] as? String {
      return [.document(name(key), nil, updated: updated, removed: removed)]
    }
    let documents = body["docs"] as? [JSON] ?? (body["doc"] as? JSON).map { [$0] } ?? []
    return documents.map { json in
      let document = document(json)
      return .document(document.name, document, updated: updated, removed: removed)
    }
  }

  // MARK: Events

  static func describeEvent(_ json: JSON) -> String {
    let code = json["errorCode"] as? Int ?? 0
    let query = key(json["query"] as? JSON ?? [:])
    if code != 0 { return "\(query) error \(code)" }
    var text = "\(query) cache \(json["fromCache"] as? Bool ?? false)"
    text += " pending \(json["hasPendingWrites"] as? Bool ?? false)"
    for kind in ["removed", "added", "modified", "metadata"] {
      let documents = (json[kind] as? [JSON] ?? []).map { json -> String in
        let options = json["options"] as? JSON ?? [:]
        var document = document(json)
        if options["hasLocalMutations"] as? Bool == true { document.changes = .local }
        if options["hasCommittedMutations"] as? Bool == true { document.changes = .committed }
        return describeDocument(document)
      }
      // The order of the changes within an event is undefined.
      if !documents.isEmpty { text += " \(kind) \(documents.sorted())" }
    }
    return text
  }

  static func describeEvent(query: String, _ snapshot: ViewSnapshot?, _ error: FirestoreError?) -> String {
    guard let snapshot else { return "\(query) error \(error?.code.rawValue ?? 0)" }
    var text = "\(query) cache \(snapshot.fromCache) pending \(snapshot.hasPendingWrites)"
    let kinds: [(String, ViewChange.Kind)] = [
      ("removed", .removed), ("added", .added), ("modified", .modified), ("metadata", .metadata),
    ]
    for (word, kind) in kinds {
      let documents = snapshot.changes.filter { $0.kind == kind }.map { describeDocument($0.document) }
      if !documents.isEmpty { text += " \(word) \(documents.sorted())" }
    }
    return text
  }

  private static func describeDocument(_ document: CachedDocument) -> String {
    "\(document.name.path)@\(document.version.microseconds) \(document.changes)"
      + " \(Value.map(document.fields).canonicalText)"
  }
}
