// Serves GetDocument and BatchGetDocuments.

package import Access
package import FirestoreModel
import OrderedStore

extension FirestoreEngine {
  /// Reads one document, reduced to `mask`.
  /// - Throws: NOT_FOUND if it does not exist, INVALID_ARGUMENT or FAILED_PRECONDITION for an invalid read
  ///   time or token.
  package func getDocument(
    _ name: DocumentName, mask: FieldMask? = nil, consistency: ReadConsistency = .latest, as caller: Principal
  ) async throws(FirestoreError) -> DocumentRead {
    try await convertingErrors {
      let database = try await self.database(name.database)
      var session = try await database.beginRead(
        consistency, [database.operation(.get([name]), of: caller)], as: caller)
      let key = FirestoreKeyLayout.document(name.path)
      let found: StoredDocument?
      do {
        try await database.lock(&session, keys: [key])
        if database.allowsEverything(caller) {
          found = try await database.read(&session) { view in
            try view.get(key).map { try DocumentRow.decode($0.value, name) }
          }
        } else {
          let authorised = database.operation(.get([name]), of: caller)
          found = try await database.read(&session) { view in
            let documents = database.readView(view)
            try database.decide(authorised) { documents }
            return try documents.stored(name)
          }
        }
        database.endRead(session, keys: [key])
      } catch {
        database.failRead(session, error)
        throw error
      }
      guard let found else { throw FirestoreError.notFound("Document \"\(name)\" not found.") }
      return DocumentRead(document: try found.masked(mask), readTime: session.version?.timestamp ?? .epoch)
    }
  }

  /// Reads documents at one version and delivers pages, one at a time. Existing documents come first, in the
  /// order of the request, then the names of missing documents.
  ///
  /// If `names` is empty, only the token of a new transaction is delivered, if there is one.
  /// - Parameter memory: the account from which memory for the result pages is reserved; nil if `deliver` retains no page.
  /// - Throws: the errors of `deliver`, or a `FirestoreError`: INVALID_ARGUMENT for a name of another
  ///   database.
  package func batchGetDocuments(
    in name: DatabaseName, _ names: [DocumentName], mask: FieldMask? = nil,
    consistency: ReadConsistency = .latest, as caller: Principal, memory: (any ResultMemory)? = nil,
    deliver: @Sendable (BatchGetPage) async throws -> Void
  ) async throws {
    for document in names where document.database != name {
      throw FirestoreError.invalidArgument("Document \(document) does not belong to database \(name).")
    }
    var seen: Set<DocumentName> = []
    let distinct = names.filter { seen.insert($0).inserted }
    guard distinct.count <= EngineLimits.maximumBatchGetNames else {
      throw FirestoreError.invalidArgument(
        "At most \(EngineLimits.maximumBatchGetNames) documents can be read at once.")
    }
    let database: FirestoreDatabase
    var session: ReadSession
    let operation: AuthorizedOperation
    do {
      database = try await self.database(name)
      operation = database.operation(.get(distinct), of: caller)
      session = try await database.beginRead(consistency, [operation], as: caller)
    } catch { throw FirestoreError(error) }
    let keys = session.transaction == nil ? [] : distinct.map { FirestoreKeyLayout.document($0.path) }
    do {
      try await database.lock(&session, keys: keys)
      var token = session.newToken
      if distinct.isEmpty, let begun = token {
        let version = session.version ?? database.rows.latestVersion
        try await deliver(BatchGetPage(transaction: begun, items: [], readTime: version.timestamp))
      }
      var rest = distinct[...]
      var missing: [BatchGetPage.Item] = []
      try await database.authorise(operation, &session)
      let pages = ResultPages(memory, documentBytes: limits.data.documentBytes)
      while !rest.isEmpty {
        let requested = rest
        try await pages.reserve()
        let maximumBytes = pages.maximumBytes
        let (items, bytes) = try await database.read(&session) { view in
          try FirestoreEngine.items(requested, mask, view, upTo: maximumBytes)
        }
        pages.hold(bytes, count: items.count)
        rest = rest.dropFirst(items.count)
        // The protocol allows any order. Firebase sends existing documents first, and Google's tests depend
        // on this order.
        var found = items.filter { if case .found = $0 { true } else { false } }
        missing += items.filter { if case .missing = $0 { true } else { false } }
        if rest.isEmpty, found.count + missing.count <= EngineLimits.maximumPageDocuments {
          found += missing
          missing = []
        }
        guard !found.isEmpty else { continue }
        try await deliver(
          BatchGetPage(
            transaction: token, items: found, readTime: session.version?.timestamp ?? .epoch))
        pages.markAccepted()
        token = nil
      }
      var remainingMissing = missing[...]
      while !remainingMissing.isEmpty {
        let items = Array(remainingMissing.prefix(EngineLimits.maximumPageDocuments))
        remainingMissing = remainingMissing.dropFirst(items.count)
        try await deliver(
          BatchGetPage(
            transaction: token, items: items, readTime: session.version?.timestamp ?? .epoch))
        token = nil
      }
      database.endRead(session, keys: keys)
    } catch {
      database.failRead(session, error)
      throw error is StoreError ? FirestoreError(error) : error
    }
  }

  /// The items of one page, up to the page limits, and the bytes of their documents.
  private static func items(
    _ names: ArraySlice<DocumentName>, _ mask: FieldMask?, _ view: any ReadView, upTo maximumBytes: Int
  ) throws -> (items: [BatchGetPage.Item], bytes: Int) {
    var items: [BatchGetPage.Item] = []
    var bytes = 0
    for name in names {
      if let found = try view.document(name) {
        items.append(.found(try found.masked(mask)))
        bytes += found.encoded.count
      } else {
        items.append(.missing(name))
      }
      if items.count >= EngineLimits.maximumPageDocuments || bytes >= maximumBytes { break }
    }
    return (items, bytes)
  }
}
