// Tests of parsing firestore.indexes.json: the resulting indexes, and the position in every error.

import FirestoreEngine
import FirestoreModel
import Testing

@testable import HearthServer

@Suite("firestore.indexes.json")
struct IndexesJSONTests {
  private func parse(_ text: String) throws(HearthError) -> IndexesJSON {
    try IndexesJSON(Array(text.utf8), path: "i.json")
  }

  private func error(_ text: String) -> String {
    do {
      _ = try parse(text)
      return ""
    } catch { return error.description }
  }

  @Test("Every form of index file that the Firebase tools write is accepted")
  func everyForm() throws {
    let parsed = try parse(
      """
      {
        // Comments are allowed.
        "indexes": [
          {"collectionGroup": "books", "queryScope": "COLLECTION", "density": "SPARSE_ALL", "apiScope": "ANY_API",
           "fields": [{"fieldPath": "genre", "order": "ASCENDING"}, {"fieldPath": "pages", "order": "DESCENDING"}]},
          {"collectionGroup": "books", "queryScope": "COLLECTION_GROUP", "density": "DENSE", "multikey": true,
           "fields": [{"fieldPath": "tags", "arrayConfig": "CONTAINS"}, {"fieldPath": "a.`b c`", "order": "ASCENDING"},
                      {"fieldPath": "__name__", "order": "DESCENDING"}]},
          {"collectionGroup": "books", "queryScope": "COLLECTION",
           "fields": [{"fieldPath": "emb", "vectorConfig": {"dimension": 3, "flat": {}}}]},
          {"collectionGroup": "books", "queryScope": "COLLECTION", "apiScope": "DATASTORE_MODE_API",
           "fields": [{"fieldPath": "x", "order": "ASCENDING"}, {"fieldPath": "y", "order": "ASCENDING"}]}
        ],
        "fieldOverrides": [
          {"collectionGroup": "books", "fieldPath": "notes", "indexes": []},
          {"collectionGroup": "books", "fieldPath": "*", "indexes": [{"order": "ASCENDING"}]},
          {"collectionGroup": "books", "fieldPath": "at", "ttl": true, "indexes": [
            {"queryScope": "COLLECTION", "order": "ASCENDING"}, {"queryScope": "COLLECTION_GROUP", "order": "DESCENDING"},
            {"arrayConfig": "CONTAINS", "queryScope": "COLLECTION"}]},
          {"collectionGroup": "books", "fieldPath": "gone", "ttl": true}
        ]
      }
      """)
    let b = try #require(FieldPath(segments: ["a", "b c"]))
    #expect(
      parsed.configuration.indexes == [
        .init(
          "books", .collection,
          [.init(FieldPath(field: "genre"), .ascending), .init(FieldPath(field: "pages"), .descending)]),
        .init(
          "books", .collectionGroup, [.init(FieldPath(field: "tags"), .contains), .init(b, .ascending)],
          nameDirection: .descending),
        .init("books", .collection, [.init(FieldPath(field: "emb"), .vector(dimension: 3))]),
      ])
    #expect(parsed.configuration.indexes[0].nameDirection == .descending)
    #expect(
      parsed.configuration.overrides == [
        .init("books", FieldPath(field: "notes"), []), .init("books", nil, [.init(.collection, .ascending)]),
        .init(
          "books", FieldPath(field: "at"),
          [
            .init(.collection, .ascending), .init(.collectionGroup, .descending),
            .init(.collection, .contains),
          ]),
      ])
    #expect(parsed.warnings.count == 5)
    #expect(
      parsed.warnings.first == "i.json:6:79: indexes[1].density is SPARSE_ALL here; no query needs more")
    #expect(try parse("{}").configuration == DatabaseIndexConfiguration())
  }

  @Test("An unknown member causes a warning with its position, at every level")
  func unknownMembers() throws {
    let parsed = try parse(
      """
      {"index": [], "indexes": [
        {"collectionGroup": "c", "queryScope": "COLLECTION", "scope": 1, "fields": [
          {"fieldPath": "a", "order": "ASCENDING", "Order": "DESCENDING"},
          {"fieldPath": "v", "vectorConfig": {"dimension": 3, "flat": {"x": 1}, "tree": {}}}]}],
       "fieldOverrides": [
        {"collectionGroup": "c", "fieldPath": "t", "TTL": true, "indexes": [
          {"order": "ASCENDING", "queryscope": "COLLECTION_GROUP"}, {"order": "DESCENDING", "unique": true}]}]}
      """)
    let places = [
      "i.json:1:11: index", "i.json:2:65: indexes[0].scope", "i.json:3:55: indexes[0].fields[0].Order",
      "i.json:4:83: indexes[0].fields[1].vectorConfig.tree",
      "i.json:4:71: indexes[0].fields[1].vectorConfig.flat.x", "i.json:6:53: fieldOverrides[0].TTL",
      "i.json:7:42: fieldOverrides[0].indexes[0].queryscope",
    ]
    #expect(
      parsed.warnings == places.map { "\($0) is not known and has no effect" } + [
        "i.json:7:97: fieldOverrides[0].indexes[1].unique has no effect: values may repeat"
      ])
    #expect(parsed.configuration.overrides.first?.indexes.first?.scope == .collection)
  }

  @Test("An index that names a field twice is left out with a warning, and the file's other indexes are used")
  func repeatedField() throws {
    let parsed = try parse(
      #"""
      {"indexes": [
        {"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [
          {"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "a", "order": "DESCENDING"}]},
        {"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [
          {"fieldPath": "a", "arrayConfig": "CONTAINS"}, {"fieldPath": "a", "order": "ASCENDING"}]}]}
      """#)
    #expect(
      parsed.warnings == ["i.json:3:47: indexes[0].fields[1] names the field a twice: the index is left out"])
    #expect(
      parsed.configuration.indexes == [
        .init(
          "c", .collection,
          [.init(FieldPath(field: "a"), .contains), .init(FieldPath(field: "a"), .ascending)])
      ])
  }

  @Test("An invalid value is rejected with line, column, JSON path and the permitted values")
  func invalidValues() {
    func index(_ fields: String, _ more: String = "") -> String {
      #"{"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION","# + more + "\n" + #""fields": ["#
        + fields + "]}]}"
    }
    let a = #"{"fieldPath": "a", "order": "ASCENDING"}"#
    let cases: [(String, String)] = [
      ("[]", "i.json:1:1: the file must be an object."),
      ("{\n \"indexes\": [,]}", "i.json:2:14: "),
      (#"{"indexes": {}}"#, "i.json:1:13: indexes must be an array."),
      (#"{"indexes": [{"queryScope": "COLLECTION"}]}"#, "i.json:1:14: indexes[0] needs a collectionGroup."),
      (#"{"indexes": [{"collectionGroup": "a/b"}]}"#, "indexes[0].collectionGroup is no collection id"),
      (#"{"indexes": [{"collectionGroup": "a"}]}"#, "needs a queryScope"),
      (
        #"{"indexes": [{"collectionGroup": "a", "queryScope": "X"}]}"#,
        "must be COLLECTION or COLLECTION_GROUP, not 'X'"
      ),
      (index(a), "i.json:2:11: indexes[0].fields must have two fields or more"),
      (
        index(a + #",{"fieldPath": "b", "order": "UP"}"#),
        "fields[1].order must be ASCENDING or DESCENDING, not 'UP'."
      ),
      (index(a + #",{"fieldPath": "b"}"#), "must have exactly one of order, arrayConfig and vectorConfig"),
      (index(a + #",{"fieldPath": "b", "order": "ASCENDING", "arrayConfig": "CONTAINS"}"#), "exactly one of"),
      (index(a + #",{"fieldPath": "b..c", "order": "ASCENDING"}"#), "fields[1].fieldPath is no field path"),
      (index(#"{"fieldPath": "__name__", "order": "ASCENDING"},"# + a), "follows __name__"),
      (
        index(
          #"{"fieldPath": "x", "arrayConfig": "CONTAINS"},{"fieldPath": "y", "arrayConfig": "CONTAINS"}"#),
        "more than one field with an arrayConfig"
      ),
      (index(#"{"fieldPath": "v", "vectorConfig": {"dimension": 4096, "flat": {}}}"#), "must be 1 to 2048"),
      (index(#"{"fieldPath": "v", "vectorConfig": {"dimension": 2}}"#), "must be flat"),
      (index(#"{"fieldPath": "v", "searchConfig": {}}"#), "text cannot be searched"),
      (index(a, #""unique": true,"#), "indexes[0].unique is not supported."),
      (index(a, #""density": "THICK","#), "must be SPARSE_ALL, SPARSE_ANY or DENSE, not 'THICK'."),
      (#"{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "a"}]}"#, "needs indexes, or ttl"),
      (
        #"{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "*", "indexes": [{"queryScope": "COLLECTION_GROUP", "order": "ASCENDING"}]}]}"#,
        "name the fields instead"
      ),
    ]
    for (text, expected) in cases {
      let message = error(text)
      #expect(message.hasPrefix("i.json:") && message.contains(expected), "\(message) for \(text)")
    }
  }
}
