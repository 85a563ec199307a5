// The methods of the REST interface, by their gRPC names, with their request and response messages.

/// A REST method.
struct FirestoreRESTMethod: Sendable {
  /// The name in gRPC's path.
  let name: String
  let request: MessageName
  /// The response message; nil for an empty response.
  let answer: MessageName?
  /// Whether the response is an array of messages.
  var isStream = false
  /// The estimated size of the response in bytes; 0 for a small one. A call with a large response waits until its
  /// connection has capacity.
  var expectedBytes = 0

  /// The size of the largest document in JSON, in bytes.
  private static let document = 2 << 20
  /// The bytes that are expected at first for a response with any number of results. The stream counts further bytes while
  /// it holds them.
  private static let results = 64 << 10
  /// The size of a page of a listing, in bytes.
  private static let page = 6 << 20

  static let getDocument = FirestoreRESTMethod(
    name: "GetDocument", request: .getDocumentRequest, answer: .document, expectedBytes: document)
  static let listDocuments = FirestoreRESTMethod(
    name: "ListDocuments", request: .listDocumentsRequest, answer: .listDocumentsResponse, expectedBytes: page
  )
  static let createDocument = FirestoreRESTMethod(
    name: "CreateDocument", request: .createDocumentRequest, answer: .document, expectedBytes: document)
  static let updateDocument = FirestoreRESTMethod(
    name: "UpdateDocument", request: .updateDocumentRequest, answer: .document, expectedBytes: document)
  static let deleteDocument = FirestoreRESTMethod(
    name: "DeleteDocument", request: .deleteDocumentRequest, answer: nil)

  /// Methods of a database, by the verb in the path.
  static let ofDatabase: [String: FirestoreRESTMethod] = [
    "batchGet": FirestoreRESTMethod(
      name: "BatchGetDocuments", request: .batchGetDocumentsRequest, answer: .batchGetDocumentsResponse,
      isStream: true, expectedBytes: results),
    "batchWrite": FirestoreRESTMethod(
      name: "BatchWrite", request: .batchWriteRequest, answer: .batchWriteResponse),
    "beginTransaction": FirestoreRESTMethod(
      name: "BeginTransaction", request: .beginTransactionRequest, answer: .beginTransactionResponse),
    "commit": FirestoreRESTMethod(name: "Commit", request: .commitRequest, answer: .commitResponse),
    "rollback": FirestoreRESTMethod(name: "Rollback", request: .rollbackRequest, answer: nil),
    "executePipeline": FirestoreRESTMethod(
      name: "ExecutePipeline", request: .executePipelineRequest, answer: .executePipelineResponse,
      isStream: true, expectedBytes: results),
    "write": FirestoreRESTMethod(
      name: "Write", request: .writeRequest, answer: .writeResponse, isStream: true),
    "listen": FirestoreRESTMethod(
      name: "Listen", request: .listenRequest, answer: .listenResponse, isStream: true),
  ]

  /// Methods of the root or a document, by the verb in the path.
  static let ofParent: [String: FirestoreRESTMethod] = [
    "runQuery": FirestoreRESTMethod(
      name: "RunQuery", request: .runQueryRequest, answer: .runQueryResponse, isStream: true,
      expectedBytes: results),
    "runAggregationQuery": FirestoreRESTMethod(
      name: "RunAggregationQuery", request: .runAggregationQueryRequest, answer: .runAggregationQueryResponse,
      isStream: true, expectedBytes: results),
    "partitionQuery": FirestoreRESTMethod(
      name: "PartitionQuery", request: .partitionQueryRequest, answer: .partitionQueryResponse,
      expectedBytes: page),
    "listCollectionIds": FirestoreRESTMethod(
      name: "ListCollectionIds", request: .listCollectionIdsRequest, answer: .listCollectionIdsResponse,
      expectedBytes: page),
  ]
}
