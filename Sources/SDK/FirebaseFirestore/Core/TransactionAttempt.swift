// One attempt at a transaction: the documents that were read, and the writes that are committed if those
// documents are unchanged.
//
// Invariant: the commit checks every document that was read, with a precondition of its write or with a
// separate check. Therefore a successful commit has read no outdated documents.

import FirestoreModel

struct TransactionAttempt {
  private var versions: [DocumentName: ModelTimestamp] = [:]
  private var order: [DocumentName] = []
  private var written: Set<DocumentName> = []
  private(set) var writes: [Write] = []
  /// An error that would also fail the next attempt.
  private(set) var failure: FirestoreError?

  static let readsFirst = FirestoreError.invalidArgument(
    "Firestore transactions require all reads to be executed before all writes.")

  /// Returns the error of a read, or nil if it is allowed. Reads after a write are not allowed.
  mutating func readError() -> FirestoreError? {
    if !writes.isEmpty { failure = failure ?? TransactionAttempt.readsFirst }
    return failure
  }

  /// Records a document that was read. Returns an error if an earlier read gave another version.
  mutating func recordRead(_ document: CachedDocument) -> FirestoreError? {
    if let before = versions[document.name] {
      return before == document.version ? nil : .aborted("Document version changed between two reads.")
    }
    versions[document.name] = document.version
    order.append(document.name)
    return nil
  }

  mutating func add(_ write: Write) {
    var write = write
    let name = write.document
    if let version = versions[name], !written.contains(name) {
      if write.precondition == .exists(true), version == .epoch {
        failure = failure ?? .invalidArgument("Can't update a document that doesn't exist.")
      }
      write.precondition = TransactionAttempt.condition(version)
    }
    written.insert(name)
    writes.append(write)
  }

  private static func condition(_ version: ModelTimestamp) -> Precondition {
    version == .epoch ? .exists(false) : .updateTime(version)
  }

  /// The writes to commit, including checks of documents that were only read.
  var commit: [Write] {
    let checks = order.filter { !written.contains($0) }.map { name in
      Write(.verify(name), precondition: TransactionAttempt.condition(versions[name] ?? .epoch))
    }
    return writes + checks
  }
}

extension FirestoreError {
  /// Whether the server has certainly not applied the commit if it responds with this code.
  var meansUnappliedCommit: Bool {
    code.isPermanent || code == .aborted || code == .resourceExhausted || code == .unauthenticated
  }

  /// Whether another attempt at the transaction may succeed.
  var isRetryable: Bool {
    code == .aborted || code == .failedPrecondition || code == .alreadyExists || !code.isPermanent
  }
}
