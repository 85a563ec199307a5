// The schemas of response messages.

extension MessageName {
  /// The fields of a response; nil if this message is not a response.
  var responseFields: [MessageSchema.Field]? {
    typealias Field = MessageSchema.Field
    return switch self {
    case .listDocumentsResponse:
      [
        Field(1, "documents", .list(.message(.document))),
        Field(2, "next_page_token", .string),
      ]
    case .batchGetDocumentsResponse:
      [
        Field(1, "found", .message(.document), in: "result"),
        Field(2, "missing", .string, in: "result"),
        Field(3, "transaction", .bytes),
        Field(4, "read_time", .timestamp),
      ]
    case .beginTransactionResponse:
      [
        Field(1, "transaction", .bytes)
      ]
    case .commitResponse:
      [
        Field(1, "write_results", .list(.message(.writeResult))),
        Field(2, "commit_time", .timestamp),
      ]
    case .runQueryResponse:
      [
        Field(2, "transaction", .bytes),
        Field(1, "document", .message(.document)),
        Field(3, "read_time", .timestamp),
        Field(4, "skipped_results", .int32),
        Field(6, "done", .bool),
        Field(11, "explain_metrics", .message(.explainMetrics)),
      ]
    case .executePipelineResponse:
      [
        Field(1, "transaction", .bytes),
        Field(2, "results", .list(.message(.document))),
        Field(3, "execution_time", .timestamp),
      ]
    case .runAggregationQueryResponse:
      [
        Field(1, "result", .message(.aggregationResult)),
        Field(2, "transaction", .bytes),
        Field(3, "read_time", .timestamp),
        Field(10, "explain_metrics", .message(.explainMetrics)),
      ]
    case .partitionQueryResponse:
      [
        Field(1, "partitions", .list(.message(.cursor))),
        Field(2, "next_page_token", .string),
      ]
    case .writeResponse:
      [
        Field(1, "stream_id", .string),
        Field(2, "stream_token", .bytes),
        Field(3, "write_results", .list(.message(.writeResult))),
        Field(4, "commit_time", .timestamp),
      ]
    case .listenResponse:
      [
        Field(2, "target_change", .message(.targetChange), in: "response_type"),
        Field(3, "document_change", .message(.documentChange), in: "response_type"),
        Field(4, "document_delete", .message(.documentDelete), in: "response_type"),
        Field(6, "document_remove", .message(.documentRemove), in: "response_type"),
        Field(5, "filter", .message(.existenceFilter), in: "response_type"),
      ]
    case .listCollectionIdsResponse:
      [
        Field(1, "collection_ids", .list(.string)),
        Field(2, "next_page_token", .string),
      ]
    case .batchWriteResponse:
      [
        Field(1, "write_results", .list(.message(.writeResult))),
        Field(2, "status", .list(.message(.status))),
      ]
    default: nil
    }
  }
}
