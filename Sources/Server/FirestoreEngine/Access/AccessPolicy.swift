// The access policy: decides for every operation whether the caller may perform it. The decision is made
// inside the read, or inside the commit in the sequencer, that performs the operation.
//
// Invariant: before a document's contents are returned or changed, `decide` has allowed exactly this
// operation.

public import FirestoreModel

/// An operation about which a policy decides.
public enum AccessOperation: Sendable {
  /// Read one document, existing or missing.
  case get(DocumentName)
  /// Read the results of a normalized query. Listing and listening are decided as queries too.
  case query(Query)
  /// Create a document.
  case create(DocumentName)
  /// Change an existing document.
  case update(DocumentName)
  /// Delete a document.
  case delete(DocumentName)
  /// List the collections under a parent.
  case listCollections(ParentName)
  /// Begin or roll back a transaction.
  case transact(DatabaseName)
}

/// The data that a policy may read for a decision. All reads see the version of the operation.
public protocol AccessView {
  /// The document before the operation's changes; nil if it does not exist.
  /// - Throws: the store's errors.
  func document(_ name: DocumentName) throws -> StoredDocument?
  /// The document after the commit in progress; for reads the same as `document`.
  /// - Throws: the store's errors.
  func documentAfter(_ name: DocumentName) throws -> StoredDocument?
  /// The time of the operation.
  var time: Timestamp { get }
}

/// A policy's decision.
public struct AccessDecision: Sendable {
  /// The error for the caller; nil to allow the operation.
  public var denial: FirestoreError?
  /// The documents that the decision depends on. When one of them changes, the decision about a listener is
  /// made again.
  public var dependencies: [DocumentName]

  /// Makes a decision.
  public init(denial: FirestoreError?, dependencies: [DocumentName] = []) {
    self.denial = denial
    self.dependencies = dependencies
  }

  /// Allows the operation, without dependencies.
  public static let allowed = AccessDecision(denial: nil)
  /// Denies the operation with Firebase's PERMISSION_DENIED.
  public static let denied = AccessDecision(
    denial: .permissionDenied("Missing or insufficient permissions."))
}

/// Decides whether callers may perform operations. Called synchronously within the store's `read` and
/// `execute`: it must be quick, must not block, and must be deterministic.
public protocol AccessPolicy: Sendable {
  /// Decides one operation.
  ///
  /// - Parameters:
  ///   - caller: the caller.
  ///   - operation: the operation.
  ///   - before: the document before the operation; nil if it does not exist, and nil for queries.
  ///   - after: the document after the write; nil for reads and deletes.
  ///   - view: gives access to further documents that the decision may depend on.
  /// - Throws: the errors of `view`.
  func decide(
    _ caller: Caller, _ operation: AccessOperation, before: StoredDocument?, after: StoredDocument?,
    view: any AccessView
  ) throws -> AccessDecision

  /// Whether `decide` allows this caller every operation. If so, the engine skips the decision, and saves the
  /// work of preparing its arguments.
  func allowsEverything(_ caller: Caller) -> Bool
}

extension AccessPolicy {
  /// By default every caller is subject to the policy.
  public func allowsEverything(_ caller: Caller) -> Bool { false }
}
