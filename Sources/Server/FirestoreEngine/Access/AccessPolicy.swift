// The one point at which access is decided: inside the read or the sequenced write that the decision is about.
//
// Invariant: no document's contents leave the engine, and none change, before `decide` has allowed exactly that.

public import FirestoreModel

/// What someone is about to do.
public enum AccessOperation: Sendable {
  /// Read one document, found or missing.
  case get(DocumentName)
  /// Read whatever a normalised query finds; also listing and listening.
  case query(Query)
  /// Create a document.
  case create(DocumentName)
  /// Change a document that exists.
  case update(DocumentName)
  /// Delete a document.
  case delete(DocumentName)
  /// List the collections under a parent.
  case listCollections(ParentName)
  /// Begin, or roll back, a transaction.
  case transact(DatabaseName)
}

/// What a policy may look at while it decides. Everything it reads becomes part of the operation's read set.
public protocol AccessView {
  /// The document as the operation sees it before its own changes; nil if there is none.
  /// - Throws: what the store throws.
  func document(_ name: DocumentName) throws -> StoredDocument?
  /// The document as it will be after the commit under way; for reads the same as `document`.
  /// - Throws: what the store throws.
  func documentAfter(_ name: DocumentName) throws -> StoredDocument?
  /// The time of the operation.
  var time: Timestamp { get }
}

/// A policy's answer.
public struct AccessDecision: Sendable {
  /// Nil to allow; else the error that the caller gets.
  public var denial: FirestoreError?
  /// The documents that the answer depends on: a listen is decided again when one of them changes.
  public var dependencies: [DocumentName]

  /// Makes an answer.
  public init(denial: FirestoreError?, dependencies: [DocumentName] = []) {
    self.denial = denial
    self.dependencies = dependencies
  }

  /// Yes, whatever happens later.
  public static let allowed = AccessDecision(denial: nil)
  /// No, with the product's PERMISSION_DENIED.
  public static let denied = AccessDecision(
    denial: .permissionDenied("Missing or insufficient permissions."))
}

/// Decides who may do what. Called synchronously inside the store's `read` and `execute`: it must be quick, must
/// not block, and must be deterministic.
public protocol AccessPolicy: Sendable {
  /// Decides one operation.
  ///
  /// - Parameters:
  ///   - caller: who asks.
  ///   - operation: what is about to happen.
  ///   - before: the document before; nil if missing, or for queries.
  ///   - after: the document after a write; nil for reads and deletes.
  ///   - view: further documents that the decision may depend on.
  /// - Throws: what `view` throws.
  func decide(
    _ caller: Caller, _ operation: AccessOperation, before: StoredDocument?, after: StoredDocument?,
    view: any AccessView
  ) throws -> AccessDecision

  /// Whether `decide` allows this caller everything, so that the engine need not prepare its arguments.
  func allowsEverything(_ caller: Caller) -> Bool
}

extension AccessPolicy {
  /// By default nobody is above the policy.
  public func allowsEverything(_ caller: Caller) -> Bool { false }
}
