// The disjunctive normal form of a filter: alternatives, each a list of terms. Plans are built from it, and Cloud
// Firestore limits the number of alternatives.
//
// Invariant: a document matches the filter exactly if it matches all terms of one alternative. The number of
// alternatives is computed before any is built, so that no filter can exhaust the memory.

/// One comparison or test.
public enum FilterTerm: Hashable, Sendable {
  /// A comparison. It is never `isIn` or `arrayContainsAny`, which become alternatives of `equal` and `arrayContains`.
  case field(FieldFilter)
  /// A test.
  case unary(UnaryFilter)

  /// The field of the term.
  public var field: FieldPath {
    switch self {
    case .field(let filter): filter.field
    case .unary(let filter): filter.field
    }
  }

  /// Whether a document matches the term.
  public func matches(_ name: DocumentName, _ fields: MapValue) -> Bool {
    switch self {
    case .field(let filter): filter.matches(name, fields)
    case .unary(let filter): filter.matches(name, fields)
    }
  }
}

extension Filter {
  /// Whether an OR without filters is part of the filter. No document could match it.
  var hasEmptyDisjunction: Bool {
    guard case .composite(let op, let parts) = self else { return false }
    return (op == .or && parts.isEmpty) || parts.contains(where: \.hasEmptyDisjunction)
  }

  /// The number of alternatives; `Int.max` on overflow.
  public var disjunctionCount: Int {
    switch self {
    case .unary: 1
    case .field(let filter):
      filter.op == .isIn || filter.op == .arrayContainsAny ? max(1, filter.operands.count) : 1
    case .composite(_, let parts) where parts.isEmpty: 1
    case .composite(.and, let parts):
      parts.reduce(1) { product, part in
        let (result, overflow) = product.multipliedReportingOverflow(by: part.disjunctionCount)
        return overflow ? .max : result
      }
    case .composite(.or, let parts):
      parts.reduce(0) { sum, part in
        let (result, overflow) = sum.addingReportingOverflow(part.disjunctionCount)
        return overflow ? .max : result
      }
    }
  }

  /// The alternatives. Each is a list of terms that must all match; an empty list always matches.
  ///
  /// - Returns: nil if there are more than `limit`.
  public func disjunctions(limit: Int = FirestoreLimits.standard.disjunctions) -> [[FilterTerm]]? {
    disjunctionCount > limit ? nil : alternatives
  }

  private var alternatives: [[FilterTerm]] {
    switch self {
    case .unary(let filter): return [[.unary(filter)]]
    case .field(let filter):
      switch filter.op {
      case .isIn: return filter.operands.map { [.field(FieldFilter(filter.field, .equal, $0))] }
      case .arrayContainsAny:
        return filter.operands.map { [.field(FieldFilter(filter.field, .arrayContains, $0))] }
      default: return [[.field(filter)]]
      }
    case .composite(_, let parts) where parts.isEmpty: return [[]]
    case .composite(.or, let parts): return parts.flatMap(\.alternatives)
    case .composite(.and, let parts):
      return parts.reduce([[]]) { product, part in
        let factor = part.alternatives
        return product.flatMap { left in factor.map { left + $0 } }
      }
    }
  }

  /// All comparisons and tests in the tree, unchanged.
  var leaves: [Filter] {
    switch self {
    case .field, .unary: [self]
    case .composite(_, let parts): parts.flatMap(\.leaves)
    }
  }

  /// The number of comparisons, tests and empty composites in the tree. An empty composite costs as much as a test.
  var terminalCount: Int {
    switch self {
    case .field, .unary: 1
    case .composite(_, let parts): parts.isEmpty ? 1 : parts.reduce(0) { $0 + $1.terminalCount }
    }
  }

  /// The same condition with every composite of one part replaced by that part. The size of the result depends on the
  /// number of leaves, not on the depth.
  var simplified: Filter {
    guard case .composite(let op, let parts) = self else { return self }
    let simple = parts.map(\.simplified)
    return simple.count == 1 ? simple[0] : .composite(op, simple)
  }

  /// The filters that must all match: the parts of an `and`, or the filter itself.
  var conjuncts: [Filter] {
    switch self {
    case .composite(.and, let parts): parts.flatMap(\.conjuncts)
    case .field, .unary, .composite: [self]
    }
  }

  /// Whether an `or` with several parts occurs anywhere.
  var hasDisjunction: Bool {
    switch self {
    case .field, .unary: false
    case .composite(let op, let parts):
      (op == .or && parts.count > 1) || parts.contains { $0.hasDisjunction }
    }
  }

  /// The field of a leaf.
  var field: FieldPath? {
    switch self {
    case .field(let filter): filter.field
    case .unary(let filter): filter.field
    case .composite: nil
    }
  }

  /// Whether a leaf is an inequality. The field of an inequality becomes part of the query's order.
  var isInequality: Bool {
    switch self {
    case .composite: false
    case .field(let filter): filter.op.isInequality
    case .unary(let filter): filter.op == .isNotNull || filter.op == .isNotNaN
    }
  }
}

extension FieldFilter.Operator {
  /// Whether the comparison is an inequality. The field of an inequality becomes part of the query's order.
  public var isInequality: Bool {
    switch self {
    case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .notEqual, .notIn: true
    case .equal, .isIn, .arrayContains, .arrayContainsAny: false
    }
  }

  /// The operator's name in error messages.
  var name: String {
    switch self {
    case .lessThan: "LESS_THAN"
    case .lessThanOrEqual: "LESS_THAN_OR_EQUAL"
    case .greaterThan: "GREATER_THAN"
    case .greaterThanOrEqual: "GREATER_THAN_OR_EQUAL"
    case .equal: "EQUAL"
    case .notEqual: "NOT_EQUAL"
    case .arrayContains: "ARRAY_CONTAINS"
    case .isIn: "IN"
    case .arrayContainsAny: "ARRAY_CONTAINS_ANY"
    case .notIn: "NOT_IN"
    }
  }
}
