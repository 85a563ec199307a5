// Lists the documents directly under a parent, and the collections under a parent. A listing of documents may
// include *missing* documents: names without a document that have documents below them.
//
// All pages of a listing show the version of the first page, which the page token contains (see `PageToken`).
// The listing fails when the store has deleted that version.

import Access
import FirestoreModel
import OrderedStore

/// The documents of one page, bounded in number and in bytes. The last document may exceed the bytes.
private struct ListedPage: Sendable {
  let size: Int
  private(set) var documents: [StoredDocument] = []
  /// Whether more documents follow.
  private(set) var hasMore = false
  private var bytes = 0

  init(size: Int) { self.size = size }

  mutating func append(_ document: StoredDocument) {
    guard documents.count < size, bytes < EngineLimits.maximumListPageBytes else {
      hasMore = true
      return
    }
    documents.append(document)
    bytes += document.encoded.count
  }
}

extension FirestoreDatabase {
  /// Lists existing documents, in the request's order.
  func list(_ request: ListDocumentsRequest, _ size: Int, as caller: Principal) async throws
    -> ListDocumentsPage
  {
    let from =
      request.collectionID.isEmpty ? [] : [StructuredQuery.CollectionSelector(request.collectionID)]
    let orders = request.orderBy.isEmpty ? [] : try [StructuredQuery.Order](parsing: request.orderBy)
    var query = Query(parent: request.parent, StructuredQuery(from: from, orderBy: orders, limit: size + 1))
    let owner = TokenOwner(caller, in: name)
    let authorised = operation(.list(ListedQuery(request.query(from, orders))), of: caller)
    var session = try await beginRead(request.consistency, [authorised], as: caller)
    do {
      if !request.pageToken.isEmpty {
        let token = try PageToken(request.pageToken, of: request.binding, signer, for: owner)
        if session.transaction == nil, session.version == nil {
          session.version = token.version
          try await authoriseNow([authorised])
        }
        query.structured.startAt = try await cursor(after: token, query, session, authorised)
      }
      let prepared = try PreparedQuery(query, options.limits.data)
      let (run, ranges) = try await begin(prepared, &session)
      let found = try await page(run, size, &session, authorised)
      let result = try makeResponse(found, request, session, owner)
      endRead(session, ranges: ranges)
      return result
    } catch {
      failRead(session, error)
      throw error
    }
  }

  /// Reads until the page is full. Each read from the store is bounded.
  private func page(
    _ begun: QueryRun, _ size: Int, _ session: inout ReadSession, _ authorised: AuthorizedOperation
  ) async throws -> ListedPage {
    var run = begun
    var listed = ListedPage(size: size)
    var isFirst = true
    let memory = SortMemoryBudget.Reservation(sortMemory)
    while true {
      try Task.checkCancellation()
      let (next, page) = try await nextPage(run, &session, isFirst ? authorised : nil, memory)
      run = next
      isFirst = false
      for document in page.documents { listed.append(document) }
      if page.isLast || listed.hasMore { return listed }
    }
  }

  private func makeResponse(
    _ page: ListedPage, _ request: ListDocumentsRequest, _ session: ReadSession, _ owner: TokenOwner
  ) throws -> ListDocumentsPage {
    var token = ""
    if page.hasMore, let last = page.documents.last, let version = session.version {
      token = PageToken(of: request.binding, version: version, last: last.name.path)
        .text(signer, for: owner)
    }
    return ListDocumentsPage(
      documents: try page.documents.map { .found(try $0.masked(request.mask)) }, nextPageToken: token)
  }

  /// The query cursor that continues after the last document of the previous page.
  private func cursor(
    after token: PageToken, _ query: Query, _ session: ReadSession, _ authorised: AuthorizedOperation
  ) async throws -> Cursor {
    let invalid = FirestoreError.invalidArgument("The page token is not valid.")
    guard let name = DocumentName(database: name, path: token.last) else { throw invalid }
    let orders = query.structured.normalizedOrder
    if orders.count == 1 { return Cursor([.reference(name)], before: false) }
    if !isAllowed(authorised) {
      // The document is read at the token's version, so the listing must have been allowed then too.
      try await rows.read(at: token.version) { view in _ = try self.authorise(authorised, in: view) }
    }
    guard let document = try await documents([name], at: token.version, upTo: 0).first ?? nil
    else { throw invalid }
    let fields = try document.fields()
    let values = try orders.map { order -> Value in
      if order.field.isDocumentID { return .reference(name) }
      guard let value = fields.value(at: order.field) else { throw invalid }
      return value
    }
    return Cursor(values, before: false)
  }

  /// Lists documents, and the names of missing documents that have documents below them.
  func listWithMissing(
    _ request: ListDocumentsRequest, _ size: Int, as caller: Principal
  ) async throws -> ListDocumentsPage {
    try await authoriseWithoutData(
      caller, .showMissing(request.parent, collectionID: request.collectionID))
    let owner = TokenOwner(caller, in: name)
    var session = try await beginRead(request.consistency, [], as: caller)
    do {
      let token =
        request.pageToken.isEmpty
        ? nil : try PageToken(request.pageToken, of: request.binding, signer, for: owner)
      if let token, session.transaction == nil, session.version == nil { session.version = token.version }
      let range = KeyRange(prefix: FirestoreKeyLayout.subtree(of: request.parent.path))
      try await lock(&session, ranges: [range])
      let name = name
      let (entries, hasMore) = try await read(&session) { view in
        try FirestoreDatabase.entries(
          request, after: token?.last, size, SubtreeWalk(view: view, database: name))
      }
      endRead(session, ranges: session.transaction == nil ? [] : [range])
      var next = ""
      if hasMore, let last = entries.last, let version = session.version {
        next = PageToken(of: request.binding, version: version, last: last.path)
          .text(signer, for: owner)
      }
      return ListDocumentsPage(documents: entries.map(\.document), nextPageToken: next)
    } catch {
      failRead(session, error)
      throw error
    }
  }

  /// One page of existing and missing documents, in name order.
  private static func entries(
    _ request: ListDocumentsRequest, after last: ResourcePath?, _ size: Int, _ walk: SubtreeWalk
  ) throws -> ([(path: ResourcePath, document: ListedDocument)], hasMore: Bool) {
    var found: [(path: ResourcePath, document: ListedDocument)] = []
    var bytes = 0
    let parent = request.parent.path
    func visit(_ collectionID: String, after id: String?) throws -> Bool {
      let collection = parent.appending(collectionID)
      var id = id
      while true {
        let document = try walk.nextDocument(in: collection, after: id)
        let below = try walk.nextParent(in: collection, after: id)
        guard let next = SubtreeWalk.smallerID(document, below) else { return true }
        if found.count == size || bytes >= EngineLimits.maximumListPageBytes { return false }
        let path = collection.appending(next)
        guard let name = DocumentName(database: walk.database, path: path) else { return true }
        if let stored = try walk.view.document(name) {
          bytes += stored.encoded.count
          found.append((path, .found(try stored.masked(request.mask))))
        } else {
          bytes += name.description.utf8.count
          found.append((path, .missing(name)))
        }
        id = next
      }
    }
    let depth = parent.count
    let resumed = last.flatMap { $0.count == depth + 2 && $0.hasPrefix(parent) ? $0 : nil }
    if last != nil, resumed == nil { throw FirestoreError.invalidArgument("The page token is not valid.") }
    if !request.collectionID.isEmpty {
      let isComplete = try visit(request.collectionID, after: resumed?.id)
      return (found, !isComplete)
    }
    if let resumed, try !visit(resumed.segments[depth], after: resumed.id) { return (found, true) }
    var isComplete = true
    try walk.collectionIDs(of: parent, after: resumed?.segments[depth]) { id in
      isComplete = try visit(id, after: nil)
      return isComplete
    }
    return (found, !isComplete)
  }

  /// Lists the ids of the collections under a parent.
  func listCollectionIDs(
    _ request: ListCollectionIDsRequest, _ size: Int, as caller: Principal
  ) async throws -> ListCollectionIDsPage {
    try await authoriseWithoutData(caller, .listCollections(request.parent))
    let owner = TokenOwner(caller, in: name)
    var session = try await beginRead(request.consistency, [], as: caller)
    defer { endRead(session) }
    var last: String?
    if !request.pageToken.isEmpty {
      let token = try PageToken(request.pageToken, of: request.binding, signer, for: owner)
      last = token.last.id
      if session.version == nil { session.version = token.version }
    }
    let name = name
    let after = last
    let (ids, hasMore) = try await read(&session) { view in
      var ids: [String] = []
      var bytes = 0
      var hasMore = false
      try SubtreeWalk(view: view, database: name).collectionIDs(of: request.parent.path, after: after) { id in
        guard ids.count < size, bytes < EngineLimits.maximumListPageBytes else {
          hasMore = true
          return false
        }
        ids.append(id)
        bytes += id.utf8.count
        return true
      }
      return (ids, hasMore)
    }
    var token = ""
    if hasMore, let last = ids.last, let version = session.version {
      token = PageToken(of: request.binding, version: version, last: ResourcePath([last]))
        .text(signer, for: owner)
    }
    return ListCollectionIDsPage(collectionIDs: ids, nextPageToken: token)
  }
}

extension ListDocumentsRequest {
  /// The listing as a query for the access policy. Its limit is the requested page size, if there is one.
  fileprivate func query(
    _ from: [StructuredQuery.CollectionSelector], _ orders: [StructuredQuery.Order]
  ) -> Query {
    Query(
      parent: parent,
      StructuredQuery(from: from, orderBy: orders, limit: pageSize == 0 ? nil : pageSize))
  }
}
