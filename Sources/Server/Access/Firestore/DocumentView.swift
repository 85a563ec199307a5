// The view of documents that a policy reads for a decision about Cloud Firestore.

package import FirestoreModel

/// The documents before and after an operation, at one version.
package protocol DocumentView {
  /// The document before the operation; nil if it does not exist.
  /// - Throws: the store's errors.
  func document(_ name: DocumentName) throws -> Document?

  /// The document after all writes of the commit; for reads the same as ``document(_:)``. Preconditions do not affect
  /// it.
  /// - Throws: the store's errors.
  func documentAfter(_ name: DocumentName) throws -> Document?

  /// Whether the document exists before the operation. Does not decode the document.
  /// - Throws: the store's errors.
  func exists(_ name: DocumentName) throws -> Bool

  /// The time of the operation: for a commit the time of its server timestamps, for a read the current time.
  var time: Timestamp { get }

  /// The part of the operation that the policy decides in this call.
  var part: DecisionPart { get }
}

extension DocumentView {
  /// By default the policy decides the complete operation in one call.
  package var part: DecisionPart { .all }
}
