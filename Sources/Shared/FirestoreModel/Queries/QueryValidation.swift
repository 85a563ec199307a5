// Validates queries by Cloud Firestore's rules.
//
// Invariant: every error is INVALID_ARGUMENT, with Cloud Firestore's error message where it is known. A valid
// query can be normalized, planned and matched.

extension FieldPath {
  /// Checks a path that a query names. The database does not store fields with reserved names.
  /// - Throws: INVALID_ARGUMENT for a segment such as `__x__`, unless the path is `__name__`.
  public func validateInQuery() throws(FirestoreError) {
    if isDocumentID { return }
    for name in segments where ResourceID.isReserved(name) && name.utf8.count > 4 {
      throw .invalidArgument("Invalid reserved name in field path \(name)")
    }
  }
}

extension Query {
  /// Checks the query against Cloud Firestore's rules.
  public func validate(limits: FirestoreLimits = .standard) throws(FirestoreError) {
    let query = structured
    if query.from.count > 1 {
      throw .invalidArgument("StructuredQuery.from cannot have more than one collection selector.")
    }
    if let selector = query.from.first, !selector.collectionID.isEmpty {
      try ResourceID.validate(collectionID: selector.collectionID)
    }
    if query.offset < 0 { throw .invalidArgument("offset is negative") }
    if let limit = query.limit, limit < 0 { throw .invalidArgument("limit is negative") }
    // This check comes first, since later checks may cost more than one pass over the filters.
    let parts = (query.filter?.terminalCount ?? 0) + query.orderBy.count + (parent.path.isEmpty ? 0 : 1)
    if parts > limits.filtersAndOrders {
      throw .invalidArgument("The query has more than \(limits.filtersAndOrders) filters and orders.")
    }
    let leaves = query.filter?.leaves ?? []
    for path in leaves.compactMap(\.field) + query.orderBy.map(\.field) + (query.select?.paths ?? []) {
      try path.validateInQuery()
    }
    for leaf in leaves { try validate(leaf, limits) }
    try validateCombinations(leaves, limits)
    try validateOrder()
    try validate(query.startAt)
    try validate(query.endAt)
    try validateNearest(limits)
  }

  private func validate(_ leaf: Filter, _ limits: FirestoreLimits) throws(FirestoreError) {
    if case .unary(let filter) = leaf, filter.field.isDocumentID {
      throw .invalidArgument("__key__ filter value must be a Key")
    }
    guard case .field(let filter) = leaf else { return }
    if case .vector(let numbers) = filter.value, numbers.isEmpty {
      throw .invalidArgument("Cannot have a zero length vector.")
    }
    let name = filter.op.name
    switch filter.op {
    case .isIn, .notIn, .arrayContainsAny:
      guard case .array(let values) = filter.value else {
        throw .invalidArgument("'\(name)' requires an ArrayValue.")
      }
      if values.isEmpty { throw .invalidArgument("'\(name)' requires an non-empty ArrayValue.") }
      let limit = filter.op == .notIn ? limits.notInValues : limits.disjunctions
      if values.count > limit {
        throw .invalidArgument("'\(name)' supports up to \(limit) comparison values.")
      }
      if filter.field.isDocumentID {
        if filter.op == .arrayContainsAny { throw .invalidArgument("'\(name)' cannot be used on __name__.") }
        for value in values { try validate(key: value) }
      }
    default:
      guard filter.field.isDocumentID else { break }
      if filter.op == .arrayContains { throw .invalidArgument("'\(name)' cannot be used on __name__.") }
      try validate(key: filter.value)
    }
  }

  /// Checks an operand of `__name__`.
  private func validate(key value: Value) throws(FirestoreError) {
    guard case .reference(let name) = value else {
      throw .invalidArgument("__key__ filter value must be a Key")
    }
    if name.database != parent.database {
      throw .invalidArgument("\(name) does not belong to database \(parent.database).")
    }
  }

  private func validateCombinations(
    _ leaves: [Filter], _ limits: FirestoreLimits
  ) throws(FirestoreError) {
    guard let filter = structured.filter else { return }
    if filter.hasEmptyDisjunction {
      throw .invalidArgument("A composite filter with the operator OR must have at least one filter.")
    }
    var operators: [FieldFilter.Operator] = []
    var negations = 0
    for leaf in leaves {
      switch leaf {
      case .field(let filter):
        operators.append(filter.op)
        if filter.op == .notEqual || filter.op == .notIn { negations += 1 }
      case .unary(let filter): if filter.op == .isNotNull || filter.op == .isNotNaN { negations += 1 }
      case .composite: break
      }
    }
    if negations > 1 {
      throw .invalidArgument(
        "Only a single 'NOT_EQUAL', 'NOT_IN', 'IS_NOT_NAN', or 'IS_NOT_NULL' filter allowed per query.")
    }
    if operators.contains(.notIn),
      operators.contains(.isIn) || operators.contains(.arrayContainsAny) || filter.hasDisjunction
    {
      throw .invalidArgument(
        "'NOT_IN' cannot be used in the same query with 'IN', 'ARRAY_CONTAINS_ANY' or 'OR'.")
    }
    try validateKey(filter.conjuncts)
    guard let disjunctions = filter.disjunctions(limit: limits.disjunctions) else {
      throw .invalidArgument(
        "The query has more than \(limits.disjunctions) disjunctions after normalization.")
    }
    for terms in disjunctions {
      var arrays = 0
      for case .field(let filter) in terms where filter.op == .arrayContains { arrays += 1 }
      if arrays > 1 {
        throw .invalidArgument("A maximum of 1 'ARRAY_CONTAINS' filter is allowed per disjunction.")
      }
    }
    let fields = Set(leaves.filter(\.isInequality).compactMap(\.field))
    if fields.count > limits.inequalityFields {
      throw .invalidArgument(
        "The query has ranges or inequalities on more than \(limits.inequalityFields) fields.")
    }
  }

  /// Rejects an equality on `__name__` together with a range on another field, as Cloud Firestore does. The combination
  /// is valid if `__name__` has a range as well.
  private func validateKey(_ conjuncts: [Filter]) throws(FirestoreError) {
    var hasKeyEquality = false
    for case .field(let filter) in conjuncts where filter.field.isDocumentID && filter.op == .equal {
      hasKeyEquality = true
    }
    guard hasKeyEquality else { return }
    let ranges = conjuncts.filter(\.isInequality).compactMap(\.field)
    if !ranges.isEmpty, !ranges.contains(where: \.isDocumentID) {
      throw .invalidArgument(
        "Equality on key is not allowed if there are other inequality fields and key does not appear in inequalities."
      )
    }
  }

  private func validateOrder() throws(FirestoreError) {
    let orders = structured.normalizedOrder
    if let key = orders.firstIndex(where: { $0.field.isDocumentID }), key != orders.count - 1 {
      throw .invalidArgument("order by clause cannot contain more fields after the key")
    }
    var seen: Set<FieldPath> = []
    for order in orders where !seen.insert(order.field).inserted {
      throw .invalidArgument("order by clause cannot contain duplicate fields \(order.field)")
    }
  }

  private func validate(_ cursor: Cursor?) throws(FirestoreError) {
    guard let cursor else { return }
    let orders = structured.normalizedOrder
    // A cursor may have values for implicit orders, as in the hosted product. The SDKs omit implicit orders from an
    // aggregation's query, but keep the document's name as the last cursor value. Google's emulator allows values for
    // explicit orders only.
    if cursor.values.count > orders.count {
      throw .invalidArgument("Cursor has too many values.")
    }
    for (order, value) in zip(orders, cursor.values) where order.field.isDocumentID {
      try validate(key: value)
    }
  }

  private func validateNearest(_ limits: FirestoreLimits) throws(FirestoreError) {
    guard let nearest = structured.findNearest else { return }
    if nearest.limit < 1 || nearest.limit > limits.nearestNeighbours {
      throw .invalidArgument("FindNearest requires a limit of 1 to \(limits.nearestNeighbours).")
    }
    if nearest.vector.isEmpty || nearest.vector.count > limits.vectorDimensions {
      throw .invalidArgument("FindNearest requires a vector of 1 to \(limits.vectorDimensions) dimensions.")
    }
    if nearest.field.isDocumentID {
      throw .invalidArgument("FindNearest requires a vector field, which __name__ is not.")
    }
    if let field = nearest.distanceResultField {
      for name in field.segments { try DocumentValidation.validate(fieldName: name) }
    }
  }
}
