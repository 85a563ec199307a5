// The schemas of request messages.

extension MessageName {
  /// The fields of a request; nil if this message is not a request.
  var requestFields: [MessageSchema.Field]? {
    typealias Field = MessageSchema.Field
    return switch self {
    case .getDocumentRequest:
      [
        Field(1, "name", .string),
        Field(2, "mask", .message(.documentMask)),
        Field(3, "transaction", .bytes, in: "consistency_selector"),
        Field(5, "read_time", .timestamp, in: "consistency_selector"),
        Field(10, "request_options", .message(.requestOptions)),
      ]
    case .listDocumentsRequest:
      [
        Field(1, "parent", .string),
        Field(2, "collection_id", .string),
        Field(3, "page_size", .int32),
        Field(4, "page_token", .string),
        Field(6, "order_by", .string),
        Field(7, "mask", .message(.documentMask)),
        Field(8, "transaction", .bytes, in: "consistency_selector"),
        Field(10, "read_time", .timestamp, in: "consistency_selector"),
        Field(12, "show_missing", .bool),
        Field(13, "request_options", .message(.requestOptions)),
      ]
    case .createDocumentRequest:
      [
        Field(1, "parent", .string),
        Field(2, "collection_id", .string),
        Field(3, "document_id", .string),
        Field(4, "document", .message(.document)),
        Field(5, "mask", .message(.documentMask)),
        Field(6, "request_options", .message(.requestOptions)),
      ]
    case .updateDocumentRequest:
      [
        Field(1, "document", .message(.document)),
        Field(2, "update_mask", .message(.documentMask)),
        Field(3, "mask", .message(.documentMask)),
        Field(4, "current_document", .message(.precondition)),
        Field(5, "request_options", .message(.requestOptions)),
      ]
    case .deleteDocumentRequest:
      [
        Field(1, "name", .string),
        Field(2, "current_document", .message(.precondition)),
        Field(3, "request_options", .message(.requestOptions)),
      ]
    case .batchGetDocumentsRequest:
      [
        Field(1, "database", .string),
        Field(2, "documents", .list(.string)),
        Field(3, "mask", .message(.documentMask)),
        Field(4, "transaction", .bytes, in: "consistency_selector"),
        Field(5, "new_transaction", .message(.transactionOptions), in: "consistency_selector"),
        Field(7, "read_time", .timestamp, in: "consistency_selector"),
        Field(8, "request_options", .message(.requestOptions)),
      ]
    case .beginTransactionRequest:
      [
        Field(1, "database", .string),
        Field(2, "options", .message(.transactionOptions)),
        Field(3, "request_options", .message(.requestOptions)),
      ]
    case .commitRequest:
      [
        Field(1, "database", .string),
        Field(2, "writes", .list(.message(.write))),
        Field(3, "transaction", .bytes),
        Field(4, "request_options", .message(.requestOptions)),
      ]
    case .rollbackRequest:
      [
        Field(1, "database", .string),
        Field(2, "transaction", .bytes),
        Field(3, "request_options", .message(.requestOptions)),
      ]
    case .runQueryRequest:
      [
        Field(1, "parent", .string),
        Field(2, "structured_query", .message(.structuredQuery)),
        Field(5, "transaction", .bytes, in: "consistency_selector"),
        Field(6, "new_transaction", .message(.transactionOptions), in: "consistency_selector"),
        Field(7, "read_time", .timestamp, in: "consistency_selector"),
        Field(10, "explain_options", .message(.explainOptions)),
        Field(11, "request_options", .message(.requestOptions)),
      ]
    case .executePipelineRequest:
      [
        Field(1, "database", .string),
        Field(2, "structured_pipeline", .message(.structuredPipeline)),
        Field(5, "transaction", .bytes, in: "consistency_selector"),
        Field(6, "new_transaction", .message(.transactionOptions), in: "consistency_selector"),
        Field(7, "read_time", .timestamp, in: "consistency_selector"),
        Field(9, "auto_commit_transaction", .bool),
        Field(10, "request_options", .message(.requestOptions)),
      ]
    case .runAggregationQueryRequest:
      [
        Field(1, "parent", .string),
        Field(2, "structured_aggregation_query", .message(.structuredAggregationQuery)),
        Field(4, "transaction", .bytes, in: "consistency_selector"),
        Field(5, "new_transaction", .message(.transactionOptions), in: "consistency_selector"),
        Field(6, "read_time", .timestamp, in: "consistency_selector"),
        Field(8, "explain_options", .message(.explainOptions)),
        Field(9, "request_options", .message(.requestOptions)),
      ]
    case .partitionQueryRequest:
      [
        Field(1, "parent", .string),
        Field(2, "structured_query", .message(.structuredQuery)),
        Field(3, "partition_count", .int64),
        Field(4, "page_token", .string),
        Field(5, "page_size", .int32),
        Field(6, "read_time", .timestamp),
        Field(7, "request_options", .message(.requestOptions)),
      ]
    case .writeRequest:
      [
        Field(1, "database", .string),
        Field(2, "stream_id", .string),
        Field(3, "writes", .list(.message(.write))),
        Field(4, "stream_token", .bytes),
        Field(5, "labels", .map(.string)),
        Field(6, "request_options", .message(.requestOptions)),
      ]
    case .listenRequest:
      [
        Field(1, "database", .string),
        Field(2, "add_target", .message(.target), in: "target_change"),
        Field(3, "remove_target", .int32, in: "target_change"),
        Field(4, "labels", .map(.string)),
        Field(5, "request_options", .message(.requestOptions)),
      ]
    case .listCollectionIdsRequest:
      [
        Field(1, "parent", .string),
        Field(2, "page_size", .int32),
        Field(3, "page_token", .string),
        Field(4, "read_time", .timestamp),
        Field(5, "request_options", .message(.requestOptions)),
      ]
    case .batchWriteRequest:
      [
        Field(1, "database", .string),
        Field(2, "writes", .list(.message(.write))),
        Field(3, "labels", .map(.string)),
        Field(4, "request_options", .message(.requestOptions)),
      ]
    default: nil
    }
  }
}
