// Tests transaction attempts: the writes that an attempt commits, and the errors that allow another attempt.

import FirebaseCore
import FirestoreModel
import Foundation
import Testing

@testable import FirebaseFirestore

@Suite("Transaction attempts") struct TransactionAttemptTests {
  private func name(_ id: String) -> DocumentName {
    ParentName(rootOf: DatabaseName(project: "test")).collection("c").document(id)
  }

  private func found(_ id: String, at version: Int64) -> CachedDocument {
    CachedDocument(found: name(id), fields: [:], version: .init(microseconds: version), createTime: .epoch)
  }

  private func missing(_ id: String) -> CachedDocument { CachedDocument(missing: name(id), version: .epoch) }

  private func update(_ id: String) -> Write {
    Write(.update(name(id), fields: ["n": 1]), mask: [.init(field: "n")], precondition: .exists(true))
  }

  @Test("for every document that was read, the commit contains its version as a precondition")
  func readPreconditions() throws {
    var attempt = TransactionAttempt()
    for document in [found("a", at: 5), missing("b"), found("c", at: 7), missing("d")] {
      #expect(attempt.readError() == nil && attempt.recordRead(document) == nil)
    }
    attempt.add(update("a"))
    attempt.add(Write(.update(name("b"), fields: [:])))
    attempt.add(update("unread"))
    attempt.add(Write(.delete(name("deleted"))))
    attempt.add(update("a"))
    attempt.add(Write(.delete(name("a"))))
    let at5 = Precondition.updateTime(.init(microseconds: 5))
    let at7 = Precondition.updateTime(.init(microseconds: 7))
    #expect(attempt.failure == nil)
    #expect(
      attempt.commit.map(\.precondition) == [
        at5, .exists(false), .exists(true), nil, .exists(true), nil, at7, .exists(false),
      ], "only the first write of a document has the precondition of its read")
    #expect(attempt.commit.suffix(2).map(\.operation) == [.verify(name("c")), .verify(name("d"))])
  }

  @Test("a read after a write fails")
  func readAfterWrite() {
    var attempt = TransactionAttempt()
    #expect(attempt.readError() == nil)
    attempt.add(update("a"))
    #expect(attempt.readError()?.code == .invalidArgument)
    #expect(attempt.failure == TransactionAttempt.readsFirst)
    #expect(!TransactionAttempt.readsFirst.isRetryable)
  }

  @Test("a change of a document between two reads is an error that allows another attempt")
  func changedBetweenReads() {
    var attempt = TransactionAttempt()
    #expect(attempt.recordRead(found("a", at: 5)) == nil)
    #expect(attempt.recordRead(found("a", at: 5)) == nil)
    let error = attempt.recordRead(found("a", at: 6))
    #expect(error?.code == .aborted && error?.isRetryable == true)
    #expect(attempt.recordRead(missing("a"))?.code == .aborted)
    #expect(attempt.recordRead(missing("b")) == nil && attempt.recordRead(missing("b")) == nil)
    #expect(attempt.recordRead(found("b", at: 1))?.code == .aborted)
  }

  @Test("an update of a document that was read as missing fails")
  func updateOfMissingDocument() {
    var attempt = TransactionAttempt()
    #expect(attempt.recordRead(missing("a")) == nil)
    attempt.add(update("a"))
    #expect(attempt.failure?.code == .invalidArgument)
  }

  @Test("transient errors allow up to five attempts")
  func retriedErrors() {
    #expect(TransactionOptions().maxAttempts == 5)
    let retried = (1...16 as ClosedRange<Int32>).filter {
      FirestoreError(StatusCode(rawValue: $0), "").isRetryable
    }
    #expect(retried == [1, 2, 4, 6, 8, 9, 10, 13, 14, 16])
  }
}
