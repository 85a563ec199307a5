// Tests the forms of writes: what setData, merges, updateData and field values produce. Also tests the forms
// of filters, queries and references.

import FirebaseCore
import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

@Suite("Forms of writes and queries", .timeLimit(.minutes(10))) struct WriteFormTests {
  private let client = TestClient.make(port: 1)
  private var name: DocumentName { client.document("c/d").name }

  private func path(_ names: String...) -> ModelFieldPath { .init(segments: names) ?? .documentID }

  @Test("setData replaces the complete document")
  func set() {
    let write = Write.set(["a": 1, "b": ["c": true]], name)
    #expect(write == Write(.update(name, fields: ["a": 1, "b": ["c": true]])))
  }

  @Test("the mask of a merge contains its leaf fields, and an empty map is a leaf")
  func mergeMask() {
    let write = Write.merge(["a": ["b": 1, "c": [String: Any]()], "d": [1]], nil, name)
    #expect(write.mask == [path("a", "b"), path("a", "c"), path("d")])
    #expect(write.precondition == nil)
  }

  @Test("a merge that contains only transforms has an empty mask")
  func mergeOfTransforms() {
    let write = Write.merge(["at": FieldValue.serverTimestamp()], nil, name)
    #expect(write.mask == [])
    #expect(write.transforms == [FieldTransform(path("at"), .serverTimestamp)])
  }

  @Test("a merge deletes fields at any depth")
  func mergeDeletes() {
    let write = Write.merge(["a": ["b": FieldValue.delete(), "c": 1]], nil, name)
    #expect(write.mask == [path("a", "b"), path("a", "c")])
    guard case .update(_, let fields) = write.operation else { return }
    #expect(fields == ["a": ["c": 1]])
  }

  @Test("mergeFields writes only the named fields")
  func mergeFields() {
    let write = Write.merge(
      ["a": ["b": 1, "x": 2], "c": 3, "n": FieldValue.increment(Int64(1))], ["a.b", "n"], name)
    #expect(write.mask == [path("a", "b")])
    #expect(write.transforms == [FieldTransform(path("n"), .increment(1))])
    guard case .update(_, let fields) = write.operation else { return }
    #expect(fields == ["a": ["b": 1]])
  }

  @Test("updateData requires the document and splits dotted keys")
  func update() {
    let write = Write.patch(
      ["a.b": 1, FirebaseFirestore.FieldPath(["c.d"]): 2, "gone": FieldValue.delete()], name)
    #expect(write.precondition == .exists(true))
    #expect(Set(write.mask ?? []) == [path("a", "b"), path("c.d"), path("gone")])
    guard case .update(_, let fields) = write.operation else { return }
    #expect(fields == ["a": ["b": 1], "c.d": 2])
  }

  @Test("every Swift type is converted to its Firestore type")
  func valueTypes() {
    let data: [String: Any] = [
      "int8": Int8(1), "uint": UInt(7), "float": Float(0.5), "bool": true, "number": NSNumber(value: 3),
      "truth": NSNumber(value: true), "null": NSNull(), "none": Int?.none as Any,
      "some": Int?.some(4) as Any, "date": Date(timeIntervalSince1970: 1.000_000_4),
      "nested": [["deep": [1, 2]]] as [[String: [Int]]],
    ]
    guard case .update(_, let fields) = Write.set(data, name).operation else { return }
    #expect(fields["int8"] == .integer(1))
    #expect(fields["uint"] == .integer(7))
    #expect(fields["float"] == .double(0.5))
    #expect(fields["bool"] == .boolean(true) && fields["truth"] == .boolean(true))
    #expect(fields["number"] == .integer(3) && fields["some"] == .integer(4))
    #expect(fields["null"] == .null && fields["none"] == .null)
    #expect(fields["date"] == .timestamp(.init(seconds: 1, nanoseconds: 0)))
    #expect(fields["nested"] == [["deep": [1, 2]]])
  }

  @Test("comparisons with null and NaN become unary filters")
  func unaryFilters() {
    let books = client.collection("books")
    func filter(_ query: FirebaseFirestore.Query) -> ModelFilter? { query.model.structured.filter }
    #expect(filter(books.whereField("a", isEqualTo: NSNull())) == .unary(UnaryFilter(path("a"), .isNull)))
    #expect(filter(books.whereField("a", isEqualTo: Double.nan)) == .unary(UnaryFilter(path("a"), .isNaN)))
    #expect(
      filter(books.whereField("a", isNotEqualTo: Int?.none as Any))
        == .unary(UnaryFilter(path("a"), .isNotNull)))
    #expect(
      filter(books.whereField(FirebaseFirestore.FieldPath.documentID(), isEqualTo: "b1"))
        == .field(FieldFilter(.documentID, .equal, .reference(client.document("books/b1").name))))
    let two = books.whereField("a", isGreaterThan: 1).whereField("b", in: [1, "x"])
    #expect(
      filter(two)
        == .composite(
          .and,
          [
            .field(FieldFilter(path("a"), .greaterThan, 1)), .field(FieldFilter(path("b"), .isIn, [1, "x"])),
          ]))
  }

  @Test("a limit to last is requested in reverse order")
  func limitToLast() {
    let query = client.collection("books").order(by: "pages").limit(toLast: 2).start(at: [100])
    guard case .query(let requested) = query.clientQuery.target else { return }
    #expect(requested.structured.orderBy.map(\.direction) == [.descending, .descending])
    #expect(requested.structured.endAt == Cursor([100], before: false) && requested.structured.startAt == nil)
  }

  @Test("equal queries and references compare equal")
  func equality() {
    let books = client.collection("books")
    #expect(books == client.collection("books") && books != client.collection("films"))
    #expect(books.order(by: "a").limit(to: 2) == books.order(by: "a").limit(to: 2))
    #expect(books.limit(to: 2) != books.limit(to: 3))
    #expect(client.document("a/b") == client.collection("a").document("b"))
    #expect(Set([client.document("a/b"), client.document("a/b")]).count == 1)
    #expect(books.parent == nil && client.collection("a/b/c").parent?.path == "a/b")
    #expect(books.document().documentID.count == 20)
    #expect(Firestore.firestore(app: client.app) === client)
  }

  @Test("misuse of the API traps")
  func misuse() async {
    await #expect(processExitsWith: .failure) { _ = PathReader.parse("a//b") }
    await #expect(processExitsWith: .failure) { _ = FirebaseFirestore.FieldPath.parse("a..b") }
    await #expect(processExitsWith: .failure) { _ = FirebaseFirestore.FieldPath([]) }
    await #expect(processExitsWith: .failure) { _ = FirebaseFirestore.GeoPoint(latitude: 91, longitude: 0) }
    await #expect(processExitsWith: .failure) { _ = FieldValue.arrayUnion([[1]]) }
    await #expect(processExitsWith: .failure) { _ = TestClient.make(port: 1).document("a") }
    await #expect(processExitsWith: .failure) { _ = TestClient.make(port: 1).collection("a").limit(to: 0) }
    await #expect(processExitsWith: .failure) {
      TestClient.make(port: 1).document("a/b").setData(["a": [[1]]])
    }
    await #expect(processExitsWith: .failure) {
      TestClient.make(port: 1).document("a/b").setData(["a": FieldValue.delete()])
    }
    await #expect(processExitsWith: .failure) {
      let batch = TestClient.make(port: 1).batch()
      batch.commit()
      batch.commit()
    }
    await #expect(processExitsWith: .failure) {
      let client = TestClient.make(port: 1)
      _ = client.collection("a")
      client.useEmulator(withHost: "other", port: 2)
    }
  }
}
