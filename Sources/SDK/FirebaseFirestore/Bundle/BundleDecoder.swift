// Decodes the JSON of one bundle element. Bundles from different server libraries differ: times are RFC 3339
// strings, or seconds and nanoseconds. Limits are numbers, or objects with a value. The decoder converts them
// to the JSON form of the public API's messages, and parses the messages.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import SwiftProtobuf

struct BundleDecoder: Sendable {
  private typealias JSON = [String: Any]

  /// The database to which the bundle must belong.
  let database: DatabaseName

  func decode(_ bytes: [UInt8]) throws(FirestoreError) -> BundleElement {
    guard let json = try? JSONSerialization.jsonObject(with: Data(bytes)) as? JSON else {
      throw .damagedBundle("The bundle is damaged: an element is not a JSON object.")
    }
    if let body = json["metadata"] { return .metadata(try metadata(object(body, "metadata"))) }
    if let body = json["namedQuery"] { return .namedQuery(try namedQuery(object(body, "namedQuery"))) }
    if let body = json["documentMetadata"] {
      return .documentMetadata(try documentMetadata(object(body, "documentMetadata")))
    }
    if let body = json["document"] { return .document(try document(object(body, "document"))) }
    throw .damagedBundle(
      "The bundle is damaged: an element must be 'metadata', 'namedQuery', 'documentMetadata' or 'document'.")
  }

  // MARK: Elements

  private func metadata(_ json: JSON) throws(FirestoreError) -> BundleMetadata {
    BundleMetadata(
      id: try string(json, "id"), version: UInt32(clamping: try number(json, "version", orElse: nil)),
      createTime: try time(json, "createTime"),
      totalDocuments: try number(json, "totalDocuments", orElse: 0),
      totalBytes: try number(json, "totalBytes", orElse: 0))
  }

  private func namedQuery(_ json: JSON) throws(FirestoreError) -> NamedQuery {
    let name = try string(json, "name")
    let bundled = try object(json["bundledQuery"], "bundledQuery")
    let structured = try object(bundled["structuredQuery"], "structuredQuery")
    for clause in ["select", "offset", "findNearest"] where structured[clause] != nil {
      throw .damagedBundle(
        "The bundle's query '\(name)' has '\(clause)', which queries in bundles cannot have.")
    }
    guard let from = structured["from"] as? [Any], from.count == 1 else {
      throw .damagedBundle("The bundle's query '\(name)' must name exactly one collection in 'from'.")
    }
    let parent: ParentName
    do { parent = try ParentName(parsing: try string(bundled, "parent")) } catch {
      throw .damagedBundle("The bundle's query '\(name)': \(error.message)")
    }
    try check(parent.database)
    let message: Google_Firestore_V1_StructuredQuery = try message(structured)
    let isLimitToLast: Bool
    switch bundled["limitType"] as? String ?? "FIRST" {
    case "FIRST": isLimitToLast = false
    case "LAST": isLimitToLast = message.hasLimit
    case let other:
      throw .damagedBundle(
        "The bundle's query '\(name)' has the limit type '\(other)'; FIRST or LAST is allowed.")
    }
    do throws(FirestoreError) {
      let query = ModelQuery(parent: parent, try StructuredQuery(message))
      _ = try NormalizedQuery(query)
      if isLimitToLast, query.structured.orderBy.isEmpty {
        throw FirestoreError.invalidArgument("a limit to the last documents needs an order.")
      }
      return NamedQuery(
        name: name, query: query, isLimitToLast: isLimitToLast, readTime: try time(json, "readTime"))
    } catch {
      throw .damagedBundle("The bundle's query '\(name)' is not valid: \(error.message)")
    }
  }

  private func documentMetadata(_ json: JSON) throws(FirestoreError) -> BundledDocumentMetadata {
    let queries: [String]
    switch json["queries"] {
    case nil: queries = []
    case let names as [String]: queries = names
    default: throw .damagedBundle("The bundle is damaged: 'queries' is not a list of names.")
    }
    return BundledDocumentMetadata(
      name: try documentName(try string(json, "name")), readTime: try time(json, "readTime"),
      exists: json["exists"] as? Bool ?? false, queries: queries)
  }

  private func document(_ json: JSON) throws(FirestoreError) -> CachedDocument {
    let name = try documentName(try string(json, "name"))
    let updateTime = try time(json, "updateTime")
    let message: Google_Firestore_V1_Document = try message(json)
    do {
      let document = try Document(message)
      return CachedDocument(
        found: name, fields: document.fields, version: updateTime, createTime: document.createTime)
    } catch {
      throw .damagedBundle("The bundle's document '\(name)' cannot be read: \(error.message)")
    }
  }

  // MARK: Names

  private func documentName(_ text: String) throws(FirestoreError) -> DocumentName {
    let name: DocumentName
    do { name = try DocumentName(parsing: text) } catch {
      throw .damagedBundle("The bundle is damaged: \(error.message)")
    }
    try check(name.database)
    return name
  }

  private func check(_ other: DatabaseName) throws(FirestoreError) {
    if other != database {
      throw .damagedBundle("The bundle is for \(other) and cannot be loaded into \(database).")
    }
  }

  // MARK: Values

  private func object(_ json: Any?, _ name: String) throws(FirestoreError) -> JSON {
    guard let json = json as? JSON else {
      throw .damagedBundle("The bundle is damaged: '\(name)' is missing or not an object.")
    }
    return json
  }

  private func string(_ json: JSON, _ name: String) throws(FirestoreError) -> String {
    guard let text = json[name] as? String else {
      throw .damagedBundle("The bundle is damaged: '\(name)' is missing or not a string.")
    }
    return text
  }

  /// Reads a count, which is a number or a string. Without a value it returns `defaultValue`, or throws if that
  /// is nil.
  private func number(_ json: JSON, _ name: String, orElse defaultValue: Int?) throws(FirestoreError) -> Int {
    let value: Int?
    switch json[name] {
    case nil: value = defaultValue
    case let text as String: value = Int(text)
    case let number as NSNumber: value = Int(exactly: number.doubleValue)
    default: value = nil
    }
    guard let value, value >= 0 else {
      throw .damagedBundle("The bundle is damaged: '\(name)' is missing or not a count.")
    }
    return value
  }

  private func time(_ json: JSON, _ name: String) throws(FirestoreError) -> ModelTimestamp {
    guard let value = json[name], let text = BundleDecoder.timeText(value),
      let time = try? Google_Protobuf_Timestamp(jsonString: "\"\(text)\"")
    else { throw .damagedBundle("The bundle is damaged: '\(name)' is missing or not a time.") }
    return ModelTimestamp(time)
  }

  /// A time as an RFC 3339 string; nil if the JSON is not a time.
  private static func timeText(_ json: Any) -> String? {
    if let text = json as? String {
      // Rejects characters that would end the JSON string that contains the text.
      return text.utf8.contains { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C } ? nil : text
    }
    guard let parts = json as? JSON, parts.keys.allSatisfy({ $0 == "seconds" || $0 == "nanos" }) else {
      return nil
    }
    func part(_ name: String) -> Int64? {
      switch parts[name] {
      case nil: 0
      case let text as String: Int64(text)
      case let number as NSNumber: Int64(exactly: number.doubleValue)
      default: nil
      }
    }
    guard let seconds = part("seconds"), let nanos = part("nanos"), (0..<1_000_000_000).contains(nanos) else {
      return nil
    }
    let stamp = Google_Protobuf_Timestamp(seconds: seconds, nanos: Int32(nanos))
    return try? stamp.jsonString().trimmingCharacters(in: CharacterSet(charactersIn: "\""))
  }

  private func message<M: Message>(_ json: JSON) throws(FirestoreError) -> M {
    do {
      let data = try JSONSerialization.data(withJSONObject: BundleDecoder.canonical(json))
      var options = JSONDecodingOptions()
      options.ignoreUnknownFields = true
      return try M(jsonUTF8Data: data, options: options)
    } catch {
      throw .damagedBundle("The bundle is damaged: an element cannot be read: \(error)")
    }
  }

  private static let timeNames: Set<String> = ["timestampValue", "createTime", "updateTime", "readTime"]

  /// Converts JSON to the form of the public API's messages.
  private static func canonical(_ json: Any, isFields: Bool = false) -> Any {
    switch json {
    case let list as [Any]: return list.map { canonical($0) }
    case let map as JSON:
      var result: JSON = [:]
      for (key, value) in map {
        if isFields {
          // The keys are the app's field names. A field that is named `limit` or `readTime` must not be converted.
          result[key] = canonical(value)
        } else if timeNames.contains(key), let text = timeText(value) {
          result[key] = text
        } else if key == "limit", let limit = value as? JSON {
          result[key] = limit["value"] ?? 0
        } else {
          result[key] = canonical(value, isFields: key == "fields")
        }
      }
      return result
    default: return json
    }
  }
}
