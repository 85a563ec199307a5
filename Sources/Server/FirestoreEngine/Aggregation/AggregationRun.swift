// Computes the aggregations (count, sum, average) of a query, from its results page by page.

import FirestoreModel
import OrderedStore

/// An aggregation in progress.
struct AggregationRun {
  private struct Accumulator {
    let alias: String
    let op: AggregationQuery.Operator
    var sum = NumberSum()
  }

  /// The query whose results are aggregated.
  let query: PreparedQuery
  private var accumulators: [Accumulator]
  private var count: Int64 = 0

  /// - Throws: INVALID_ARGUMENT for an invalid query or aggregation.
  init(
    _ aggregation: AggregationQuery, under parent: ParentName, _ limits: FirestoreLimits
  ) throws(FirestoreError) {
    let named = try aggregation.namedAggregations(limits: limits)
    accumulators = named.map { Accumulator(alias: $0.alias, op: $0.op) }
    var base = aggregation.base
    base.select = nil
    // Limit and offset select part of the results. The number of selected results does not depend on the
    // order, but the selection does, so sums and averages need the order.
    let selectsPart = base.limit != nil || base.offset > 0
    // If only bounded counts are requested, the query can stop at the largest bound.
    var bound: Int64 = 0
    for aggregation in named {
      if case .count(let upTo?) = aggregation.op { bound = max(bound, upTo) } else { bound = .max }
    }
    // The limit is only lowered, so that an invalid limit still reaches validation. A nearest-neighbor query
    // is excluded, since its limit would apply to the candidates and not to the results.
    if bound < .max, base.findNearest == nil,
      base.limit.map({ Int64($0) > bound }) ?? true
    {
      base.limit = Int(clamping: bound)
    }
    var prepared = try PreparedQuery(Query(parent: parent, base), limits)
    if selectsPart, !aggregation.fields.isEmpty {
      prepared = try prepared.deriving(base.ordered(byAggregated: aggregation.fields))
    }
    prepared.requiredFields = aggregation.fields
    prepared.needsOrder = selectsPart && !aggregation.fields.isEmpty
    query = prepared
  }

  /// Adds a page of results.
  mutating func add(_ documents: [StoredDocument]) throws(FirestoreError) {
    count += Int64(documents.count)
    guard !query.requiredFields.isEmpty else { return }
    for document in documents {
      let fields = try document.fields()
      for index in accumulators.indices {
        switch accumulators[index].op {
        case .count: break
        case .sum(let field), .average(let field):
          if let value = fields.value(at: field) { accumulators[index].sum.add(value) }
        }
      }
    }
  }

  /// The value of each aggregation, by alias.
  var result: MapValue {
    MapValue(
      accumulators.map { accumulator -> (String, Value) in
        switch accumulator.op {
        case .count(let bound): (accumulator.alias, .integer(min(count, bound ?? .max)))
        case .sum: (accumulator.alias, accumulator.sum.sum)
        case .average: (accumulator.alias, accumulator.sum.average)
        }
      })
  }
}
