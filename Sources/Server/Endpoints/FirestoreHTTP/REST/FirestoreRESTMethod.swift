// The methods that REST has, by their names in gRPC, with the messages that they take and answer.

/// A method of the service as REST serves it.
struct FirestoreRESTMethod: Sendable {
  /// As in gRPC's path.
  let name: String
  let request: MessageName
  /// Nil where the answer is empty.
  let answer: MessageName?
  /// Whether the answer is an array of messages.
  var isStream = false
  /// About the bytes that its answer may take up while it is made; 0 where it is small. A call with a large one begins
  /// only when its connection has room.
  var expectedBytes = 0

  /// A document as large as any, in JSON.
  private static let document = 2 << 20
  /// A page of a listing.
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

  /// The methods that a verb names, for a whole database.
  static let ofDatabase: [String: FirestoreRESTMethod] = [
    "batchGet": FirestoreRESTMethod(
      name: "BatchGetDocuments", request: .batchGetDocumentsRequest, answer: .batchGetDocumentsResponse,
      isStream: true, expectedBytes: FirestoreRESTStream.heldBytes),
    "batchWrite": FirestoreRESTMethod(
      name: "BatchWrite", request: .batchWriteRequest, answer: .batchWriteResponse),
    "beginTransaction": FirestoreRESTMethod(
      name: "BeginTransaction", request: .beginTransactionRequest, answer: .beginTransactionResponse),
    "commit": FirestoreRESTMethod(name: "Commit", request: .commitRequest, answer: .commitResponse),
    "rollback": FirestoreRESTMethod(name: "Rollback", request: .rollbackRequest, answer: nil),
    "executePipeline": FirestoreRESTMethod(
      name: "ExecutePipeline", request: .executePipelineRequest, answer: .executePipelineResponse,
      isStream: true, expectedBytes: FirestoreRESTStream.heldBytes),
    "write": FirestoreRESTMethod(
      name: "Write", request: .writeRequest, answer: .writeResponse, isStream: true),
    "listen": FirestoreRESTMethod(
      name: "Listen", request: .listenRequest, answer: .listenResponse, isStream: true),
  ]

  /// The methods that a verb names, for the root or a document.
  static let ofParent: [String: FirestoreRESTMethod] = [
    "runQuery": FirestoreRESTMethod(
      name: "RunQuery", request: .runQueryRequest, answer: .runQueryResponse, isStream: true,
      expectedBytes: FirestoreRESTStream.heldBytes),
    "runAggregationQuery": FirestoreRESTMethod(
      name: "RunAggregationQuery", request: .runAggregationQueryRequest, answer: .runAggregationQueryResponse,
      isStream: true, expectedBytes: FirestoreRESTStream.heldBytes),
    "partitionQuery": FirestoreRESTMethod(
      name: "PartitionQuery", request: .partitionQueryRequest, answer: .partitionQueryResponse,
      expectedBytes: page),
    "listCollectionIds": FirestoreRESTMethod(
      name: "ListCollectionIds", request: .listCollectionIdsRequest, answer: .listCollectionIdsResponse,
      expectedBytes: page),
  ]
}
