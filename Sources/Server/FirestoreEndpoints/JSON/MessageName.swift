// The messages and enums of Firestore's API that occur in JSON, by their protobuf names.

/// A protobuf message.
enum MessageName: String, CaseIterable, Sendable {
  case getDocumentRequest = "google.firestore.v1.GetDocumentRequest"
  case listDocumentsRequest = "google.firestore.v1.ListDocumentsRequest"
  case listDocumentsResponse = "google.firestore.v1.ListDocumentsResponse"
  case createDocumentRequest = "google.firestore.v1.CreateDocumentRequest"
  case updateDocumentRequest = "google.firestore.v1.UpdateDocumentRequest"
  case deleteDocumentRequest = "google.firestore.v1.DeleteDocumentRequest"
  case batchGetDocumentsRequest = "google.firestore.v1.BatchGetDocumentsRequest"
  case batchGetDocumentsResponse = "google.firestore.v1.BatchGetDocumentsResponse"
  case beginTransactionRequest = "google.firestore.v1.BeginTransactionRequest"
  case beginTransactionResponse = "google.firestore.v1.BeginTransactionResponse"
  case commitRequest = "google.firestore.v1.CommitRequest"
  case commitResponse = "google.firestore.v1.CommitResponse"
  case rollbackRequest = "google.firestore.v1.RollbackRequest"
  case runQueryRequest = "google.firestore.v1.RunQueryRequest"
  case runQueryResponse = "google.firestore.v1.RunQueryResponse"
  case executePipelineRequest = "google.firestore.v1.ExecutePipelineRequest"
  case executePipelineResponse = "google.firestore.v1.ExecutePipelineResponse"
  case runAggregationQueryRequest = "google.firestore.v1.RunAggregationQueryRequest"
  case runAggregationQueryResponse = "google.firestore.v1.RunAggregationQueryResponse"
  case partitionQueryRequest = "google.firestore.v1.PartitionQueryRequest"
  case partitionQueryResponse = "google.firestore.v1.PartitionQueryResponse"
  case writeRequest = "google.firestore.v1.WriteRequest"
  case writeResponse = "google.firestore.v1.WriteResponse"
  case listenRequest = "google.firestore.v1.ListenRequest"
  case listenResponse = "google.firestore.v1.ListenResponse"
  case target = "google.firestore.v1.Target"
  case targetDocumentsTarget = "google.firestore.v1.Target.DocumentsTarget"
  case targetQueryTarget = "google.firestore.v1.Target.QueryTarget"
  case targetChange = "google.firestore.v1.TargetChange"
  case listCollectionIdsRequest = "google.firestore.v1.ListCollectionIdsRequest"
  case listCollectionIdsResponse = "google.firestore.v1.ListCollectionIdsResponse"
  case batchWriteRequest = "google.firestore.v1.BatchWriteRequest"
  case batchWriteResponse = "google.firestore.v1.BatchWriteResponse"
  case document = "google.firestore.v1.Document"
  case value = "google.firestore.v1.Value"
  case arrayValue = "google.firestore.v1.ArrayValue"
  case mapValue = "google.firestore.v1.MapValue"
  case function = "google.firestore.v1.Function"
  case pipeline = "google.firestore.v1.Pipeline"
  case pipelineStage = "google.firestore.v1.Pipeline.Stage"
  case write = "google.firestore.v1.Write"
  case documentTransform = "google.firestore.v1.DocumentTransform"
  case documentTransformFieldTransform = "google.firestore.v1.DocumentTransform.FieldTransform"
  case writeResult = "google.firestore.v1.WriteResult"
  case documentChange = "google.firestore.v1.DocumentChange"
  case documentDelete = "google.firestore.v1.DocumentDelete"
  case documentRemove = "google.firestore.v1.DocumentRemove"
  case existenceFilter = "google.firestore.v1.ExistenceFilter"
  case structuredQuery = "google.firestore.v1.StructuredQuery"
  case structuredQueryCollectionSelector = "google.firestore.v1.StructuredQuery.CollectionSelector"
  case structuredQueryFilter = "google.firestore.v1.StructuredQuery.Filter"
  case structuredQueryCompositeFilter = "google.firestore.v1.StructuredQuery.CompositeFilter"
  case structuredQueryFieldFilter = "google.firestore.v1.StructuredQuery.FieldFilter"
  case structuredQueryUnaryFilter = "google.firestore.v1.StructuredQuery.UnaryFilter"
  case structuredQueryOrder = "google.firestore.v1.StructuredQuery.Order"
  case structuredQueryFieldReference = "google.firestore.v1.StructuredQuery.FieldReference"
  case structuredQueryProjection = "google.firestore.v1.StructuredQuery.Projection"
  case structuredQueryFindNearest = "google.firestore.v1.StructuredQuery.FindNearest"
  case structuredAggregationQuery = "google.firestore.v1.StructuredAggregationQuery"
  case structuredAggregationQueryAggregation = "google.firestore.v1.StructuredAggregationQuery.Aggregation"
  case structuredAggregationQueryAggregationCount =
    "google.firestore.v1.StructuredAggregationQuery.Aggregation.Count"
  case structuredAggregationQueryAggregationSum =
    "google.firestore.v1.StructuredAggregationQuery.Aggregation.Sum"
  case structuredAggregationQueryAggregationAvg =
    "google.firestore.v1.StructuredAggregationQuery.Aggregation.Avg"
  case cursor = "google.firestore.v1.Cursor"
  case documentMask = "google.firestore.v1.DocumentMask"
  case precondition = "google.firestore.v1.Precondition"
  case transactionOptions = "google.firestore.v1.TransactionOptions"
  case transactionOptionsReadWrite = "google.firestore.v1.TransactionOptions.ReadWrite"
  case transactionOptionsReadOnly = "google.firestore.v1.TransactionOptions.ReadOnly"
  case requestOptions = "google.firestore.v1.RequestOptions"
  case explainOptions = "google.firestore.v1.ExplainOptions"
  case explainMetrics = "google.firestore.v1.ExplainMetrics"
  case planSummary = "google.firestore.v1.PlanSummary"
  case executionStats = "google.firestore.v1.ExecutionStats"
  case aggregationResult = "google.firestore.v1.AggregationResult"
  case bitSequence = "google.firestore.v1.BitSequence"
  case bloomFilter = "google.firestore.v1.BloomFilter"
  case structuredPipeline = "google.firestore.v1.StructuredPipeline"
  case status = "google.rpc.Status"
  case latLng = "google.type.LatLng"
}

/// A protobuf enum.
enum EnumerationName: String, CaseIterable, Sendable {
  case targetChangeTargetChangeType = "google.firestore.v1.TargetChange.TargetChangeType"
  case documentTransformFieldTransformServerValue =
    "google.firestore.v1.DocumentTransform.FieldTransform.ServerValue"
  case structuredQueryDirection = "google.firestore.v1.StructuredQuery.Direction"
  case structuredQueryCompositeFilterOperator = "google.firestore.v1.StructuredQuery.CompositeFilter.Operator"
  case structuredQueryFieldFilterOperator = "google.firestore.v1.StructuredQuery.FieldFilter.Operator"
  case structuredQueryUnaryFilterOperator = "google.firestore.v1.StructuredQuery.UnaryFilter.Operator"
  case structuredQueryFindNearestDistanceMeasure =
    "google.firestore.v1.StructuredQuery.FindNearest.DistanceMeasure"
  case transactionOptionsConcurrencyMode = "google.firestore.v1.TransactionOptions.ConcurrencyMode"

  /// The names and numbers of the enum's values.
  var values: [(name: String, number: Int32)] {
    switch self {
    case .targetChangeTargetChangeType:
      [
        ("NO_CHANGE", 0),
        ("ADD", 1),
        ("REMOVE", 2),
        ("CURRENT", 3),
        ("RESET", 4),
      ]
    case .documentTransformFieldTransformServerValue:
      [
        ("SERVER_VALUE_UNSPECIFIED", 0),
        ("REQUEST_TIME", 1),
      ]
    case .structuredQueryDirection:
      [
        ("DIRECTION_UNSPECIFIED", 0),
        ("ASCENDING", 1),
        ("DESCENDING", 2),
      ]
    case .structuredQueryCompositeFilterOperator:
      [
        ("OPERATOR_UNSPECIFIED", 0),
        ("AND", 1),
        ("OR", 2),
      ]
    case .structuredQueryFieldFilterOperator:
      [
        ("OPERATOR_UNSPECIFIED", 0),
        ("LESS_THAN", 1),
        ("LESS_THAN_OR_EQUAL", 2),
        ("GREATER_THAN", 3),
        ("GREATER_THAN_OR_EQUAL", 4),
        ("EQUAL", 5),
        ("NOT_EQUAL", 6),
        ("ARRAY_CONTAINS", 7),
        ("IN", 8),
        ("ARRAY_CONTAINS_ANY", 9),
        ("NOT_IN", 10),
      ]
    case .structuredQueryUnaryFilterOperator:
      [
        ("OPERATOR_UNSPECIFIED", 0),
        ("IS_NAN", 2),
        ("IS_NULL", 3),
        ("IS_NOT_NAN", 4),
        ("IS_NOT_NULL", 5),
      ]
    case .structuredQueryFindNearestDistanceMeasure:
      [
        ("DISTANCE_MEASURE_UNSPECIFIED", 0),
        ("EUCLIDEAN", 1),
        ("COSINE", 2),
        ("DOT_PRODUCT", 3),
      ]
    case .transactionOptionsConcurrencyMode:
      [
        ("CONCURRENCY_MODE_UNSPECIFIED", 0),
        ("OPTIMISTIC", 1),
        ("PESSIMISTIC", 2),
      ]
    }
  }
}
