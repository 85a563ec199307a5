// Transaction methods of the Firestore service: transactions, atomic commits and batch writes that are not atomic.
//
// One Commit over gRPC passes these files, from the socket to the disk and back:
//   1. Ports/Listening/ListeningPort accepts the connection. GRPC/Transport/GRPCStreamHandler collects the message of a
//      stream, and GRPCStreamHandler+Calls starts the method.
//   2. `commit` in this file decodes the request (Shared/FirestoreWire/Codec: CommitRequests, WriteDecoding) and
//      authenticates the caller.
//   3. FirestoreEngine/Commits/Committing validates the writes, enters the transaction and calls the store.
//   4. OrderedStore/Sequencer/CommitSequencer, which runs one commit of a database at a time, runs the commit's body:
//      FirestoreEngine/Commits/CommitPlan applies the writes, within Commits/CommitCostBudget.
//   5. FirestoreEngine/Transactions/LockTable detects conflicts. A blocked commit waits off the sequencer and is then
//      started again.
//   6. OrderedStore/Commit/CommitPipeline writes the commit to disk by EmbeddedStore/RocksEngine and publishes it.
//   7. FirestoreEngine/Watch/WatchHub passes the change to listeners. Commits/CommitCall reports the outcome.
//   8. GRPC/Methods/ResponseEncoding encodes the response. GRPC/Transport/GRPCResponder sends it.
//
// FirestoreEngine/Commits/Committing describes steps 3 to 7 in detail.

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

  /// Decodes a Commit request. A malformed request ends its transaction, like every failed commit.
  private func commitRequest(
    _ message: ByteBuffer, _ head: GRPCRequestHead
  ) throws(FirestoreError) -> CommitRequest {
    do throws(FirestoreError) {
      return try CommitRequest(request: message, limit: requestBytes)
    } catch {
      endTransaction(ofRejected: message, head)
      throw error
    }
  }

  /// Ends the transaction of a Commit request that is rejected before it reaches the engine.
  ///
  /// Does nothing if the transaction cannot be decoded from the bytes.
  @Sendable func endTransaction(ofRejected message: ByteBuffer, _ head: GRPCRequestHead) {
    guard let rejected = message.withUnsafeReadableBytes({ CommitRequest.transaction(in: $0) }),
      let database = try? DatabaseName(parsing: rejected.database), let caller = try? caller(head)
    else { return }
    engine.failTransaction(rejected.token, in: database, as: caller)
  }

  /// Commits writes. The method uses a callback instead of a task because Commit is the most frequent call.
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
      return RejectedCall()
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

/// A call that was rejected before it reached the engine; it cannot be cancelled.
private struct RejectedCall: CancellableCall {
  func cancel() {}
}
