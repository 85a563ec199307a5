// Tests requests with public test vectors: each vector has a client call and the request that the call must
// send. Calls that this SDK does not have are skipped.
//
// The vectors come from server libraries, which split maps and masks differently, so the test compares
// effects. The expected and the actual write must produce the same document from any previous state, and must
// have the same precondition. Queries must be equal in normalized form.

import FirebaseCore
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import SwiftProtobuf
import Testing

@testable import FirebaseFirestore

@Suite("Request vectors", .timeLimit(.minutes(10))) struct RequestVectorTests {
  typealias JSON = [String: Any]

  /// The reasons for skipping a vector.
  enum Skip: String, Error {
    case noSuchCall = "the SDK has no such call"
    case misuse = "misuse, which traps"
    case precondition = "the SDK's calls take no precondition"
    case option = "an option that the SDK does not have"
    case stream = "listen streams, which the sync cases cover"
  }

  @Test(
    "every public request vector passes or is skipped for a reason",
    .enabled(
      if: ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"] != nil, "HEARTH_CONFORMANCE is not set"))
  func requestVectors() throws {
    guard let root = ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"] else {
      print("request vectors: HEARTH_CONFORMANCE is not set, nothing run")
      return
    }
    let folder = URL(fileURLWithPath: root).appendingPathComponent("firestore-requests")
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .filter { $0.pathExtension == "json" }.sorted { $0.path < $1.path }
    #expect(!files.isEmpty)
    let client = TestClient.make(port: 1, project: "projectID")
    var passed = 0
    var run = 0
    var skipped: [String: Int] = [:]
    for file in files {
      let body = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? JSON ?? [:]
      for vector in body["tests"] as? [JSON] ?? [] {
        do {
          let problem = try runVector(vector, client)
          run += 1
          if let problem { Issue.record("\(file.lastPathComponent): \(problem)") } else { passed += 1 }
        } catch let skip as Skip {
          skipped[skip.rawValue, default: 0] += 1
        }
      }
    }
    print("request vectors: run \(run), passed \(passed), skipped", skipped)
  }

  private func runVector(_ vector: JSON, _ client: Firestore) throws -> String? {
    if let body = vector["set"] as? JSON { return try compareSet(body, client) }
    if let body = vector["update"] as? JSON { return try compareUpdate(body, client) }
    if let body = vector["updatePaths"] as? JSON { return try compareUpdatePaths(body) }
    if let body = vector["delete"] as? JSON {
      if body["precondition"] != nil { throw Skip.precondition }
      return try compare(Write(.delete(name(body))), body)
    }
    if let body = vector["query"] as? JSON { return try compareQuery(body, client) }
    if vector["listen"] != nil { throw Skip.stream }
    throw Skip.noSuchCall
  }

  private func name(_ body: JSON) throws -> DocumentName {
    try DocumentName(parsing: body["docRefPath"] as? String ?? "")
  }

  // MARK: Writes

  private func compareSet(_ body: JSON, _ client: Firestore) throws -> String? {
    if body["isError"] as? Bool == true { throw Skip.misuse }
    let data = try data(body["jsonData"])
    let option = body["option"] as? JSON
    if option?["all"] as? Bool == true { return try compare(.merge(data, nil, name(body)), body) }
    if let fields = option?["fields"] as? [JSON] {
      let paths = fields.map { FirebaseFirestore.FieldPath($0["field"] as? [String] ?? []) }
      return try compare(.merge(data, paths, name(body)), body)
    }
    return try compare(.set(data, name(body)), body)
  }

  private func compareUpdate(_ body: JSON, _ client: Firestore) throws -> String? {
    if body["isError"] as? Bool == true { throw Skip.misuse }
    if body["precondition"] != nil { throw Skip.precondition }
    return try compare(.patch(data(body["jsonData"]), name(body)), body)
  }

  private func compareUpdatePaths(_ body: JSON) throws -> String? {
    if body["isError"] as? Bool == true { throw Skip.misuse }
    if body["precondition"] != nil { throw Skip.precondition }
    let values = body["jsonValues"] as? [String] ?? []
    var data: [AnyHashable: Any] = [:]
    for (field, json) in zip(body["fieldPaths"] as? [JSON] ?? [], values) {
      data[FirebaseFirestore.FieldPath(field["field"] as? [String] ?? [])] = try operand(json)
    }
    return try compare(.patch(data, name(body)), body)
  }

  private func compare(_ actual: Write, _ body: JSON) throws -> String? {
    let json = try JSONSerialization.data(withJSONObject: body["request"] ?? [:])
    let request = try Google_Firestore_V1_CommitRequest(jsonUTF8Data: json)
    guard request.writes.count == 1 else { return "\(request.writes.count) writes expected" }
    let expectedWrite = try Write(request.writes[0])
    if actual.precondition != expectedWrite.precondition {
      return "precondition \(String(describing: actual.precondition))"
    }
    let bases: [MapValue?] = [
      nil, [:], ["a": 7, "b": ["c": 8, "d": 9, "x": [1]], "c": ["d": 1, "e": 2], "other": true],
      ["a": ["b": 1, "c": [1, 2, 3], "z": 0], "b": [3, 4], "h": ["g": 5]],
    ]
    for base in bases {
      let time = ModelTimestamp(seconds: 5)
      let actualResult = actual.apply(to: base, requestTime: time).fields
      let expectedResult = expectedWrite.apply(to: base, requestTime: time).fields
      if actualResult != expectedResult {
        return
          "over \(String(describing: base)): \(String(describing: actualResult)), expected \(String(describing: expectedResult))"
      }
    }
    return nil
  }

  /// Parses the data of a vector with its sentinels, such as a deletion or a server timestamp.
  private func data(_ json: Any?) throws -> JSON {
    let parsed = try JSONSerialization.jsonObject(with: Data((json as? String ?? "{}").utf8))
    guard let fields = value(parsed) as? JSON else { throw Skip.noSuchCall }
    return fields
  }

  private func value(_ json: Any) -> Any {
    switch json {
    case "ServerTimestamp" as String: return FieldValue.serverTimestamp()
    case "Delete" as String: return FieldValue.delete()
    case "NaN" as String: return Double.nan
    case let list as [Any]:
      if list.first as? String == "ArrayUnion" { return FieldValue.arrayUnion(list.dropFirst().map(value)) }
      if list.first as? String == "ArrayRemove" { return FieldValue.arrayRemove(list.dropFirst().map(value)) }
      return list.map(value)
    case let map as JSON: return map.mapValues(value)
    default: return json
    }
  }

  // MARK: Queries

  private func compareQuery(_ body: JSON, _ client: Firestore) throws -> String? {
    if body["isError"] as? Bool == true { throw Skip.misuse }
    let path = (body["collPath"] as? String ?? "").components(separatedBy: "/documents/").last ?? ""
    var query: FirebaseFirestore.Query = client.collection(path)
    for clause in body["clauses"] as? [JSON] ?? [] { query = try apply(clause, to: query, client) }
    let json = try JSONSerialization.data(withJSONObject: body["query"] ?? [:])
    let expectedStructured = try StructuredQuery(Google_Firestore_V1_StructuredQuery(jsonUTF8Data: json))
    var expected = query.model
    expected.structured = expectedStructured
    let (actualResult, expectedResult) = (query.model.normalized, expected.normalized)
    return actualResult == expectedResult
      ? nil : "\(actualResult.structured), expected \(expectedResult.structured)"
  }

  private func path(_ json: Any?) -> FirebaseFirestore.FieldPath {
    let names = (json as? JSON)?["field"] as? [String] ?? []
    return names == ["__name__"] ? .documentID() : FirebaseFirestore.FieldPath(names)
  }

  private func operand(_ json: Any?) throws -> Any {
    let text = json as? String ?? "null"
    return value(try JSONSerialization.jsonObject(with: Data(text.utf8), options: [.fragmentsAllowed]))
  }

  private func apply(
    _ clause: JSON, to query: FirebaseFirestore.Query, _ client: Firestore
  ) throws -> FirebaseFirestore.Query {
    if let body = clause["where"] as? JSON {
      let field = path(body["path"])
      let operand = try operand(body["jsonValue"])
      switch body["op"] as? String {
      case "==": return query.whereField(field, isEqualTo: operand)
      case "!=": return query.whereField(field, isNotEqualTo: operand)
      case "<": return query.whereField(field, isLessThan: operand)
      case "<=": return query.whereField(field, isLessThanOrEqualTo: operand)
      case ">": return query.whereField(field, isGreaterThan: operand)
      case ">=": return query.whereField(field, isGreaterThanOrEqualTo: operand)
      case "array-contains": return query.whereField(field, arrayContains: operand)
      case "in": return query.whereField(field, in: operand as? [Any] ?? [])
      case "array-contains-any": return query.whereField(field, arrayContainsAny: operand as? [Any] ?? [])
      default: throw Skip.option
      }
    }
    if let body = clause["orderBy"] as? JSON {
      return query.order(by: path(body["path"]), descending: body["direction"] as? String == "desc")
    }
    if let limit = clause["limit"] as? Int { return query.limit(to: limit) }
    for (kind, bound) in [("startAt", 0), ("startAfter", 1), ("endBefore", 2), ("endAt", 3)] {
      guard let body = clause[kind] as? JSON else { continue }
      if let snapshot = body["docSnapshot"] as? JSON {
        return try apply(bound, document(snapshot, client), to: query)
      }
      let values = try (body["jsonValues"] as? [String] ?? []).map { try operand($0) }
      switch bound {
      case 0: return query.start(at: values)
      case 1: return query.start(after: values)
      case 2: return query.end(before: values)
      default: return query.end(at: values)
      }
    }
    throw Skip.option
  }

  private func apply(
    _ bound: Int, _ document: DocumentSnapshot, to query: FirebaseFirestore.Query
  ) -> FirebaseFirestore.Query {
    switch bound {
    case 0: query.start(atDocument: document)
    case 1: query.start(afterDocument: document)
    case 2: query.end(beforeDocument: document)
    default: query.end(atDocument: document)
    }
  }

  private func document(_ body: JSON, _ client: Firestore) throws -> DocumentSnapshot {
    let name = try DocumentName(parsing: body["path"] as? String ?? "")
    let fields = UserDataReader.set(try data(body["jsonData"]), in: name.database).fields
    let cached = CachedDocument(found: name, fields: fields, version: .epoch, createTime: .epoch)
    return DocumentSnapshot(
      name: name, document: cached, firestore: client,
      metadata: SnapshotMetadata(hasPendingWrites: false, isFromCache: false))
  }
}
