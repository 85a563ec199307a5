// Tests of the methods ListDocuments, ListCollectionIds, BatchGetDocuments and GetDocument.

import Access
import FirestoreModel
import OrderedStore
import Testing

@testable import FirestoreEngine

@Suite("Listings and batch reads", .timeLimit(.minutes(10))) struct ListingTests {
  let fixture: EngineFixture

  init() throws { fixture = try EngineFixture() }

  /// Lists all pages; a trailing `?` marks a missing document.
  private func list(_ request: ListDocumentsRequest) async throws -> [[String]] {
    var request = request
    var pages: [[String]] = []
    repeat {
      let page = try await fixture.engine.listDocuments(request, as: .administrator)
      pages.append(
        page.documents.map { document in
          switch document {
          case .found(let stored): stored.name.path.description
          case .missing(let name): name.path.description + "?"
          }
        })
      request.pageToken = page.nextPageToken
    } while !request.pageToken.isEmpty
    return pages
  }

  private func fill(_ paths: [ResourcePath]) async throws {
    for (index, path) in paths.enumerated() { try await fixture.set(path, ["n": .integer(Int64(-index))]) }
  }

  @Test(
    "pages of large documents are limited in bytes, and page tokens reach every document",
    arguments: [false, true])
  func largePages(showMissing: Bool) async throws {
    let fixture = try EngineFixture()
    let bytes = Value.bytes([UInt8](repeating: 3, count: 900_000))
    for index in 10..<30 { try await fixture.set(ResourcePath(["c", "d\(index)"]), ["x": bytes]) }
    var request = ListDocumentsRequest(
      parent: fixture.root, collectionID: "c", pageSize: 300, showMissing: showMissing)
    var names: [String] = []
    while true {
      let page = try await fixture.engine.listDocuments(request, as: .administrator)
      #expect(page.documents.count <= 5)
      for case .found(let document) in page.documents { names.append(document.name.id) }
      guard !page.nextPageToken.isEmpty else { break }
      request.pageToken = page.nextPageToken
    }
    #expect(names == (10..<30).map { "d\($0)" })
  }

  @Test("pages of missing documents are limited by the bytes of their names")
  func missingPages() async throws {
    let long = String(repeating: "x", count: 1_480)
    let collection = ResourcePath(["a", long, "b", long, long])
    let ids = (1_000..<2_000).map { "\($0)\(long)" }
    for start in stride(from: 0, to: ids.count, by: 500) {
      try await fixture.commit(
        try ids[start..<start + 500].map {
          Write(.update(try fixture.name(ResourcePath(collection.segments + [$0, "s", "x"])), fields: [:]))
        })
    }
    let parent = try #require(
      ParentName(database: fixture.database, path: ResourcePath(["a", long, "b", long])))
    var request = ListDocumentsRequest(
      parent: parent, collectionID: long, pageSize: 5_000, showMissing: true)
    var names: [String] = []
    var sizes: [Int] = []
    repeat {
      let page = try await fixture.engine.listDocuments(request, as: .administrator)
      var bytes = 0
      for case .missing(let name) in page.documents {
        names.append(name.id)
        bytes += name.description.utf8.count
      }
      sizes.append(bytes)
      request.pageToken = page.nextPageToken
    } while !request.pageToken.isEmpty
    #expect(names == ids)
    #expect(sizes.count == 2 && sizes.allSatisfy { $0 < 5 << 20 }, "\(sizes)")
  }

  @Test("a listing of one collection, or of all collections directly under a parent, is returned in pages")
  func listPages() async throws {
    try await fill(["c/a", "c/b", "c/d", "c/b/sub/x", "e/a", "__id5__", "c/__id5__"].filter(\.isDocument))
    #expect(
      try await list(ListDocumentsRequest(parent: fixture.root, collectionID: "c", pageSize: 2))
        == [["c/__id5__", "c/a"], ["c/b", "c/d"]])
    #expect(
      try await list(ListDocumentsRequest(parent: fixture.root, pageSize: 3))
        == [["c/__id5__", "c/a", "c/b"], ["c/d", "e/a"]])
    #expect(
      try await list(ListDocumentsRequest(parent: fixture.root, collectionID: "c", pageSize: 3, orderBy: "n"))
        == [["c/__id5__", "c/d", "c/b"], ["c/a"]])
    #expect(
      try await list(ListDocumentsRequest(parent: fixture.root, collectionID: "c", orderBy: "__name__ desc"))
        == [["c/d", "c/b", "c/a", "c/__id5__"]])
  }

  @Test("all pages of a listing read one snapshot")
  func pagesShareSnapshot() async throws {
    try await fill(["c/a", "c/b", "c/d"])
    var request = ListDocumentsRequest(parent: fixture.root, collectionID: "c", pageSize: 1)
    request.pageToken = try await fixture.engine.listDocuments(request, as: .administrator).nextPageToken
    try await fixture.delete("c/b")
    #expect(try await list(request) == [["c/b"], ["c/d"]])
  }

  @Test("showMissing lists missing documents that have descendants")
  func showMissing() async throws {
    try await fill(["c/a", "c/m/sub/x", "c/n/s/missing/t/y", "d/p/q/r", "c/a/sub/x"])
    #expect(
      try await list(
        ListDocumentsRequest(parent: fixture.root, collectionID: "c", pageSize: 2, showMissing: true))
        == [["c/a", "c/m?"], ["c/n?"]])
    #expect(
      try await list(ListDocumentsRequest(parent: fixture.root, pageSize: 2, showMissing: true))
        == [["c/a", "c/m?"], ["c/n?", "d/p?"]])
    let rejection = await failure {
      try await list(ListDocumentsRequest(parent: fixture.root, orderBy: "n", showMissing: true))
    }
    #expect(rejection?.code == .invalidArgument)
  }

  @Test("a page token is valid only for the request that returned it, with any page size")
  func tokensAreBound() async throws {
    try await fill(["c/a", "c/b", "c/d", "e/a", "e/b", "c/a/s/x", "c/a/t/x", "c/b/s/x"])
    let request = ListDocumentsRequest(parent: fixture.root, collectionID: "c", pageSize: 1)
    let page = try await fixture.engine.listDocuments(request, as: .administrator)
    let time = try await fixture.engine.getDocument(try fixture.name("c/a"), as: .administrator).readTime
    var others = [ListDocumentsRequest](repeating: request, count: 8)
    others[0].orderBy = "n"
    others[1].orderBy = "__name__"
    others[2].collectionID = "e"
    others[3].collectionID = ""
    others[4].showMissing = true
    others[5].mask = []
    others[6].consistency = .readTime(time)
    others[7].parent = try #require(ParentName(database: fixture.database, path: "c/a"))
    for (index, other) in others.enumerated() {
      var other = other
      other.pageToken = page.nextPageToken
      #expect(await failure { try await list(other) }?.code == .invalidArgument, "request \(index)")
    }
    var same = request
    same.pageToken = page.nextPageToken
    same.pageSize = 10
    #expect(try await list(same) == [["c/b", "c/d"]])

    let ids = ListCollectionIDsRequest(
      parent: try #require(ParentName(database: fixture.database, path: "c/a")), pageSize: 1)
    let first = try await fixture.engine.listCollectionIDs(ids, as: .administrator)
    #expect(first.collectionIDs == ["s"])
    var elsewhere = ids
    elsewhere.pageToken = first.nextPageToken
    elsewhere.parent = fixture.root
    #expect(
      await failure { try await fixture.engine.listCollectionIDs(elsewhere, as: .administrator) }?.code
        == .invalidArgument)
    // A token is valid only for the method that issued it.
    elsewhere.pageToken = page.nextPageToken
    #expect(
      await failure { try await fixture.engine.listCollectionIDs(elsewhere, as: .administrator) }?.code
        == .invalidArgument)
    var rest = ids
    rest.pageToken = first.nextPageToken
    #expect(try await fixture.engine.listCollectionIDs(rest, as: .administrator).collectionIDs == ["t"])
  }

  @Test("the page token of a partition query is valid only for that query")
  func partitionTokensAreBound() throws {
    let group = StructuredQuery(from: [.init("c", allDescendants: true)])
    let request = PartitionQueryRequest(Query(parent: fixture.root, group), count: 4)
    let signer = TokenSigner()
    let owner = TokenOwner(.administrator, in: fixture.database)
    let token = PageToken(
      of: try request.binding(.standard), version: Version(microseconds: 7),
      last: try fixture.name("c/a").path
    ).text(signer, for: owner)
    func open(_ request: PartitionQueryRequest) throws -> PageToken {
      try PageToken(token, of: try request.binding(.standard), signer, for: owner)
    }
    var others = [PartitionQueryRequest](repeating: request, count: 3)
    others[0].count = 5
    others[1].query.structured.from = [.init("d", allDescendants: true)]
    others[2].query.parent = try #require(ParentName(database: fixture.database, path: "c/a"))
    for other in others {
      #expect(throws: FirestoreError.self) { try open(other) }
    }
    var larger = request
    larger.pageSize = 100
    #expect(try open(larger).last == fixture.name("c/a").path)
  }

  @Test("invalid listings are rejected")
  func invalidRequests() async throws {
    func code(_ request: ListDocumentsRequest) async -> StatusCode? {
      await failure { try await list(request) }?.code
    }
    #expect(
      await code(ListDocumentsRequest(parent: fixture.root, collectionID: "c", pageSize: -1))
        == .invalidArgument)
    #expect(
      await code(ListDocumentsRequest(parent: fixture.root, collectionID: "c", pageToken: "nonsense"))
        == .invalidArgument)
    #expect(
      await code(ListDocumentsRequest(parent: fixture.root, collectionID: "c", orderBy: "a sideways"))
        == .invalidArgument)
  }

  @Test("collection ids are sorted and include parents that are missing or have only descendants")
  func collectionIDs()
    async throws
  {
    try await fill(["z/a", "c/m/sub/x", "c/m/other/y/deep/z", "b/missing/only/x"])
    func ids(_ path: ResourcePath, _ size: Int = 0) async throws -> [[String]] {
      let parent = try #require(ParentName(database: fixture.database, path: path))
      var request = ListCollectionIDsRequest(parent: parent, pageSize: size)
      var pages: [[String]] = []
      repeat {
        let page = try await fixture.engine.listCollectionIDs(request, as: .administrator)
        pages.append(page.collectionIDs)
        request.pageToken = page.nextPageToken
      } while !request.pageToken.isEmpty
      return pages
    }
    #expect(try await ids("") == [["b", "c", "z"]])
    #expect(try await ids("", 2) == [["b", "c"], ["z"]])
    #expect(try await ids("c/m") == [["other", "sub"]])
    #expect(try await ids("c/none") == [[]])
  }

  @Test("a batch returns each name once, found or missing, at one read time")
  func batchGet() async throws {
    try await fill(["c/a", "c/b"])
    let names = try ["c/b", "c/none", "c/a", "c/b"].map { try fixture.name(ResourcePath(splitting: $0)) }
    let pages = Collected<BatchGetPage>()
    try await fixture.engine.batchGetDocuments(
      in: fixture.database, names, mask: [FieldPath(field: "none")],
      consistency: .newTransaction(.readOnly()), as: .administrator
    ) { pages.append($0) }
    #expect(pages.all.count == 1)
    #expect(pages.all.first?.transaction != nil)
    let ids = pages.all.flatMap(\.items).map { item -> String in
      switch item {
      case .found(let document):
        #expect((try? document.fields()) == [:])
        return document.name.id
      case .missing(let name): return name.id + "?"
      }
    }
    #expect(ids == ["b", "a", "none?"])
    // The transaction is in the first page, also after many missing documents.
    let many = try (0..<1_500).map {
      try fixture.name(ResourcePath(splitting: $0 == 700 ? "c/a" : "none/\($0)"))
    }
    let later = Collected<BatchGetPage>()
    try await fixture.engine.batchGetDocuments(
      in: fixture.database, many, consistency: .newTransaction(.readOnly()), as: .administrator
    ) { later.append($0) }
    #expect(later.all.first?.transaction != nil && later.all.dropFirst().allSatisfy { $0.transaction == nil })
    let returned = later.all.flatMap(\.items).map { item -> DocumentName in
      switch item {
      case .found(let document): document.name
      case .missing(let name): name
      }
    }
    #expect(returned == [many[700]] + many[..<700] + many[701...])
    let empty = Collected<BatchGetPage>()
    try await fixture.engine.batchGetDocuments(in: fixture.database, [], as: .administrator) {
      empty.append($0)
    }
    #expect(empty.all.isEmpty)
  }

  @Test("reading a missing document is NOT_FOUND; with a mask, a read returns only some fields of a document")
  func getDocument() async throws {
    let name = try fixture.name("c/a")
    let missing = await failure { try await fixture.engine.getDocument(name, as: .administrator) }
    #expect(missing == .notFound("Document \"\(name)\" not found."))
    try await fixture.set("c/a", ["a": ["b": 1, "c": 2], "d": 3])
    let path = try #require(FieldPath(segments: ["a", "b"]))
    let read = try await fixture.engine.getDocument(name, mask: [path], as: .administrator)
    #expect(try read.document.fields() == ["a": ["b": 1]])
    #expect(read.document.updateTime <= read.readTime)
  }
}
