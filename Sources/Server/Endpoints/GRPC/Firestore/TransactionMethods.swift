// Transactions, atomic commits and batches that are not atomic.

import FirestoreEngine
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import GRPCFraming
import NIOCore

extension FirestoreService {
  @Sendable func beginTransaction(
    _ request: Google_Firestore_V1_BeginTransactionRequest, _ head: GRPCRequestHead
  ) async throws -> ByteBuffer {
    let database = try DatabaseName(parsing: request.database)
    let caller = try caller(head)
    let options = TransactionOptions(request.options, or: .readWrite())
    return try ResponseEncoding.beginTransaction(
      try await engine.beginTransaction(in: database, options, as: caller))
  }

  /// Reads a Commit; one that cannot be read ends its transaction like any other that fails.
  private func commitRequest(
    _ message: ByteBuffer, _ head: GRPCRequestHead
  ) throws(FirestoreError) -> CommitRequest {
    do throws(FirestoreError) {
      return try CommitRequest(request: message, limit: requestBytes)
    } catch {
      endTransaction(ofRefused: message, head)
      throw error
    }
  }

  /// Ends the transaction that a Commit names which is refused before it is served, as far as its bytes tell.
  @Sendable func endTransaction(ofRefused message: ByteBuffer, _ head: GRPCRequestHead) {
    guard let named = message.withUnsafeReadableBytes({ CommitRequest.transaction(in: $0) }),
      let database = try? DatabaseName(parsing: named.database), let caller = try? caller(head)
    else { return }
    engine.failTransaction(named.token, in: database, as: caller)
  }

  /// Commits: in callback form, since no call is more frequent.
  @Sendable func commit(
    _ head: GRPCRequestHead, _ message: ByteBuffer,
    _ completion: @escaping @Sendable (Result<ByteBuffer, any Error>) -> Void
  ) -> any CancellableCall {
    do throws(FirestoreError) {
      let request = try commitRequest(message, head)
      let database = try DatabaseName(parsing: request.database)
      let caller = try caller(head)
      return engine.commit(in: database, request.writes, transaction: request.transaction, as: caller) {
        outcome in
        completion(
          Result {
            do { return try ResponseEncoding.commit(try outcome.get()) } catch let error as FirestoreError {
              throw GRPCStatus(error)
            }
          })
      }
    } catch {
      completion(.failure(GRPCStatus(error)))
      return EndedCall()
    }
  }

  @Sendable func batchWrite(
    _ request: BatchWriteRequest, _ head: GRPCRequestHead
  ) async throws -> ByteBuffer {
    let database = try DatabaseName(parsing: request.database)
    let caller = try caller(head)
    return try ResponseEncoding.batchWrite(
      try await engine.batchWrite(in: database, request.writes, as: caller))
  }

  @Sendable func rollback(
    _ request: Google_Firestore_V1_RollbackRequest, _ head: GRPCRequestHead
  ) async throws -> ByteBuffer {
    let database = try DatabaseName(parsing: request.database)
    let caller = try caller(head)
    try await engine.rollback(in: database, transaction: [UInt8](request.transaction), as: caller)
    return ResponseEncoding.empty
  }
}

/// A call that ended before it reached the engine.
private struct EndedCall: CancellableCall {
  func cancel() {}
}
