// Completes the order of a query's results with its implicit parts.
//
// Invariant: a normalized order ends with `__name__`, so no two documents tie.

extension StructuredQuery {
  /// The explicit order, completed by the fields of inequalities that it does not contain, in path order, and by
  /// `__name__`. The added fields have the direction of the last explicit field.
  public var normalizedOrder: [Order] {
    var orders = orderBy
    let direction = orderBy.last?.direction ?? .ascending
    let implicit = Set((filter?.leaves ?? []).filter(\.isInequality).compactMap(\.field))
    for field in implicit.sorted()
    where !field.isDocumentID && !orders.contains(where: { $0.field == field }) {
      orders.append(Order(field, direction))
    }
    if !orders.contains(where: { $0.field.isDocumentID }) { orders.append(Order(.documentID, direction)) }
    return orders
  }

  /// The query with the aggregated fields added to its order. They are sorted by path, precede `__name__`, and have the
  /// direction of the last explicit field.
  ///
  /// The order decides which documents an aggregation with a limit includes. Google's system tests of sums with limits
  /// require this order; the order among several fields is not documented. The query is returned unchanged if its
  /// explicit order contains `__name__`, if it has a nearest-neighbour search, or if it has cursor values, which belong
  /// to the explicit order.
  public func ordered(byAggregated fields: [FieldPath]) -> StructuredQuery {
    guard startAt?.values.isEmpty ?? true, endAt?.values.isEmpty ?? true, findNearest == nil,
      !orderBy.contains(where: { $0.field.isDocumentID })
    else { return self }
    var orders = normalizedOrder
    guard let name = orders.popLast() else { return self }
    for field in Set(fields).sorted() where !orders.contains(where: { $0.field == field }) {
      orders.append(Order(field, name.direction))
    }
    var result = self
    result.orderBy = orders
    return result
  }

  /// The query with all directions reversed and the cursors exchanged. For a limit to the last results, clients send
  /// the reversed query and reverse its results.
  public var reversed: StructuredQuery {
    var result = self
    result.orderBy = normalizedOrder.map { Order($0.field, $0.direction.reversed) }
    result.startAt = endAt.map { Cursor($0.values, before: !$0.before) }
    result.endAt = startAt.map { Cursor($0.values, before: !$0.before) }
    return result
  }
}

extension [StructuredQuery.Order] {
  /// Parses the order of a ListDocuments request, such as `priority desc, __name__`.
  ///
  /// - Throws: INVALID_ARGUMENT if it is malformed.
  public init(parsing text: String) throws(FirestoreError) {
    self.init()
    for clause in OrderClause.split(text) {
      let words = clause.split(separator: " ", omittingEmptySubsequences: true)
      let direction: StructuredQuery.Direction
      switch words.count == 2 ? words[1].lowercased() : "asc" {
      case "asc": direction = .ascending
      case "desc": direction = .descending
      default: throw OrderClause.invalid(text)
      }
      guard words.count == 1 || words.count == 2 else { throw OrderClause.invalid(text) }
      do throws(FirestoreError) {
        append(StructuredQuery.Order(try FieldPath(parsing: String(words[0])), direction))
      } catch {
        throw OrderClause.invalid(text)
      }
    }
  }
}

/// Parses the clauses of an order's text form.
private enum OrderClause {
  static func invalid(_ text: String) -> FirestoreError {
    .invalidArgument("Invalid order by clause \"\(text.echoed)\".")
  }

  /// Splits at commas outside of quotes.
  static func split(_ text: String) -> [Substring] {
    var quoted = false
    var escaped = false
    return text.split(omittingEmptySubsequences: false) { character in
      if escaped {
        escaped = false
      } else if character == "\\" {
        escaped = quoted
      } else if character == "`" {
        quoted.toggle()
      }
      return character == "," && !quoted
    }
  }
}
