// The methods of the REST interface, by their gRPC names, with their request and response messages.

/// A REST method.
struct FirestoreRESTMethod: Sendable {
  /// The name in gRPC's path.
  let name: String
  let request: MessageName
  /// The response message; nil for an empty response.
  let response: MessageName?
  /// Whether the response is an array of messages.
  var isStream = false
  /// The estimated size of the response in bytes; 0 for a small one. A call with a large response waits until its
  /// connection has capacity.
  var expectedBytes = 0

  /// The size of the largest document in JSON, in bytes.
  private static let documentBytes = 2 << 20
  /// The bytes that a connection reserves for a response with any number of results before the call starts. The response's
  /// stream counts more bytes while it holds them.
  private static let initialResultBytes = 64 << 10
  /// The size of a page of a listing, in bytes.
  private static let pageBytes = 6 << 20

  static let getDocument = FirestoreRESTMethod(
    name: "GetDocument", request: .getDocumentRequest, response: .document, expectedBytes: documentBytes)
  static let listDocuments = FirestoreRESTMethod(
    name: "ListDocuments", request: .listDocumentsRequest, response: .listDocumentsResponse,
    expectedBytes: pageBytes
  )
  static let createDocument = FirestoreRESTMethod(
    name: "CreateDocument", request: .createDocumentRequest, response: .document, expectedBytes: documentBytes
  )
  static let updateDocument = FirestoreRESTMethod(
    name: "UpdateDocument", request: .updateDocumentRequest, response: .document, expectedBytes: documentBytes
  )
  static let deleteDocument = FirestoreRESTMethod(
    name: "DeleteDocument", request: .deleteDocumentRequest, response: nil)

  /// Methods of a database, by the verb in the path.
  static let ofDatabase: [String: FirestoreRESTMethod] = [
    "batchGet": FirestoreRESTMethod(
      name: "BatchGetDocuments", request: .batchGetDocumentsRequest, response: .batchGetDocumentsResponse,
      isStream: true, expectedBytes: initialResultBytes),
    "batchWrite": FirestoreRESTMethod(
      name: "BatchWrite", request: .batchWriteRequest, response: .batchWriteResponse),
    "beginTransaction": FirestoreRESTMethod(
      name: "BeginTransaction", request: .beginTransactionRequest, response: .beginTransactionResponse),
    "commit": FirestoreRESTMethod(name: "Commit", request: .commitRequest, response: .commitResponse),
    "rollback": FirestoreRESTMethod(name: "Rollback", request: .rollbackRequest, response: nil),
    "executePipeline": FirestoreRESTMethod(
      name: "ExecutePipeline", request: .executePipelineRequest, response: .executePipelineResponse,
      isStream: true, expectedBytes: initialResultBytes),
    "write": FirestoreRESTMethod(
      name: "Write", request: .writeRequest, response: .writeResponse, isStream: true),
    "listen": FirestoreRESTMethod(
      name: "Listen", request: .listenRequest, response: .listenResponse, isStream: true),
  ]

  /// Methods of the root or a document, by the verb in the path.
  static let ofParent: [String: FirestoreRESTMethod] = [
    "runQuery": FirestoreRESTMethod(
      name: "RunQuery", request: .runQueryRequest, response: .runQueryResponse, isStream: true,
      expectedBytes: initialResultBytes),
    "runAggregationQuery": FirestoreRESTMethod(
      name: "RunAggregationQuery", request: .runAggregationQueryRequest,
      response: .runAggregationQueryResponse,
      isStream: true, expectedBytes: initialResultBytes),
    "partitionQuery": FirestoreRESTMethod(
      name: "PartitionQuery", request: .partitionQueryRequest, response: .partitionQueryResponse,
      expectedBytes: pageBytes),
    "listCollectionIds": FirestoreRESTMethod(
      name: "ListCollectionIds", request: .listCollectionIdsRequest, response: .listCollectionIdsResponse,
      expectedBytes: pageBytes),
  ]
}
