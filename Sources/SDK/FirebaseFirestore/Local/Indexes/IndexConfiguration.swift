// The index configuration: parses the file that Firebase's command-line tools export
// (firestore.indexes.json).

import FirestoreModel
import Foundation

enum IndexConfiguration {
  private typealias JSON = [String: Any]

  /// Parses the indexes of a configuration. It ignores scopes, overrides and modes, because the cache does
  /// not use them.
  static func parse(_ data: Data) throws(FirestoreError) -> Set<FieldIndex> {
    guard let json = try? JSONSerialization.jsonObject(with: data) as? JSON else {
      throw .invalidArgument("The index configuration is not a valid JSON object.")
    }
    var indexes: Set<FieldIndex> = []
    for (number, body) in try list(json, "indexes", in: "the configuration").enumerated() {
      let path = "indexes[\(number)]"
      guard let body = body as? JSON, let collection = body["collectionGroup"] as? String, !collection.isEmpty
      else {
        throw .invalidArgument("Index configuration: '\(path).collectionGroup' is missing or not a string.")
      }
      var segments: [FieldIndex.Segment] = []
      for (number, field) in try list(body, "fields", in: path).enumerated() {
        segments.append(try segment(field, in: "\(path).fields[\(number)]"))
      }
      if let index = FieldIndex(collectionID: collection, segments: segments) { indexes.insert(index) }
    }
    return indexes
  }

  private static func list(_ json: JSON, _ name: String, in path: String) throws(FirestoreError) -> [Any] {
    switch json[name] {
    case nil: return []
    case let list as [Any]: return list
    default: throw .invalidArgument("Index configuration: '\(name)' in \(path) is not a list.")
    }
  }

  private static func segment(_ json: Any, in path: String) throws(FirestoreError) -> FieldIndex.Segment {
    guard let json = json as? JSON, let text = json["fieldPath"] as? String else {
      throw .invalidArgument("Index configuration: '\(path).fieldPath' is missing or not a string.")
    }
    let field: ModelFieldPath
    do { field = try ModelFieldPath(parsing: text) } catch {
      throw .invalidArgument("Index configuration: '\(path).fieldPath': \(error.message)")
    }
    switch json["arrayConfig"] {
    case nil: break
    case "CONTAINS" as String: return .init(field: field, kind: .elements)
    default: throw .invalidArgument("Index configuration: '\(path).arrayConfig' must be CONTAINS.")
    }
    switch json["order"] {
    case nil, "ASCENDING" as String, "DESCENDING" as String: return .init(field: field, kind: .value)
    default: throw .invalidArgument("Index configuration: '\(path).order' must be ASCENDING or DESCENDING.")
    }
  }
}
