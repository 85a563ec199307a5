// The schemas of messages that occur inside requests and responses: documents, writes, targets and others.

extension MessageName {
  /// The fields of a message that occurs inside requests and responses; nil for any other message.
  var embeddedMessageFields: [MessageSchema.Field]? {
    typealias Field = MessageSchema.Field
    return switch self {
    case .target:
      [
        Field(2, "query", .message(.targetQueryTarget), in: "target_type"),
        Field(3, "documents", .message(.targetDocumentsTarget), in: "target_type"),
        Field(4, "resume_token", .bytes, in: "resume_type"),
        Field(11, "read_time", .timestamp, in: "resume_type"),
        Field(5, "target_id", .int32),
        Field(6, "once", .bool),
        Field(12, "expected_count", .wrapped(.int32)),
      ]
    case .targetDocumentsTarget:
      [
        Field(2, "documents", .list(.string))
      ]
    case .targetChange:
      [
        Field(1, "target_change_type", .enumeration(.targetChangeTargetChangeType)),
        Field(2, "target_ids", .list(.int32)),
        Field(3, "cause", .message(.status)),
        Field(4, "resume_token", .bytes),
        Field(6, "read_time", .timestamp),
      ]
    case .document:
      [
        Field(1, "name", .string),
        Field(2, "fields", .map(.message(.value))),
        Field(3, "create_time", .timestamp),
        Field(4, "update_time", .timestamp),
      ]
    case .value:
      [
        Field(11, "null_value", .null, in: "value_type"),
        Field(1, "boolean_value", .bool, in: "value_type"),
        Field(2, "integer_value", .int64, in: "value_type"),
        Field(3, "double_value", .double, in: "value_type"),
        Field(10, "timestamp_value", .timestamp, in: "value_type"),
        Field(17, "string_value", .string, in: "value_type"),
        Field(18, "bytes_value", .bytes, in: "value_type"),
        Field(5, "reference_value", .string, in: "value_type"),
        Field(8, "geo_point_value", .message(.latLng), in: "value_type"),
        Field(9, "array_value", .message(.arrayValue), in: "value_type"),
        Field(6, "map_value", .message(.mapValue), in: "value_type"),
        Field(19, "field_reference_value", .string, in: "value_type"),
        Field(22, "variable_reference_value", .string, in: "value_type"),
        Field(20, "function_value", .message(.function), in: "value_type"),
        Field(21, "pipeline_value", .message(.pipeline), in: "value_type"),
      ]
    case .arrayValue:
      [
        Field(1, "values", .list(.message(.value)))
      ]
    case .mapValue:
      [
        Field(1, "fields", .map(.message(.value)))
      ]
    case .function:
      [
        Field(1, "name", .string),
        Field(2, "args", .list(.message(.value))),
        Field(3, "options", .map(.message(.value))),
      ]
    case .pipeline:
      [
        Field(1, "stages", .list(.message(.pipelineStage)))
      ]
    case .pipelineStage:
      [
        Field(1, "name", .string),
        Field(2, "args", .list(.message(.value))),
        Field(3, "options", .map(.message(.value))),
      ]
    case .write:
      [
        Field(1, "update", .message(.document), in: "operation"),
        Field(2, "delete", .string, in: "operation"),
        Field(5, "verify", .string, in: "operation"),
        Field(6, "transform", .message(.documentTransform), in: "operation"),
        Field(3, "update_mask", .message(.documentMask)),
        Field(7, "update_transforms", .list(.message(.documentTransformFieldTransform))),
        Field(4, "current_document", .message(.precondition)),
      ]
    case .documentTransform:
      [
        Field(1, "document", .string),
        Field(2, "field_transforms", .list(.message(.documentTransformFieldTransform))),
      ]
    case .documentTransformFieldTransform:
      [
        Field(1, "field_path", .string),
        Field(
          2, "set_to_server_value", .enumeration(.documentTransformFieldTransformServerValue),
          in: "transform_type"),
        Field(3, "increment", .message(.value), in: "transform_type"),
        Field(4, "maximum", .message(.value), in: "transform_type"),
        Field(5, "minimum", .message(.value), in: "transform_type"),
        Field(6, "append_missing_elements", .message(.arrayValue), in: "transform_type"),
        Field(7, "remove_all_from_array", .message(.arrayValue), in: "transform_type"),
      ]
    case .writeResult:
      [
        Field(1, "update_time", .timestamp),
        Field(2, "transform_results", .list(.message(.value))),
      ]
    case .documentChange:
      [
        Field(1, "document", .message(.document)),
        Field(5, "target_ids", .list(.int32)),
        Field(6, "removed_target_ids", .list(.int32)),
      ]
    case .documentDelete:
      [
        Field(1, "document", .string),
        Field(6, "removed_target_ids", .list(.int32)),
        Field(4, "read_time", .timestamp),
      ]
    case .documentRemove:
      [
        Field(1, "document", .string),
        Field(2, "removed_target_ids", .list(.int32)),
        Field(4, "read_time", .timestamp),
      ]
    case .existenceFilter:
      [
        Field(1, "target_id", .int32),
        Field(2, "count", .int32),
        Field(3, "unchanged_names", .message(.bloomFilter)),
      ]
    case .documentMask:
      [
        Field(1, "field_paths", .list(.string))
      ]
    case .precondition:
      [
        Field(1, "exists", .bool, in: "condition_type"),
        Field(2, "update_time", .timestamp, in: "condition_type"),
      ]
    case .transactionOptions:
      [
        Field(2, "read_only", .message(.transactionOptionsReadOnly), in: "mode"),
        Field(3, "read_write", .message(.transactionOptionsReadWrite), in: "mode"),
      ]
    case .transactionOptionsReadWrite:
      [
        Field(1, "retry_transaction", .bytes),
        Field(2, "concurrency_mode", .enumeration(.transactionOptionsConcurrencyMode)),
      ]
    case .transactionOptionsReadOnly:
      [
        Field(2, "read_time", .timestamp)
      ]
    case .requestOptions:
      [
        Field(1, "request_tags", .list(.string))
      ]
    case .explainOptions:
      [
        Field(1, "analyze", .bool)
      ]
    case .explainMetrics:
      [
        Field(1, "plan_summary", .message(.planSummary)),
        Field(2, "execution_stats", .message(.executionStats)),
      ]
    case .planSummary:
      [
        Field(1, "indexes_used", .list(.structure))
      ]
    case .executionStats:
      [
        Field(1, "results_returned", .int64),
        Field(3, "execution_duration", .duration),
        Field(4, "read_operations", .int64),
        Field(5, "debug_stats", .structure),
      ]
    case .aggregationResult:
      [
        Field(2, "aggregate_fields", .map(.message(.value)))
      ]
    case .bitSequence:
      [
        Field(1, "bitmap", .bytes),
        Field(2, "padding", .int32),
      ]
    case .bloomFilter:
      [
        Field(1, "bits", .message(.bitSequence)),
        Field(2, "hash_count", .int32),
      ]
    case .structuredPipeline:
      [
        Field(1, "pipeline", .message(.pipeline)),
        Field(2, "options", .map(.message(.value))),
      ]
    case .status:
      [
        Field(1, "code", .int32),
        Field(2, "message", .string),
      ]
    case .latLng:
      [
        Field(1, "latitude", .double),
        Field(2, "longitude", .double),
      ]
    default: nil
    }
  }
}
