// Converts an app's filters to filters of the model, and rejects filters that the server would reject.

import FirestoreModel

struct FilterReader {
  let firestore: Firestore
  let query: ModelQuery

  func read(_ filter: Filter) -> ModelFilter? {
    switch filter.node {
    case .field(let path, let op, let value): return field(path, op, value)
    case .all(let filters): return composite(.and, filters)
    case .any(let filters): return composite(.or, filters)
    }
  }

  private func composite(_ op: ModelFilter.CompositeOperator, _ filters: [Filter]) -> ModelFilter? {
    let parts = filters.compactMap { read($0) }
    if parts.count <= 1 { return parts.first }
    return .composite(op, parts)
  }

  private func field(_ path: ModelFieldPath, _ op: FieldFilter.Operator, _ raw: Any) -> ModelFilter {
    let database = firestore.databaseName
    if path.isDocumentID { return .field(FieldFilter(path, op, documentID(op, raw))) }
    let value = UserDataReader.argument(raw, of: "whereField()", in: database)
    switch (op, value) {
    case (.isIn, .array(let values)), (.notIn, .array(let values)), (.arrayContainsAny, .array(let values)):
      if values.isEmpty {
        failInvalidArgument("Invalid Query. A non-empty array is required for '\(op)' filters.")
      }
    case (.equal, .null): return .unary(UnaryFilter(path, .isNull))
    case (.notEqual, .null): return .unary(UnaryFilter(path, .isNotNull))
    case (.equal, let value) where value.isNaN: return .unary(UnaryFilter(path, .isNaN))
    case (.notEqual, let value) where value.isNaN: return .unary(UnaryFilter(path, .isNotNaN))
    default: break
    }
    return .field(FieldFilter(path, op, value))
  }

  private func documentID(_ op: FieldFilter.Operator, _ raw: Any) -> Value {
    switch op {
    case .arrayContains, .arrayContainsAny:
      failInvalidArgument("Invalid query. You can't perform array queries on FieldPath.documentID().")
    case .isIn, .notIn:
      guard let values = UserDataReader.unwrapped(raw) as? [Any], !values.isEmpty else {
        failInvalidArgument("Invalid Query. A non-empty array is required for '\(op)' filters.")
      }
      return .array(values.map { reference($0) })
    default: return reference(raw)
    }
  }

  /// The reference of the document to which an ID, a path or a reference refers.
  func reference(_ raw: Any) -> Value {
    switch UserDataReader.unwrapped(raw) {
    case let reference as DocumentReference: return .reference(reference.name)
    case let text as String:
      if text.isEmpty {
        failInvalidArgument(
          "Invalid query. When querying by document ID you must provide a valid document ID, not ''.")
      }
      let selector = query.structured.from.first
      var path = query.parent.path
      if selector?.allDescendants == true {
        path = path.appending(ResourcePath(splitting: text))
      } else {
        if text.utf8.contains(UInt8(ascii: "/")) {
          failInvalidArgument("Invalid query. A document ID must not contain a '/', but '\(text)' does.")
        }
        path = path.appending(selector?.collectionID ?? "").appending(text)
      }
      guard let name = DocumentName(database: firestore.databaseName, path: path) else {
        failInvalidArgument("Invalid query. '\(text)' is not the path of a document.")
      }
      return .reference(name)
    case let other:
      failInvalidArgument(
        "Invalid query. A document ID must be a String or a DocumentReference, not \(type(of: other)).")
    }
  }

  /// Stops the program if the filters cannot be combined.
  static func check(_ filter: ModelFilter?) {
    var operators: [FieldFilter.Operator] = []
    func collect(_ filter: ModelFilter) {
      switch filter {
      case .composite(_, let parts): parts.forEach(collect)
      case .field(let field): operators.append(field.op)
      case .unary(let unary):
        if unary.op == .isNotNull || unary.op == .isNotNaN { operators.append(.notEqual) }
      }
    }
    if let filter { collect(filter) }
    let notEquals = operators.count { $0 == .notEqual }
    let notIns = operators.count { $0 == .notIn }
    if notEquals > 1 { failInvalidArgument("Invalid Query. You cannot use more than one 'notEqual' filter.") }
    if notIns > 1 { failInvalidArgument("Invalid Query. You cannot use more than one 'notIn' filter.") }
    if notEquals > 0 && notIns > 0 {
      failInvalidArgument("Invalid Query. You cannot use 'notEqual' filters with 'notIn' filters.")
    }
    if notIns > 0 && (operators.contains(.isIn) || operators.contains(.arrayContainsAny)) {
      failInvalidArgument(
        "Invalid Query. You cannot use 'notIn' filters with 'in' or 'arrayContainsAny' filters.")
    }
  }
}
