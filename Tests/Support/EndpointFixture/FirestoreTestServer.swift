// A Firestore test server is a complete server in the test's process, with a gRPC client. It has helper functions
// for common requests.

import FirestoreProtobuf
import Foundation
import GRPCFraming
import HearthServer
import SwiftProtobuf
import Testing

typealias Proto = FirestoreMessages

/// Short names for the generated protobuf messages.
enum FirestoreMessages {
  typealias Document = Google_Firestore_V1_Document
  typealias Value = Google_Firestore_V1_Value
  typealias Write = Google_Firestore_V1_Write
  typealias Listen = Google_Firestore_V1_ListenRequest
  typealias ListenResponse = Google_Firestore_V1_ListenResponse
}

struct FirestoreTestServer {
  static let database = "projects/demo-test/databases/(default)"
  static let documents = database + "/documents"

  let server: HearthServer
  let client: GRPCTestClient

  static func start(
    _ storage: HearthConfiguration.Storage = .ephemeral,
    _ change: (inout HearthConfiguration) -> Void = { _ in }
  ) async throws -> FirestoreTestServer {
    var configuration = HearthConfiguration.forTesting(storage: storage)
    change(&configuration)
    let server = HearthServer(configuration)
    try await server.start()
    return FirestoreTestServer(
      server: server, client: try await GRPCTestClient.connect(port: server.firestorePort ?? 0))
  }

  func stop() async {
    await client.close()
    await server.stop()
  }

  /// Runs a test against a new server. Always stops the server afterwards, also if the test throws.
  static func with(
    _ storage: HearthConfiguration.Storage = .ephemeral,
    _ change: (inout HearthConfiguration) -> Void = { _ in },
    _ body: (GRPCTestClient) async throws -> Void
  ) async throws {
    let server = try await start(storage, change)
    do {
      try await body(server.client)
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  /// Returns the path of a new directory for one test.
  static func temporaryDirectory() -> String {
    FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)").path
  }
}

extension GRPCTestClient {
  /// Commits writes in the test database.
  @discardableResult
  func commit(_ writes: [Proto.Write], transaction: Data? = nil) async throws
    -> Google_Firestore_V1_CommitResponse
  {
    var request = Google_Firestore_V1_CommitRequest()
    request.database = FirestoreTestServer.database
    request.writes = writes
    if let transaction { request.transaction = transaction }
    return try await unary("Commit", request)
  }

  func get(_ path: String) async throws -> Proto.Document {
    var request = Google_Firestore_V1_GetDocumentRequest()
    request.name = "\(FirestoreTestServer.documents)/\(path)"
    return try await unary("GetDocument", request)
  }

  /// Locks a document: a write to it does not commit until the transaction ends.
  func lock(_ path: String) async throws -> Data {
    var read = Google_Firestore_V1_BatchGetDocumentsRequest()
    read.database = FirestoreTestServer.database
    read.documents = ["\(FirestoreTestServer.documents)/\(path)"]
    read.newTransaction.readWrite = .init()
    let responses: [Google_Firestore_V1_BatchGetDocumentsResponse] = try await stream(
      "BatchGetDocuments", read)
    return try #require(responses.first).transaction
  }

  /// Rolls a transaction back, which releases its locks.
  func release(_ transaction: Data) async throws {
    var rollback = Google_Firestore_V1_RollbackRequest()
    rollback.database = FirestoreTestServer.database
    rollback.transaction = transaction
    let _: Google_Protobuf_Empty = try await unary("Rollback", rollback)
  }

  func query(_ request: Google_Firestore_V1_RunQueryRequest) async throws
    -> [Google_Firestore_V1_RunQueryResponse]
  {
    try await stream("RunQuery", request)
  }
}

extension Google_Firestore_V1_Value {
  static func int(_ value: Int64) -> Self {
    var message = Self()
    message.integerValue = value
    return message
  }

  static func text(_ value: String) -> Self {
    var message = Self()
    message.stringValue = value
    return message
  }
}

extension Google_Firestore_V1_Write {
  static func set(_ path: String, _ fields: [String: Proto.Value]) -> Self {
    var write = Self()
    write.update.name = "\(FirestoreTestServer.documents)/\(path)"
    write.update.fields = fields
    return write
  }

  static func delete(_ path: String) -> Self {
    var write = Self()
    write.delete = "\(FirestoreTestServer.documents)/\(path)"
    return write
  }

  func requiring(exists: Bool) -> Self {
    var write = self
    write.currentDocument.exists = exists
    return write
  }
}

extension Google_Firestore_V1_StructuredQuery {
  static func collection(_ id: String, where field: String? = nil, is value: Proto.Value? = nil) -> Self {
    var query = Self()
    query.from = [.with { $0.collectionID = id }]
    if let field, let value {
      query.where.fieldFilter.field.fieldPath = field
      query.where.fieldFilter.op = .equal
      query.where.fieldFilter.value = value
    }
    return query
  }
}

extension Google_Firestore_V1_RunQueryRequest {
  static func collection(_ id: String, where field: String? = nil, is value: Proto.Value? = nil) -> Self {
    var request = Self()
    request.parent = FirestoreTestServer.documents
    request.structuredQuery = .collection(id, where: field, is: value)
    return request
  }
}
