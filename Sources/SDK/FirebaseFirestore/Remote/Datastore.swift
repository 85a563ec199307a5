// The datastore: the server's API, with two streams and unary calls.

import FirestoreModel
import FirestoreProtobuf
import FirestoreWire
import Foundation
import NIOCore
import SwiftProtobuf

/// The headers that identify the client in every call.
struct CallContext: Sendable {
  let database: DatabaseName
  let appID: String

  var metadata: [(String, String)] {
    var result = [
      ("x-goog-api-client", "gl-swift/ fire/ hearth/"),
      ("google-cloud-resource-prefix", "\(database)"),
      ("x-goog-request-params", "\(database)"),
    ]
    if !appID.isEmpty { result.append(("x-firebase-gmpid", appID)) }
    return result
  }
}

struct Datastore: Sendable {
  let database: DatabaseName
  let appID: String
  let connection: ClientGRPCConnection
  let credentials: CallCredentials

  init(
    database: DatabaseName, appID: String, connection: ClientGRPCConnection,
    credentials: CallCredentials = CallCredentials()
  ) {
    self.database = database
    self.appID = appID
    self.connection = connection
    self.credentials = credentials
  }

  private func call(_ method: String, observer: @escaping ClientGRPCCall.Observer) -> ClientGRPCCall {
    connection.call(
      method, metadata: CallContext(database: database, appID: appID).metadata, credentials: credentials,
      observer: observer)
  }

  // MARK: Streams

  func open(_ kind: StreamKind, observer: @escaping ClientGRPCCall.Observer) -> ClientGRPCCall {
    call(kind == .watch ? "Listen" : "Write", observer: observer)
  }

  // MARK: Single requests

  /// Reads the current state of documents, for a transaction.
  func documents(
    _ names: [DocumentName],
    completion: @escaping @Sendable (Result<[CachedDocument], FirestoreError>) -> Void
  ) {
    var request = Google_Firestore_V1_BatchGetDocumentsRequest()
    request.database = database.description
    request.documents = names.map(\.description)
    unary("BatchGetDocuments", request, Google_Firestore_V1_BatchGetDocumentsResponse.self) { result in
      completion(result.flatMap { Datastore.documents($0, in: database) })
    }
  }

  /// Converts the responses of a read to documents. Returns an error if a response names a document of
  /// another database.
  static func documents(
    _ responses: [Google_Firestore_V1_BatchGetDocumentsResponse], in database: DatabaseName
  ) -> Result<[CachedDocument], FirestoreError> {
    var documents: [CachedDocument] = []
    do throws(FirestoreError) {
      for response in responses {
        switch response.result {
        case .found(let message):
          let document = try Document(message)
          try document.name.check(in: database)
          documents.append(
            CachedDocument(
              found: document.name, fields: document.fields, version: document.updateTime,
              createTime: document.createTime))
        case .missing(let text):
          let name = try DocumentName(parsing: text)
          try name.check(in: database)
          // A missing document has version zero. The precondition of a write to it is derived from that
          // version.
          documents.append(CachedDocument(missing: name, version: .epoch))
        case nil: continue
        }
      }
      return .success(documents)
    } catch {
      return .failure(error)
    }
  }

  /// Commits writes immediately, without the mutation queue.
  func commit(_ writes: [Write], completion: @escaping @Sendable (FirestoreError?) -> Void) {
    var request = Google_Firestore_V1_CommitRequest()
    request.database = database.description
    request.writes = writes.map { Google_Firestore_V1_Write($0) }
    unary("Commit", request, Google_Firestore_V1_CommitResponse.self) { result in
      switch result {
      case .success: completion(nil)
      case .failure(let error): completion(error)
      }
    }
  }

  /// Computes aggregates over the result of a query.
  func aggregate(
    _ query: ModelQuery, _ aggregations: [AggregationQuery.Aggregation],
    completion: @escaping @Sendable (Result<[String: Value], FirestoreError>) -> Void
  ) {
    var request = Google_Firestore_V1_RunAggregationQueryRequest()
    request.parent = query.parent.description
    request.structuredAggregationQuery = Google_Firestore_V1_StructuredAggregationQuery(
      AggregationQuery(query.structured, aggregations))
    unary("RunAggregationQuery", request, Google_Firestore_V1_RunAggregationQueryResponse.self) { result in
      completion(
        result.flatMap { responses in
          do throws(FirestoreError) {
            var values: [String: Value] = [:]
            for (alias, value) in responses.first?.result.aggregateFields ?? [:] {
              values[alias] = try Value(value)
            }
            return .success(values)
          } catch {
            return .failure(error)
          }
        })
    }
  }

  private func unary<Request: Message, Response: Message & Sendable>(
    _ method: String, _ request: Request, _ type: Response.Type,
    completion: @escaping @Sendable (Result<[Response], FirestoreError>) -> Void
  ) {
    let bytes: [UInt8]
    do {
      bytes = try request.serializedBytes()
    } catch {
      completion(.failure(.invalidArgument("The request cannot be encoded: \(error)")))
      return
    }
    unary(method, bytes, mayRetry: true, completion: completion)
  }

  /// Makes a unary call. If the server rejects its tokens, the call is repeated once with new tokens. A
  /// rejected call has changed nothing.
  private func unary<Response: Message & Sendable>(
    _ method: String, _ bytes: [UInt8], mayRetry: Bool,
    completion: @escaping @Sendable (Result<[Response], FirestoreError>) -> Void
  ) {
    let collector = ResponseCollector<Response>()
    let call = call(method) { [self] call, event in
      switch event {
      case .opened: break
      case .message(let buffer):
        collector.add(buffer)
        call.messageHandled()
      case .ended(let status):
        guard status.code == .unauthenticated else { return completion(collector.finish(status)) }
        credentials.reject()
        guard mayRetry else { return completion(collector.finish(status)) }
        unary(method, bytes, mayRetry: false, completion: completion)
      }
    }
    call.send(bytes)
    call.finishSending()
  }
}

/// Collects the messages of a call. Safe to share, because a call reports its events on only one event loop.
private final class ResponseCollector<Response: Message & Sendable>: @unchecked Sendable {
  private var responses: [Response] = []
  private var failure: FirestoreError?

  func add(_ buffer: ByteBuffer) {
    do {
      responses.append(try Response(serializedBytes: Array(buffer.readableBytesView)))
    } catch {
      failure = .internalError("The server's response cannot be parsed: \(error)")
    }
  }

  func finish(_ status: FirestoreError) -> Result<[Response], FirestoreError> {
    if status.code != .ok { return .failure(status) }
    return failure.map { .failure($0) } ?? .success(responses)
  }
}
