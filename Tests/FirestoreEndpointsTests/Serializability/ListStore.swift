// A list store: the operations of the list workload, on an engine in this process or over a socket.
//
// List k is the document `lists/k<k>`. Its fields are `list`, the values; `g`, k modulo 3; and `n`, the number of values.

import Access
import FirestoreEngine
import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import GRPCFraming
import NIOConcurrencyHelpers
import NIOCore
import SwiftProtobuf

@testable import EndpointFixture

/// Transactions on lists.
protocol ListStore: Sendable {
  func begin(_ options: TransactionOptions) async throws -> [UInt8]
  func get(_ names: [DocumentName], _ transaction: [UInt8]?) async throws -> [Document]
  func query(_ query: StructuredQuery, _ transaction: [UInt8]?) async throws -> [Document]
  /// Commits writes and returns the commit time in microseconds.
  func commit(_ writes: [Write], _ transaction: [UInt8]?) async throws -> Int64
  func rollBack(_ transaction: [UInt8]) async throws
}

/// The names and fields of the lists' documents.
enum Lists {
  static let database = DatabaseName(project: "demo-test")
  static let collection = ResourcePath(["lists"])
  static let query = StructuredQuery(from: [.init("lists")])
  static let list = FieldPath(field: "list")
  static let group = FieldPath(field: "g")
  static let count = FieldPath(field: "n")

  static func name(_ key: ListKey) -> DocumentName {
    guard let name = DocumentName(database: database, path: collection.appending("k\(key)")) else {
      preconditionFailure("the path of a document is valid")
    }
    return name
  }

  static func key(_ name: DocumentName) -> ListKey { ListKey(name.path.id?.dropFirst() ?? "") ?? -1 }

  static func values(_ document: Document) -> [Int64] {
    guard case .array(let elements)? = document.fields["list"] else { return [] }
    return elements.compactMap { if case .integer(let value) = $0 { value } else { nil } }
  }
}

/// A list store on an engine in this process.
struct EngineLists: ListStore {
  let engine: FirestoreEngine

  func begin(_ options: TransactionOptions) async throws -> [UInt8] {
    try await engine.beginTransaction(in: Lists.database, options, as: .administrator)
  }

  func get(_ names: [DocumentName], _ transaction: [UInt8]?) async throws -> [Document] {
    let found = NIOLockedValueBox<[Document]>([])
    try await engine.batchGetDocuments(
      in: Lists.database, names, consistency: transaction.map { .transaction($0) } ?? .latest,
      as: .administrator
    ) { page in
      for case .found(let document) in page.items {
        let document = try DocumentCodec.decode(document.encoded)
        found.withLockedValue { $0.append(document) }
      }
    }
    return found.withLockedValue { $0 }
  }

  func query(_ query: StructuredQuery, _ transaction: [UInt8]?) async throws -> [Document] {
    let found = NIOLockedValueBox<[Document]>([])
    try await engine.runQuery(
      Query(parent: ParentName(rootOf: Lists.database), query),
      consistency: transaction.map { .transaction($0) } ?? .latest, as: .administrator
    ) { page in
      let documents = try page.documents.map { try DocumentCodec.decode($0.encoded) }
      found.withLockedValue { $0 += documents }
    }
    return found.withLockedValue { $0 }
  }

  func commit(_ writes: [Write], _ transaction: [UInt8]?) async throws -> Int64 {
    let response = try await engine.commit(
      in: Lists.database, writes, transaction: transaction, as: .administrator)
    return response.commitTime?.microseconds ?? 0
  }

  func rollBack(_ transaction: [UInt8]) async throws {
    try await engine.rollback(in: Lists.database, transaction: transaction, as: .administrator)
  }
}

/// A list store over one gRPC connection, which is opened again after a disconnect.
final class SocketLists: ListStore {
  private let port: Int
  private let client = NIOLockedValueBox<GRPCTestClient?>(nil)

  init(port: Int) { self.port = port }

  func close() async {
    let client = client.withLockedValue { client in
      defer { client = nil }
      return client
    }
    await client?.close()
  }

  private func connectedClient() async throws -> GRPCTestClient {
    if let client = client.withLockedValue({ $0 }), client.channel.isActive { return client }
    let newClient = try await GRPCTestClient.connect(port: port)
    client.withLockedValue { $0 = newClient }
    return newClient
  }

  private func stream<Response: Message>(
    _ method: String, _ request: some Message, as type: Response.Type
  ) async throws -> [Response] {
    do {
      return try await connectedClient().stream(method, request, as: Response.self)
    } catch let status as GRPCStatus {
      throw FirestoreError(StatusCode(rawValue: Int32(status.code.rawValue)), status.message)
    }
  }

  func begin(_ options: TransactionOptions) async throws -> [UInt8] {
    var request = Google_Firestore_V1_BeginTransactionRequest()
    request.database = Lists.database.description
    request.options = Google_Firestore_V1_TransactionOptions(options)
    let response = try await stream(
      "BeginTransaction", request, as: Google_Firestore_V1_BeginTransactionResponse.self)
    return [UInt8](response.first?.transaction ?? Data())
  }

  func get(_ names: [DocumentName], _ transaction: [UInt8]?) async throws -> [Document] {
    var request = Google_Firestore_V1_BatchGetDocumentsRequest()
    request.database = Lists.database.description
    request.documents = names.map(\.description)
    if let transaction { request.transaction = Data(transaction) }
    return try await stream(
      "BatchGetDocuments", request, as: Google_Firestore_V1_BatchGetDocumentsResponse.self
    ).filter { !$0.found.name.isEmpty }.map { try Document($0.found) }
  }

  func query(_ query: StructuredQuery, _ transaction: [UInt8]?) async throws -> [Document] {
    var request = Google_Firestore_V1_RunQueryRequest()
    request.parent = ParentName(rootOf: Lists.database).description
    request.structuredQuery = Google_Firestore_V1_StructuredQuery(query)
    if let transaction { request.transaction = Data(transaction) }
    return try await stream("RunQuery", request, as: Google_Firestore_V1_RunQueryResponse.self)
      .filter { $0.hasDocument }.map { try Document($0.document) }
  }

  func commit(_ writes: [Write], _ transaction: [UInt8]?) async throws -> Int64 {
    var request = Google_Firestore_V1_CommitRequest()
    request.database = Lists.database.description
    request.writes = writes.map { Google_Firestore_V1_Write($0) }
    if let transaction { request.transaction = Data(transaction) }
    let response = try await stream("Commit", request, as: Google_Firestore_V1_CommitResponse.self)
    return response.first.map { Timestamp($0.commitTime).microseconds } ?? 0
  }

  func rollBack(_ transaction: [UInt8]) async throws {
    var request = Google_Firestore_V1_RollbackRequest()
    request.database = Lists.database.description
    request.transaction = Data(transaction)
    _ = try await stream("Rollback", request, as: Google_Protobuf_Empty.self)
  }
}
