// The operations of Cloud Firestore that an access policy decides, and the errors of denied operations.

package import FirestoreModel

/// The Cloud Firestore types that access policies use.
package enum FirestoreAccess: AccessProduct {
  package typealias Operation = FirestoreOperation
  package typealias View = any DocumentView
  package typealias Resource = DocumentName
  package typealias Database = DatabaseName
  package typealias Failure = FirestoreError

  package static let permissionDenied = FirestoreError.permissionDenied(
    "Missing or insufficient permissions.")

  package static func administrativeDenial(_ text: String) -> FirestoreError { .permissionDenied(text) }

  package static let credentialsRequired = FirestoreError.unauthenticated(
    "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie "
      + "or other valid authentication credential.")

  package static let openRules = rules("true")
  package static let lockedRules = rules("false")

  private static func rules(_ condition: String) -> String {
    """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /{document=**} {
          allow read, write: if \(condition);
        }
      }
    }

    """
  }
}

/// A decision about an operation of Cloud Firestore.
package typealias FirestoreDecision = AccessDecision<FirestoreAccess>

/// An operation of Cloud Firestore.
package enum FirestoreOperation: AccessOperation {
  /// Read documents by name, existing or missing, in one request.
  case get([DocumentName])
  /// Read the results of a query: RunQuery, ListDocuments, or a target of Listen.
  case list(ListedQuery)
  /// Compute aggregates over the results of a query.
  case aggregate(ListedQuery)
  /// Apply the writes of one commit, all or none. There is one element for each document and kind.
  case commit([DocumentWrite])
  /// Begin, roll back or commit a transaction without writes.
  case transaction
  /// Find points that split a collection group.
  case partition(Query)
  /// List missing documents together with existing ones.
  case showMissing(ParentName, collectionID: String)
  /// List the collections under a parent.
  case listCollections(ParentName)
  /// Return the plan of a query. Policies decide the query separately.
  case explain(Query)
  /// Apply writes that succeed or fail one by one. Policies decide each write separately.
  case batchWrite

  package var changesData: Bool {
    switch self {
    case .commit(let writes): writes.contains { $0.kind != .verify }
    case .batchWrite: true
    default: false
    }
  }

  package var isAdministrative: Bool {
    switch self {
    case .get, .list, .aggregate, .commit, .transaction: false
    case .partition, .showMissing, .listCollections, .explain, .batchWrite: true
    }
  }

  package var administrativeDenial: String {
    if case .batchWrite = self { return "Batch writes require admin authentication." }
    return "Metadata operations require admin authentication."
  }
}

/// A query whose results a client requests.
package struct ListedQuery: Sendable {
  /// The query with the limit, the offset and the explicit orders that the client sent. For ListDocuments, the limit is
  /// the page size, or nil without one.
  package var query: Query
  /// Whether the client listens to the query.
  package var isListen: Bool

  /// Makes a listed query.
  package init(_ query: Query, isListen: Bool = false) {
    self.query = query
    self.isListen = isListen
  }
}

/// The net effect of a commit on one document.
package struct DocumentWrite: Sendable, Equatable {
  /// The kind of a write.
  package enum Kind: Sendable, Equatable {
    /// Create the document.
    case create
    /// Change the document.
    case update
    /// Delete the document, existing or missing.
    case delete
    /// Validate a precondition without changing the document. Policies decide it like a read.
    case verify
  }

  /// The name of the written document.
  package var name: DocumentName
  /// The kind of the write. The precondition determines it. In a write without a precondition, the stored document
  /// does.
  package var kind: Kind
  /// Whether a precondition of the write, and not the stored document, determined the kind.
  package var isConditional: Bool

  /// Makes a write.
  package init(_ name: DocumentName, _ kind: Kind, isConditional: Bool = false) {
    self.name = name
    self.kind = kind
    self.isConditional = isConditional
  }
}
