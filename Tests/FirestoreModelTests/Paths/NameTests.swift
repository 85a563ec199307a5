// Tests names of databases, documents and parents: accepted names, rejected names and their errors.

import FirestoreModel
import RandomModels
import Testing

/// The error that a closure throws.
func failure(_ body: () throws(FirestoreError) -> Void) -> FirestoreError? {
  do throws(FirestoreError) {
    try body()
    return nil
  } catch {
    return error
  }
}

@Suite("Resource names", .timeLimit(.minutes(10)))
struct NameTests {
  static let root = "projects/p/databases/(default)/documents"

  static func error(_ name: String) -> FirestoreError? {
    failure { () throws(FirestoreError) in _ = try DocumentName(parsing: name) }
  }

  @Test("An even number of ids names a document, an odd number a collection")
  func parity() throws {
    let name = try DocumentName(parsing: Self.root + "/books/b1/notes/n1")
    #expect(name.path == "books/b1/notes/n1" && name.id == "n1")
    #expect(name.description == Self.root + "/books/b1/notes/n1")
    #expect(name.collection.description == Self.root + "/books/b1/notes" && name.collection.id == "notes")
    #expect(name.collection.parent.description == Self.root + "/books/b1")
    #expect(name.collection.document("n2").path == "books/b1/notes/n2")
    #expect(Self.error(Self.root + "/books")?.code == .invalidArgument)
    #expect(DocumentName(database: name.database, path: "books") == nil)
    #expect(CollectionName(database: name.database, path: "books/b1") == nil)
    #expect(try ParentName(parsing: Self.root) == ParentName(rootOf: name.database))
    #expect(try ParentName(parsing: Self.root + "/books/b1").document?.path == "books/b1")
    #expect(throws: FirestoreError.self) { try ParentName(parsing: Self.root + "/books") }
  }

  @Test("The error for an incomplete name reports the index of the missing part")
  func messages() {
    #expect(Self.error("")?.message == "Document name \"\" lacks \"projects\" at index 0.")
    #expect(Self.error("x/p")?.message == "Document name \"x/p\" lacks \"projects\" at index 0.")
    #expect(Self.error("projects/p")?.message == "Document name \"projects/p\" lacks \"/\" at index 10.")
    #expect(
      Self.error("projects/p/databases/d/documents")?.message
        == "Document name \"projects/p/databases/d/documents\" lacks \"/\" at index 32.")
    let parent = Self.root + "/c/.."
    #expect(
      Self.error(parent)?.message == "Document name \"\(parent)\" contains a resource id \"..\" at index 43.")
    #expect(
      Self.error(Self.root + "/c/__x__")?.message
        == "Resource id \"__x__\" is invalid because it is reserved.")
  }

  @Test(
    "Malformed names are rejected with INVALID_ARGUMENT",
    arguments: [
      "projects//databases/d/documents/c/d", "projects/p/databases/d/documents/c//", "projects/p/databases/d",
      "projects/p/databases/d/docs/c/d", "projects/p/databases/d/documents/c/d/", "/projects/p",
      "projects/p/databases/d/documents/c/.", "projects/p/databases/d/documents/__c__/d",
      "projects/p/databases/d/documents/__id1__/d", "projects/p/databases/d/documents/c/____",
    ])
  func rejections(name: String) { #expect(Self.error(name)?.code == .invalidArgument) }

  @Test("Ids of 1,500 bytes, names of 6 KiB and paths of 100 levels are accepted; longer ones are rejected")
  func limits() {
    let id = String(repeating: "x", count: 1500)
    #expect(Self.error(Self.root + "/c/" + id) == nil)
    #expect(Self.error(Self.root + "/c/" + id + "x")?.code == .invalidArgument)
    let long = Self.root + String(repeating: "/" + id, count: 4)
    #expect(long.utf8.count <= 6144 && Self.error(long) == nil)
    #expect(Self.error(long + "/" + id + "/" + id)?.code == .invalidArgument)
    #expect(Self.error(Self.root + String(repeating: "/c/d", count: 100)) == nil)
    #expect(Self.error(Self.root + String(repeating: "/c/d", count: 101))?.code == .invalidArgument)
  }

  @Test("Numeric ids are accepted for documents and sort first, by number")
  func numericIDs() throws {
    #expect(Self.error(Self.root + "/c/__id123__") == nil)
    #expect(ResourceID.number(in: "__id-5__") == -5)
    #expect(ResourceID.number(in: "__id007__") == nil)
    #expect(ResourceID.number(in: "__id9223372036854775808__") == nil)
    #expect(ResourceID.number(in: "__id__") == nil)
    let ordered = ["__id-3__", "__id2__", "__id10__", "!", "A", "__x", "a", "é", "\u{FFFD}", "😀"]
    for (i, a) in ordered.enumerated() {
      for (j, b) in ordered.enumerated() {
        #expect(ResourceID.compare(a, b) == ComparisonOrder.compare(i, j))
      }
    }
  }

  @Test("A slash before a combining mark separates ids, and reserved ids are recognized by their bytes")
  func combiningMarks() {
    #expect(ResourcePath(splitting: "a/\u{301}b").count == 2)
    #expect(ResourceID.isReserved("__\u{301}x__"))
  }

  @Test("Paths sort by segment, not as joined text")
  func pathOrder() {
    let ordered: [ResourcePath] = ["", "a", "a/b", "a/b/c", "a/b/c/d", "a/b-", "a-", "a-/b"]
    for (i, a) in ordered.enumerated() {
      for (j, b) in ordered.enumerated() {
        #expect(ResourcePath.compare(a, b) == ComparisonOrder.compare(i, j))
      }
    }
    #expect(("a/b/c" as ResourcePath).hasPrefix("a/b") && !("a/bc" as ResourcePath).hasPrefix("a/b"))
    #expect(ResourcePath.root.parent == nil && ("a/b" as ResourcePath).parent == "a")
  }

  @Test("Ids outside of paths are validated with Cloud Firestore's error messages")
  func idsOutsideOfPaths() {
    #expect(
      failure { () throws(FirestoreError) in try ResourceID.validate(collectionID: "a/b") }?.message
        == "Collection id \"a/b\" is invalid because it contains \"/\".")
    for id in ["", ".", "..", "__x__", String(repeating: "x", count: 1501)] {
      #expect(
        failure { () throws(FirestoreError) in try ResourceID.validate(documentID: id) }?.code
          == .invalidArgument)
    }
    #expect(failure { () throws(FirestoreError) in try ResourceID.validate(documentID: "__id5__") } == nil)
  }

  @Test("An error repeats the beginning of a long text, truncated between characters")
  func truncatedErrorTexts() {
    for letter in ["x", "\u{E9}", "\u{4E2D}", "\u{1F600}", "e\u{301}\u{302}"] {
      let text = String(repeating: letter, count: 30_000)
      let errors = [
        Self.error(text), Self.error(Self.root + "/c/" + text + "/"),
        failure { () throws(FirestoreError) in _ = try ParentName(parsing: Self.root + "/" + text) },
        failure { () throws(FirestoreError) in
          _ = try DatabaseName(parsing: "projects/p/databases/d/" + text)
        },
        failure { () throws(FirestoreError) in try ResourceID.validate(documentID: text) },
        failure { () throws(FirestoreError) in try ResourceID.validate(collectionID: text + "/") },
        failure { () throws(FirestoreError) in _ = try [StructuredQuery.Order](parsing: text + " up") },
      ]
      for error in errors {
        #expect(error?.code == .invalidArgument)
        #expect((error?.message.utf8.count ?? 0) < 1_200)
        #expect(error?.message.contains("\u{2026}") == true && error?.message.contains("\u{FFFD}") == false)
      }
    }
  }

  @Test("Auto ids are 20 letters and digits, use all 62 of them, and depend only on the generator")
  func autoIDs() {
    var random = SeededGenerator(seed: 1)
    var letters: Set<Character> = []
    for _ in 0..<500 {
      let id = AutoID.make(using: &random)
      #expect(id.utf8.count == 20)
      letters.formUnion(id)
    }
    #expect(letters.count == 62)
    var (a, b) = (SeededGenerator(seed: 2), SeededGenerator(seed: 2))
    #expect(AutoID.make(using: &a) == AutoID.make(using: &b))
  }

  @Test("Status codes have their names and HTTP statuses")
  func statusCodes() {
    #expect(StatusCode.all.count == 17)
    #expect(
      StatusCode.invalidArgument.name == "INVALID_ARGUMENT" && StatusCode.invalidArgument.httpStatus == 400)
    #expect(StatusCode.unauthenticated.rawValue == 16 && StatusCode.unauthenticated.httpStatus == 401)
    #expect(StatusCode.cancelled.httpStatus == 499 && StatusCode.aborted.httpStatus == 409)
    #expect(StatusCode(rawValue: 99).httpStatus == 500 && StatusCode(rawValue: 99).name == "99")
    #expect(FirestoreError.notFound("x").description == "NOT_FOUND: x")
  }
}
