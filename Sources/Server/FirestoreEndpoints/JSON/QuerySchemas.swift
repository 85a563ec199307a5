// The schemas of queries and of the messages inside them.

extension MessageName {
  /// The fields of a query or of a message inside a query; nil if this message is of another kind.
  var queryFields: [MessageSchema.Field]? {
    typealias Field = MessageSchema.Field
    return switch self {
    case .targetQueryTarget:
      [
        Field(1, "parent", .string),
        Field(2, "structured_query", .message(.structuredQuery)),
      ]
    case .structuredQuery:
      [
        Field(1, "select", .message(.structuredQueryProjection)),
        Field(2, "from", .list(.message(.structuredQueryCollectionSelector))),
        Field(3, "where", .message(.structuredQueryFilter)),
        Field(4, "order_by", .list(.message(.structuredQueryOrder))),
        Field(7, "start_at", .message(.cursor)),
        Field(8, "end_at", .message(.cursor)),
        Field(6, "offset", .int32),
        Field(5, "limit", .wrapped(.int32)),
        Field(9, "find_nearest", .message(.structuredQueryFindNearest)),
      ]
    case .structuredQueryCollectionSelector:
      [
        Field(2, "collection_id", .string),
        Field(3, "all_descendants", .bool),
      ]
    case .structuredQueryFilter:
      [
        Field(1, "composite_filter", .message(.structuredQueryCompositeFilter), in: "filter_type"),
        Field(2, "field_filter", .message(.structuredQueryFieldFilter), in: "filter_type"),
        Field(3, "unary_filter", .message(.structuredQueryUnaryFilter), in: "filter_type"),
      ]
    case .structuredQueryCompositeFilter:
      [
        Field(1, "op", .enumeration(.structuredQueryCompositeFilterOperator)),
        Field(2, "filters", .list(.message(.structuredQueryFilter))),
      ]
    case .structuredQueryFieldFilter:
      [
        Field(1, "field", .message(.structuredQueryFieldReference)),
        Field(2, "op", .enumeration(.structuredQueryFieldFilterOperator)),
        Field(3, "value", .message(.value)),
      ]
    case .structuredQueryUnaryFilter:
      [
        Field(1, "op", .enumeration(.structuredQueryUnaryFilterOperator)),
        Field(2, "field", .message(.structuredQueryFieldReference)),
      ]
    case .structuredQueryOrder:
      [
        Field(1, "field", .message(.structuredQueryFieldReference)),
        Field(2, "direction", .enumeration(.structuredQueryDirection)),
      ]
    case .structuredQueryFieldReference:
      [
        Field(2, "field_path", .string)
      ]
    case .structuredQueryProjection:
      [
        Field(2, "fields", .list(.message(.structuredQueryFieldReference)))
      ]
    case .structuredQueryFindNearest:
      [
        Field(1, "vector_field", .message(.structuredQueryFieldReference)),
        Field(2, "query_vector", .message(.value)),
        Field(3, "distance_measure", .enumeration(.structuredQueryFindNearestDistanceMeasure)),
        Field(4, "limit", .wrapped(.int32)),
        Field(5, "distance_result_field", .string),
        Field(6, "distance_threshold", .wrapped(.double)),
      ]
    case .structuredAggregationQuery:
      [
        Field(1, "structured_query", .message(.structuredQuery)),
        Field(3, "aggregations", .list(.message(.structuredAggregationQueryAggregation))),
      ]
    case .structuredAggregationQueryAggregation:
      [
        Field(1, "count", .message(.structuredAggregationQueryAggregationCount), in: "operator"),
        Field(2, "sum", .message(.structuredAggregationQueryAggregationSum), in: "operator"),
        Field(3, "avg", .message(.structuredAggregationQueryAggregationAvg), in: "operator"),
        Field(7, "alias", .string),
      ]
    case .structuredAggregationQueryAggregationCount:
      [
        Field(1, "up_to", .wrapped(.int64))
      ]
    case .structuredAggregationQueryAggregationSum:
      [
        Field(1, "field", .message(.structuredQueryFieldReference))
      ]
    case .structuredAggregationQueryAggregationAvg:
      [
        Field(1, "field", .message(.structuredQueryFieldReference))
      ]
    case .cursor:
      [
        Field(1, "values", .list(.message(.value))),
        Field(2, "before", .bool),
      ]
    default: nil
    }
  }
}
