// The cursors of a query: the start and the end of its result.

import FirestoreModel
import Foundation

extension Query {
  /// Starts at a document, which must have the fields of the query's order.
  @discardableResult
  public func start(atDocument document: DocumentSnapshot) -> Query { bounded(start: document, before: true) }

  /// Starts at these values of the fields by which the query is ordered.
  @discardableResult
  public func start(at fieldValues: [Any]) -> Query { bounded(start: fieldValues, before: true) }

  /// Starts after a document.
  @discardableResult
  public func start(afterDocument document: DocumentSnapshot) -> Query {
    bounded(start: document, before: false)
  }

  /// Starts after these values of the fields by which the query is ordered.
  @discardableResult
  public func start(after fieldValues: [Any]) -> Query { bounded(start: fieldValues, before: false) }

  /// Ends before a document.
  @discardableResult
  public func end(beforeDocument document: DocumentSnapshot) -> Query { bounded(end: document, before: true) }

  /// Ends before these values of the fields by which the query is ordered.
  @discardableResult
  public func end(before fieldValues: [Any]) -> Query { bounded(end: fieldValues, before: true) }

  /// Ends at a document.
  @discardableResult
  public func end(atDocument document: DocumentSnapshot) -> Query { bounded(end: document, before: false) }

  /// Ends at these values of the fields by which the query is ordered.
  @discardableResult
  public func end(at fieldValues: [Any]) -> Query { bounded(end: fieldValues, before: false) }

  private func bounded(start values: [Any], before: Bool) -> Query {
    modified { $0.startAt = Cursor(cursor(values), before: before) }
  }

  private func bounded(end values: [Any], before: Bool) -> Query {
    modified { $0.endAt = Cursor(cursor(values), before: before) }
  }

  private func bounded(start document: DocumentSnapshot, before: Bool) -> Query {
    let (orders, values) = cursor(document)
    return modified {
      $0.orderBy = orders
      $0.startAt = Cursor(values, before: before)
    }
  }

  private func bounded(end document: DocumentSnapshot, before: Bool) -> Query {
    let (orders, values) = cursor(document)
    return modified {
      $0.orderBy = orders
      $0.endAt = Cursor(values, before: before)
    }
  }

  private func cursor(_ raw: [Any]) -> [Value] {
    let orders = model.structured.orderBy
    if raw.count > orders.count {
      failInvalidArgument(
        "Invalid query. You are trying to start or end a query using more values than were specified in"
          + " the order by.")
    }
    let reader = FilterReader(firestore: firestore, query: model)
    return zip(raw, orders).map { value, order in
      order.field.isDocumentID
        ? reader.reference(value)
        : UserDataReader.argument(value, of: "A cursor", in: firestore.databaseName)
    }
  }

  /// The complete order with its implicit fields, and the document's values of these fields.
  private func cursor(_ snapshot: DocumentSnapshot) -> ([StructuredQuery.Order], [Value]) {
    guard let document = snapshot.document else {
      failInvalidArgument(
        "Invalid query. You are trying to start or end a query using a document that doesn't exist.")
    }
    let orders = model.normalized.structured.orderBy
    let values = orders.map { order in
      guard let value = document.value(at: order.field) else {
        failInvalidArgument(
          "Invalid query. You are trying to start or end a query using a document for which the field"
            + " '\(order.field)' (used as the order by) does not exist.")
      }
      if case .pendingServerTimestamp = value {
        failInvalidArgument(
          "Invalid query. You are trying to start or end a query using a document for which the field"
            + " '\(order.field)' is an uncommitted server timestamp.")
      }
      return value
    }
    return (orders, values)
  }
}
