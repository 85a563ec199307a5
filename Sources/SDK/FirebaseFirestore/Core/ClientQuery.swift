// A client query: a query of the app, and the target that the server watches for it.
//
// A limit to the last documents is sent to the server as a limit to the first ones, with reversed order and
// cursors. The view keeps the app's order.

import FirestoreModel

/// The target that the server watches.
enum Target: Hashable, Sendable {
  case document(DocumentName)
  case query(ModelQuery)

  var documentName: DocumentName? {
    if case .document(let name) = self { return name }
    return nil
  }
}

/// One document, or a query with a limit to its first or last documents.
struct ClientQuery: Hashable, Sendable {
  enum Scope: Hashable, Sendable {
    case document(DocumentName)
    case query(ModelQuery)
  }

  let scope: Scope
  let isLimitToLast: Bool
  let target: Target
  /// The query in the form for matching documents; nil for a document, and for a query that the server will
  /// reject.
  let normalizedQuery: NormalizedQuery?

  init(document name: DocumentName) {
    scope = .document(name)
    isLimitToLast = false
    target = .document(name)
    normalizedQuery = nil
  }

  /// Makes a query from the app's query. Adds the implicit orders that are missing.
  init(_ query: ModelQuery, isLimitToLast: Bool = false) {
    let normalized = query.normalized
    scope = .query(normalized)
    self.isLimitToLast = isLimitToLast
    var watched = normalized
    if isLimitToLast { watched.structured = normalized.structured.reversed }
    target = .query(watched)
    normalizedQuery = try? NormalizedQuery(normalized)
  }

  static func == (a: ClientQuery, b: ClientQuery) -> Bool {
    a.scope == b.scope && a.isLimitToLast == b.isLimitToLast
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(scope)
    hasher.combine(isLimitToLast)
  }

  var limit: Int? {
    if case .query(let query) = scope { return query.structured.limit }
    return nil
  }

  /// Whether the result contains every document of the collection.
  var matchesAllDocuments: Bool {
    guard case .query(let query) = scope else { return false }
    let structured = query.structured
    return structured.filter == nil && structured.limit == nil && structured.startAt == nil
      && structured.endAt == nil && structured.orderBy.allSatisfy { $0.field.isDocumentID }
  }

  /// Whether an existing document matches the query, without regard to its limit.
  func matches(_ document: CachedDocument) -> Bool {
    guard document.isFound else { return false }
    switch scope {
    case .document(let name): return document.name == name
    case .query: return normalizedQuery?.matches(document.name, document.fields) ?? false
    }
  }

  /// Compares two documents by the order of the query.
  func compare(_ a: CachedDocument, _ b: CachedDocument) -> ComparisonOrder {
    normalizedQuery?.compare(a.name, a.fields, b.name, b.fields) ?? DocumentName.compare(a.name, b.name)
  }
}

extension ModelQuery {
  /// The same query with its implicit orders made explicit.
  var normalized: ModelQuery {
    var query = self
    query.structured.orderBy = structured.normalizedOrder
    return query
  }
}
