// A write batch: writes that are applied atomically.

import FirebaseCore
import FirestoreModel
public import Foundation
import Locking

/// Writes that are applied atomically. As with single writes, a batch may be committed while offline.
open class WriteBatch: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  private struct State {
    var writes: [Write] = []
    var isCommitted = false
  }

  private let firestore: Firestore
  private let state = Guarded(State())

  init(_ firestore: Firestore) { self.firestore = firestore }

  private func add(_ write: Write, _ document: DocumentReference) -> WriteBatch {
    if document.firestore !== firestore {
      failInvalidArgument("Provided document reference is from a different Firestore instance.")
    }
    let wasCommitted = state.withLock { state in
      state.writes.append(write)
      return state.isCommitted
    }
    if wasCommitted { failIllegalState("A write batch can no longer be used after commit has been called.") }
    return self
  }

  /// Replaces a document. Stops the program after `commit`.
  @discardableResult
  open func setData(_ data: [String: Any], forDocument document: DocumentReference) -> WriteBatch {
    add(.set(data, document.name), document)
  }

  /// Replaces a document, or merges the data into it.
  @discardableResult
  open func setData(
    _ data: [String: Any], forDocument document: DocumentReference, merge: Bool
  ) -> WriteBatch {
    add(merge ? .merge(data, nil, document.name) : .set(data, document.name), document)
  }

  /// Merges the named fields into a document.
  @discardableResult
  open func setData(
    _ data: [String: Any], forDocument document: DocumentReference, mergeFields: [Any]
  ) -> WriteBatch {
    add(.merge(data, mergeFields, document.name), document)
  }

  /// Changes fields of an existing document.
  @discardableResult
  open func updateData(_ fields: [AnyHashable: Any], forDocument document: DocumentReference) -> WriteBatch {
    add(.patch(fields, document.name), document)
  }

  /// Deletes a document.
  @discardableResult
  open func deleteDocument(_ document: DocumentReference) -> WriteBatch {
    add(Write(.delete(document.name)), document)
  }

  private func takeWrites() -> [Write] {
    let (writes, wasCommitted) = state.withLock { state in
      defer { state.isCommitted = true }
      return (state.writes, state.isCommitted)
    }
    if wasCommitted { failIllegalState("A write batch can no longer be used after commit has been called.") }
    return writes
  }

  /// Commits the batch. A second call stops the program.
  open func commit() { commit(completion: nil) }

  /// Commits the batch. The completion is called when the server has accepted or rejected all writes.
  @preconcurrency
  open func commit(completion: (@Sendable ((any Error)?) -> Void)? = nil) {
    firestore.write(takeWrites(), completion: completion)
  }

  /// Commits the batch, and waits until the server has accepted all writes.
  open func commit() async throws { try await firestore.write(takeWrites()) }
}
