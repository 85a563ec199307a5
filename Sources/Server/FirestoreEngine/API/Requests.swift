// What the unary operations take and give, in the model's types.

public import FirestoreModel

/// A read document and the time it was read at.
public struct DocumentRead: Sendable {
  /// The document, already reduced to the mask.
  public var document: StoredDocument
  /// The snapshot's time.
  public var readTime: Timestamp
}

/// ListDocuments: the documents directly under a parent, a page at a time.
public struct ListDocumentsRequest: Sendable {
  /// The root or document whose collections are listed.
  public var parent: ParentName
  /// The collection; empty for all of them.
  public var collectionID: String
  /// At most so many documents; 0 for the default of 300. Negative is INVALID_ARGUMENT.
  public var pageSize: Int
  /// Where the page before ended; empty for the first page.
  public var pageToken: String
  /// Text such as `a desc, __name__ desc`; empty for `__name__`.
  public var orderBy: String
  /// The fields to return; nil for all.
  public var mask: FieldMask?
  /// Which state to read.
  public var consistency: ReadConsistency
  /// Whether to list documents, too, that do not exist but have documents below them.
  public var showMissing: Bool

  /// Makes a request for the first page of a collection.
  public init(
    parent: ParentName, collectionID: String = "", pageSize: Int = 0, pageToken: String = "",
    orderBy: String = "", mask: FieldMask? = nil, consistency: ReadConsistency = .latest,
    showMissing: Bool = false
  ) {
    self.parent = parent
    self.collectionID = collectionID
    self.pageSize = pageSize
    self.pageToken = pageToken
    self.orderBy = orderBy
    self.mask = mask
    self.consistency = consistency
    self.showMissing = showMissing
  }
}

/// A document in a listing, or only the name of one that is missing.
public enum ListedDocument: Sendable {
  /// A document.
  case found(StoredDocument)
  /// A document that does not exist but has documents below it.
  case missing(DocumentName)
}

/// A page of a listing.
public struct ListDocumentsPage: Sendable {
  /// The documents in order.
  public var documents: [ListedDocument]
  /// The token of the next page; empty on the last.
  public var nextPageToken: String
}

/// ListCollectionIds: the collections under a parent with a document anywhere below.
public struct ListCollectionIDsRequest: Sendable {
  /// The root or document.
  public var parent: ParentName
  /// At most so many; 0 for the default of 300. Negative is INVALID_ARGUMENT.
  public var pageSize: Int
  /// Where the page before ended; empty for the first page.
  public var pageToken: String
  /// Which state to read: `latest` or a read time.
  public var consistency: ReadConsistency

  /// Makes a request for the first page.
  public init(
    parent: ParentName, pageSize: Int = 0, pageToken: String = "", consistency: ReadConsistency = .latest
  ) {
    self.parent = parent
    self.pageSize = pageSize
    self.pageToken = pageToken
    self.consistency = consistency
  }
}

/// A page of collection ids in ascending UTF-8 order.
public struct ListCollectionIDsPage: Sendable {
  /// The ids.
  public var collectionIDs: [String]
  /// The token of the next page; empty on the last.
  public var nextPageToken: String
}

/// BatchGetDocuments: one batch of answers.
public struct BatchGetPage: Sendable {
  /// One name's answer.
  public enum Item: Sendable {
    /// The document, reduced to the mask.
    case found(StoredDocument)
    /// There is no such document.
    case missing(DocumentName)
  }

  /// The token of the transaction that the request began: on the first page only.
  public var transaction: [UInt8]?
  /// One answer for each distinct name, in the order asked.
  public var items: [Item]
  /// The snapshot's time.
  public var readTime: Timestamp
}

/// RunQuery: one batch of results, as a client should see them.
public struct QueryPage: Sendable {
  /// The token of the transaction that the request began: on the first page only, sent in a message of its own.
  public var transaction: [UInt8]?
  /// Results skipped by the offset: on the first page only; sent before the documents if not 0.
  public var skippedResults: Int
  /// The documents, in the query's order, projected.
  public var documents: [StoredDocument]
  /// The snapshot's time, the same on all pages.
  public var readTime: Timestamp
  /// Whether this is the last page. A query without results has one page without documents.
  public var isLast: Bool
  /// How the query was, or would be, answered: on the last page, if asked for.
  public var explanation: QueryExplanation?
}

/// What became of a commit.
public struct CommitResponse: Sendable {
  /// One result for each write, in order.
  public var writeResults: [WriteResult]
  /// The commit's time; nil if there was nothing to commit.
  public var commitTime: Timestamp?
}
