// Transactions and atomic commits.

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

  @Sendable func commit(
    _ request: CommitRequest, _ head: GRPCRequestHead
  ) async throws -> ByteBuffer {
    let database = try DatabaseName(parsing: request.database)
    let caller = try caller(head)
    return try ResponseEncoding.commit(
      try await engine.commit(
        in: database, request.writes, transaction: request.transaction, as: caller))
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
