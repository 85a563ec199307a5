// Query methods of the Firestore service: batch gets, queries, aggregations and partitions.
//
// A streaming method reads the next page only after the client accepted the previous one.

import FirestoreEngine
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import GRPCFraming
import NIOCore

extension FirestoreService {
  @Sendable func batchGetDocuments(
    _ request: Google_Firestore_V1_BatchGetDocumentsRequest, _ head: GRPCRequestHead,
    _ responder: any CallResponder
  ) async throws {
    let database = try DatabaseName(parsing: request.database)
    var names: [DocumentName] = []
    names.reserveCapacity(request.documents.count)
    for name in request.documents { names.append(try DocumentName(parsing: name)) }
    let caller = try caller(head)
    let consistency: ReadConsistency =
      switch request.consistencySelector {
      case .transaction(let token): .transaction([UInt8](token))
      case .newTransaction(let options): .newTransaction(TransactionOptions(options, or: .readOnly()))
      case .readTime(let time): .readTime(Timestamp(time))
      case nil: .latest
      }
    let mask = request.hasMask ? try FieldMask(request.mask) : nil
    try await engine.batchGetDocuments(
      in: database, names, mask: mask, consistency: consistency, as: caller, memory: responder.memory
    ) { page in
      let buffer = try ResponseEncoding.batchGet(page)
      if buffer.readableBytes > 0 { try await responder.send(buffer) }
    }
  }

  @Sendable func runQuery(
    _ request: RunQueryRequest, _ head: GRPCRequestHead, _ responder: any CallResponder
  ) async throws {
    let parent = try ParentName(parsing: request.parent)
    let caller = try caller(head)
    let structuredQuery = try requiredQuery(request.query)
    let query = Query(parent: parent, structuredQuery)
    try await engine.runQuery(
      query, consistency: request.consistency, explain: request.explain, as: caller, memory: responder.memory
    ) { page in
      let buffer = try ResponseEncoding.query(page)
      if buffer.readableBytes > 0 { try await responder.send(buffer) }
    }
  }

  @Sendable func runAggregationQuery(
    _ request: RunAggregationQueryRequest, _ head: GRPCRequestHead, _ responder: any CallResponder
  ) async throws {
    let parent = try ParentName(parsing: request.parent)
    let caller = try caller(head)
    let query = try requiredQuery(request.query)
    let result = try await engine.runAggregationQuery(
      query, under: parent, consistency: request.consistency, explain: request.explain, as: caller)
    try await responder.send(try ResponseEncoding.aggregation(result))
  }

  /// Always fails: pipelines belong to the Enterprise edition of Cloud Firestore, which this server does not emulate.
  @Sendable func executePipeline(
    _ request: Google_Firestore_V1_ExecutePipelineRequest, _ head: GRPCRequestHead,
    _ responder: any CallResponder
  ) async throws {
    let database = try DatabaseName(parsing: request.database)
    try await engine.executePipeline(in: database, as: try caller(head))
  }

  @Sendable func partitionQuery(
    _ request: PartitionRequest, _ head: GRPCRequestHead
  ) async throws -> ByteBuffer {
    let parent = try ParentName(parsing: request.parent)
    let caller = try caller(head)
    let structuredQuery = try requiredQuery(request.query)
    let page = try await engine.partitionQuery(
      PartitionQueryRequest(
        Query(parent: parent, structuredQuery), count: Int(clamping: request.count),
        pageSize: Int(request.pageSize), pageToken: request.pageToken,
        consistency: request.readTime.map { .readTime($0) } ?? .latest),
      as: caller)
    return try ResponseEncoding.partitions(page)
  }

  /// Returns the query of a request.
  /// - Throws: INVALID_ARGUMENT if the request has none.
  private func requiredQuery<Query>(_ query: Query?) throws(FirestoreError) -> Query {
    guard let query else { throw .invalidArgument("only structured queries are supported") }
    return query
  }
}
