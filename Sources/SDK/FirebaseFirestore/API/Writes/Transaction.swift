// The transaction that the SDK passes to the app's block, and the runner that runs the block again after a
// conflict.

import FirebaseCore
import FirestoreModel
public import Foundation
import Locking

/// Reads and writes that are applied atomically, if no other client has changed the documents that were read.
///
/// All reads precede all writes. The block may run several times.
open class Transaction: NSObject, @unchecked Sendable {
  // SAFETY: constants of Sendable types only.
  private let firestore: Firestore
  /// Retained, because the instance may be terminated while the block runs.
  private let client: FirestoreClient
  private let attempt = Guarded(TransactionAttempt())

  init(_ firestore: Firestore, _ client: FirestoreClient) {
    self.firestore = firestore
    self.client = client
  }

  var currentAttempt: TransactionAttempt { attempt.withLock { $0 } }

  private func add(_ write: Write, _ document: DocumentReference) -> Transaction {
    if document.firestore !== firestore {
      failInvalidArgument("Provided document reference is from a different Firestore instance.")
    }
    attempt.withLock { $0.add(write) }
    return self
  }

  /// Replaces a document when the transaction commits.
  @discardableResult
  open func setData(_ data: [String: Any], forDocument document: DocumentReference) -> Transaction {
    add(.set(data, document.name), document)
  }

  /// Replaces a document, or merges the data into it, when the transaction commits.
  @discardableResult
  open func setData(
    _ data: [String: Any], forDocument document: DocumentReference, merge: Bool
  ) -> Transaction {
    add(merge ? .merge(data, nil, document.name) : .set(data, document.name), document)
  }

  /// Merges the named fields into a document when the transaction commits.
  @discardableResult
  open func setData(
    _ data: [String: Any], forDocument document: DocumentReference, mergeFields: [Any]
  ) -> Transaction {
    add(.merge(data, mergeFields, document.name), document)
  }

  /// Changes fields of an existing document when the transaction commits.
  @discardableResult
  open func updateData(
    _ fields: [AnyHashable: Any], forDocument document: DocumentReference
  ) -> Transaction {
    add(.patch(fields, document.name), document)
  }

  /// Deletes a document when the transaction commits.
  @discardableResult
  open func deleteDocument(_ document: DocumentReference) -> Transaction {
    add(Write(.delete(document.name)), document)
  }

  /// Reads a document from the server. It blocks the thread on which the block runs.
  ///
  /// - Throws: `unavailable` while the server cannot be reached; `invalidArgument` after a write.
  @discardableResult
  open func getDocument(_ document: DocumentReference) throws -> DocumentSnapshot {
    if document.firestore !== firestore {
      failInvalidArgument("Provided document reference is from a different Firestore instance.")
    }
    if let error = attempt.withLock({ $0.readError() }) { throw error.object }
    let response = Guarded<Result<[CachedDocument], FirestoreError>?>(nil)
    let done = DispatchSemaphore(value: 0)
    client.datastore.documents([document.name]) { result in
      response.withLock { $0 = result }
      done.signal()
    }
    done.wait()
    switch response.withLock({ $0 }) {
    case .success(let documents)?:
      guard let read = documents.first else {
        throw FirestoreError.internalError("The server sent no documents.").object
      }
      if let error = attempt.withLock({ $0.recordRead(read) }) { throw error.object }
      return DocumentSnapshot(
        name: document.name, document: read, firestore: firestore,
        metadata: SnapshotMetadata(hasPendingWrites: false, isFromCache: false))
    case .failure(let error)?: throw error.object
    case nil: throw FirestoreError.internalError("The read ended without a result.").object
    }
  }
}

/// The options of a transaction.
open class TransactionOptions: NSObject, NSCopying, @unchecked Sendable {
  // Safe to share: the state is behind a lock.
  private let attempts = Guarded(5)

  /// The default options: at most five attempts.
  public override init() {}

  /// The maximum number of attempts. Stops the program for a number below 1.
  open var maxAttempts: Int {
    get { attempts.withLock { $0 } }
    set {
      if newValue < 1 { failInvalidArgument("maxAttempts must be at least 1, but was \(newValue)") }
      attempts.withLock { $0 = newValue }
    }
  }

  /// A copy that does not change with this object.
  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = TransactionOptions()
    copy.maxAttempts = maxAttempts
    return copy
  }

  /// Whether the maximum number of attempts is the same.
  open override func isEqual(_ object: Any?) -> Bool {
    (object as? TransactionOptions)?.maxAttempts == maxAttempts
  }

  /// Hashes the maximum number of attempts.
  open override var hash: Int { maxAttempts }
}

/// Runs a transaction's block until it commits, fails permanently, or reaches the maximum number of attempts.
final class TransactionRunner: Sendable {
  typealias Block = (Transaction, NSErrorPointer) -> Any?

  private static let queue = DispatchQueue(label: "firestore.transactions", attributes: .concurrent)

  private let firestore: Firestore
  /// Retained, because the instance may be terminated while a transaction is running.
  private let client: FirestoreClient
  private let block: AppClosure<Block>
  private let completion: @Sendable (AppClosure<Any?>, (any Error)?) -> Void
  private let backoff = Guarded(Backoff.firestore(seed: UInt64.random(in: 0...UInt64.max)))

  init(
    _ firestore: Firestore, block: @escaping Block,
    completion: @escaping @Sendable (AppClosure<Any?>, (any Error)?) -> Void
  ) {
    self.firestore = firestore
    client = firestore.client
    self.block = AppClosure(call: block)
    self.completion = completion
  }

  func run(attemptsLeft: Int) {
    let delay = backoff.withLock { $0.next() }
    TransactionRunner.queue.asyncAfter(deadline: .now() + delay) { [self] in
      if hasEnded { return finish(nil, FirestoreClient.terminated.object) }
      let transaction = Transaction(firestore, client)
      var error: NSError?
      let value = AppClosure(call: withUnsafeMutablePointer(to: &error) { block.call(transaction, $0) })
      let attempt = transaction.currentAttempt
      if let failure = attempt.failure { return finish(nil, failure.object) }
      if let error {
        let isFirestoreError = error.domain == FirestoreErrorDomain
        let code = StatusCode(rawValue: Int32(clamping: error.code))
        let canRetry = isFirestoreError && FirestoreError(code, "").isRetryable
        return canRetry ? retry(attemptsLeft, error) : finish(nil, error)
      }
      client.datastore.commit(attempt.commit) { [self] failure in
        guard let failure else { return finish(value, nil) }
        if hasEnded, !failure.meansUnappliedCommit {
          finish(nil, Continuations.unknownOutcome.object)
        } else if failure.isRetryable {
          retry(attemptsLeft, failure.object)
        } else {
          finish(nil, failure.object)
        }
      }
    }
  }

  private var hasEnded: Bool { client.hasEnded.withLock { $0 } }

  private func retry(_ attemptsLeft: Int, _ error: NSError) {
    if hasEnded {
      finish(nil, FirestoreClient.terminated.object)
    } else if attemptsLeft > 1 {
      run(attemptsLeft: attemptsLeft - 1)
    } else {
      finish(nil, error)
    }
  }

  private func finish(_ value: AppClosure<Any?>?, _ error: NSError?) {
    client.callbackQueue.async { [completion] in
      completion(value ?? AppClosure(call: nil), error)
    }
  }
}
