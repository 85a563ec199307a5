// The requests and responses of the engine's operations, except those of Listen.

public import FirestoreModel

/// A document and its read time.
public struct DocumentRead: Sendable {
  /// The document, already reduced to the mask.
  public var document: StoredDocument
  /// The snapshot's time.
  public var readTime: Timestamp
}

/// A request to list the documents directly under a parent, one page per call.
public struct ListDocumentsRequest: Sendable {
  /// The root or document whose collections are listed.
  public var parent: ParentName
  /// The id of the collection; empty for all collections under the parent.
  public var collectionID: String
  /// Maximum number of documents; 0 for the default of 300. Negative is INVALID_ARGUMENT.
  public var pageSize: Int
  /// The token from the previous page; empty for the first page.
  public var pageToken: String
  /// An order such as `a desc, __name__ desc`; empty for `__name__`.
  public var orderBy: String
  /// The fields to return; nil for all.
  public var mask: FieldMask?
  /// The state to read.
  public var consistency: ReadConsistency
  /// Whether to list missing documents that have documents below them.
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

/// A listed document, or the name of a missing one.
public enum ListedDocument: Sendable {
  /// An existing document.
  case found(StoredDocument)
  /// A missing document that has documents below it.
  case missing(DocumentName)
}

/// A page of a listing.
public struct ListDocumentsPage: Sendable {
  /// The documents in order.
  public var documents: [ListedDocument]
  /// The token of the next page; empty on the last page.
  public var nextPageToken: String
}

/// A request to list the collections under a parent that contain a document at any depth.
public struct ListCollectionIDsRequest: Sendable {
  /// The root or document.
  public var parent: ParentName
  /// Maximum number of ids; 0 for the default of 300. Negative is INVALID_ARGUMENT.
  public var pageSize: Int
  /// The token from the previous page; empty for the first page.
  public var pageToken: String
  /// The state to read: `latest` or a read time.
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
  /// The token of the next page; empty on the last page.
  public var nextPageToken: String
}

/// One page of BatchGetDocuments.
public struct BatchGetPage: Sendable {
  /// The result for one name.
  public enum Item: Sendable {
    /// The document, reduced to the mask.
    case found(StoredDocument)
    /// The document does not exist.
    case missing(DocumentName)
  }

  /// The token of the transaction that the request began: on the first page only.
  public var transaction: [UInt8]?
  /// One result for each distinct name.
  public var items: [Item]
  /// The snapshot's time.
  public var readTime: Timestamp
}

/// One page of query results, as a client receives them.
public struct QueryPage: Sendable {
  /// The token of the transaction that the request began: on the first page only, sent in a separate message.
  public var transaction: [UInt8]?
  /// The number of results that the offset skipped, on the first page only. If it is not 0, it is sent to the
  /// client before the documents.
  public var skippedResults: Int
  /// The documents, in the query's order, projected.
  public var documents: [StoredDocument]
  /// The snapshot's time, the same on all pages.
  public var readTime: Timestamp
  /// Whether this is the last page. A query without results has one page without documents.
  public var isLast: Bool
  /// How the query was, or would be, executed: on the last page, if requested.
  public var explanation: QueryExplanation?
}

/// The result of a commit.
public struct CommitResponse: Sendable {
  /// One result for each write, in order.
  public var writeResults: [WriteResult]
  /// The commit's time; nil for a request with neither writes nor a transaction.
  public var commitTime: Timestamp?
}
