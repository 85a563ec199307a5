// Tests the rules of queries: field names, operands, cursors, and queries that the SDK rejects before it
// sends them.

import FirebaseCore
import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

@Suite("Query rules", .timeLimit(.minutes(10))) struct QueryRuleTests {
  private let client = TestClient.make(port: 1)

  private static var books: FirebaseFirestore.Query { TestClient.make(port: 1).collection("books") }

  private func filter(_ query: FirebaseFirestore.Query) -> FieldFilter? {
    guard case .field(let filter)? = query.model.structured.filter else { return nil }
    return filter
  }

  // MARK: Field names

  @Test("a dotted string is split into segments, and a FieldPath is not")
  func dottedStrings() {
    #expect(FirebaseFirestore.FieldPath.parse("a.b").segments == ["a", "b"])
    #expect(FirebaseFirestore.FieldPath(["a.b", "~*/[]"]).path.segments == ["a.b", "~*/[]"])
  }

  @Test(
    "an invalid dotted string traps",
    arguments: ["a~b", "a*", "a/b", "a[0]", "a]", "", ".", "a.", ".a", "a..b"])
  func invalidDottedStrings(path: String) async {
    await #expect(processExitsWith: .failure) { [path = path as String] in
      _ = FirebaseFirestore.FieldPath.parse(path)
    }
    await #expect(processExitsWith: .failure) { [path = path as String] in
      _ = QueryRuleTests.books.whereField(path, isEqualTo: 1)
    }
  }

  // MARK: Document id operands

  @Test("a document id operand is relative to the queried collection")
  func documentIDOperand() {
    let books = client.collection("shelves/s/books")
    let id = FirebaseFirestore.FieldPath.documentID()
    let one = Value.reference(client.document("shelves/s/books/b1").name)
    #expect(filter(books.whereField(id, isEqualTo: "b1"))?.value == one)
    #expect(filter(books.whereField(id, isGreaterThan: client.document("shelves/s/books/b1")))?.value == one)
    let two = Value.reference(client.document("shelves/s/books/b2").name)
    #expect(filter(books.whereField(id, in: ["b1", "b2"]))?.value == .array([one, two]))
    #expect(books.order(by: id).start(at: ["b1"]).model.structured.startAt?.values == [one])
  }

  @Test("a document id operand of a collection group is a path from the root")
  func collectionGroupOperand() {
    let group = client.collectionGroup("books")
    let id = FirebaseFirestore.FieldPath.documentID()
    let one = Value.reference(client.document("shelves/s/books/b1").name)
    #expect(filter(group.whereField(id, isLessThan: "shelves/s/books/b1"))?.value == one)
  }

  @Test("an invalid document id operand traps")
  func invalidDocumentIDOperand() async {
    await #expect(processExitsWith: .failure) {
      _ = QueryRuleTests.books.whereField(FirebaseFirestore.FieldPath.documentID(), isEqualTo: "")
    }
    await #expect(processExitsWith: .failure) {
      _ = QueryRuleTests.books.whereField(FirebaseFirestore.FieldPath.documentID(), isEqualTo: "a/b")
    }
    await #expect(processExitsWith: .failure) {
      _ = QueryRuleTests.books.whereField(FirebaseFirestore.FieldPath.documentID(), isEqualTo: 5)
    }
    await #expect(processExitsWith: .failure) {
      _ = QueryRuleTests.books.whereField(FirebaseFirestore.FieldPath.documentID(), arrayContains: "b")
    }
    await #expect(processExitsWith: .failure) {
      _ = TestClient.make(port: 1).collectionGroup("books")
        .whereField(FirebaseFirestore.FieldPath.documentID(), isEqualTo: "b1")
    }
  }

  // MARK: Filters

  @Test("a forbidden combination of filters traps")
  func forbiddenCombinations() async {
    await #expect(processExitsWith: .failure) {
      _ = QueryRuleTests.books.whereField("a", isNotEqualTo: 1).whereField("b", isNotEqualTo: 2)
    }
    await #expect(processExitsWith: .failure) {
      _ = QueryRuleTests.books.whereField("a", notIn: [1]).whereField("b", notIn: [2])
    }
    await #expect(processExitsWith: .failure) {
      _ = QueryRuleTests.books.whereField("a", isNotEqualTo: 1).whereField("b", notIn: [2])
    }
    await #expect(processExitsWith: .failure) {
      _ = QueryRuleTests.books.whereField("a", in: [1]).whereField("b", notIn: [2])
    }
    await #expect(processExitsWith: .failure) {
      _ = QueryRuleTests.books.whereField("a", arrayContainsAny: [1]).whereField("b", notIn: [2])
    }
    await #expect(processExitsWith: .failure) { _ = QueryRuleTests.books.whereField("a", in: []) }
    await #expect(processExitsWith: .failure) {
      QueryRuleTests.books.limit(toLast: 1).getDocuments { _, _ in }
    }
  }

  @Test("an allowed combination of filters becomes one composite filter")
  func allowedCombination() {
    let query = client.collection("books").whereField("a", in: [1, 2]).whereField("b", arrayContainsAny: [3])
      .whereField("c", isGreaterThan: 4).whereField("d", isLessThan: 5)
    guard case .composite(.and, let all)? = query.model.structured.filter else {
      Issue.record("expected a composite filter")
      return
    }
    #expect(all.count == 4)
  }

  @Test("query predicates have the same effect as the methods of a query")
  func predicates() {
    let books = client.collection("books")
    let predicates: [QueryPredicate] = [
      .where("a", isEqualTo: 1), .whereField("b", isGreaterThan: 2), .where("b", isLessThanOrEqualTo: 9),
      .where(field: "tags", arrayContains: "x"), .order(by: "b", descending: true), .limit(to: 5),
    ]
    let query = books.whereField("a", isEqualTo: 1).whereField("b", isGreaterThan: 2)
      .whereField("b", isLessThanOrEqualTo: 9).whereField("tags", arrayContains: "x")
      .order(by: "b", descending: true).limit(to: 5)
    #expect(books.applying(predicates) == query)
    #expect(books.applying([]) == books)
    let pairs: [(QueryPredicate, FirebaseFirestore.Query)] = [
      (.whereField("f", isIn: [1, 2]), books.whereField("f", in: [1, 2])),
      (.where("f", isNotIn: [1]), books.whereField("f", notIn: [1])),
      (.where("f", arrayContainsAny: [1]), books.whereField("f", arrayContainsAny: [1])),
      (.where("f", isLessThan: 1), books.whereField("f", isLessThan: 1)),
      (.where("f", isGreaterThanOrEqualTo: 1), books.whereField("f", isGreaterThanOrEqualTo: 1)),
    ]
    for (predicate, query) in pairs { #expect(books.applying([predicate]) == query) }
    #expect(
      books.applying([.order(by: "b"), .limit(toLast: 2)]) == books.order(by: "b").limit(toLast: 2))
  }

  // MARK: Cursors

  @Test("a cursor from a document without the ordered field traps, and so does a cursor with too many values")
  func invalidCursors() async {
    await #expect(processExitsWith: .failure) {
      let (query, snapshot) = QueryRuleTests.ordered(by: "missing")
      _ = query.start(afterDocument: snapshot)
    }
    await #expect(processExitsWith: .failure) {
      let (query, _) = QueryRuleTests.ordered(by: "n")
      _ = query.start(after: [1, 2])
    }
    let (query, snapshot) = QueryRuleTests.ordered(by: "n")
    let cursor = query.start(afterDocument: snapshot).model.structured.startAt
    #expect(cursor?.values == [7, .reference(snapshot.reference.name)] && cursor?.before == false)
  }

  private static func ordered(by field: String) -> (FirebaseFirestore.Query, DocumentSnapshot) {
    let client = TestClient.make(port: 1)
    let name = client.document("books/b1").name
    let document = CachedDocument(
      found: name, fields: ["n": 7], version: .init(microseconds: 1), createTime: .epoch)
    let snapshot = DocumentSnapshot(
      name: name, document: document, firestore: client,
      metadata: SnapshotMetadata(hasPendingWrites: false, isFromCache: false))
    return (client.collection("books").order(by: field), snapshot)
  }
}
