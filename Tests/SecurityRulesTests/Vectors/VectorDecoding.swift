// Decodes documents, writes and queries in the vectors (recorded cases), which are proto3 JSON, to the model.

import FirestoreModel
import Foundation
import JSON

/// Decodes parts of requests.
enum VectorDecoding {
  struct Malformed: Error {
    var text: String
  }

  /// Decodes a document's fields.
  static func fields(_ json: JSONValue?) throws -> MapValue {
    MapValue(try (json?.object?.members ?? []).map { ($0.key, try value($0.value)) })
  }

  /// Decodes a value.
  static func value(_ json: JSONValue) throws -> Value {
    guard let member = json.object?.members.first else { throw Malformed(text: "\(json)") }
    switch (member.key, member.value) {
    case ("nullValue", _): return .null
    case ("booleanValue", .bool(let value)): return .boolean(value)
    case ("integerValue", let value): return .integer(value.integer ?? 0)
    case ("doubleValue", .double(let value)): return .double(value)
    case ("doubleValue", .int(let value)): return .double(Double(value))
    case ("doubleValue", .string(let text)):
      return .double(
        text == "NaN"
          ? .nan : text == "Infinity" ? .infinity : text == "-Infinity" ? -.infinity : Double(text) ?? 0)
    case ("timestampValue", .string(let text)):
      guard let time = Timestamp(rfc3339: text) else { throw Malformed(text: text) }
      return .timestamp(time.truncatedToMicroseconds)
    case ("stringValue", .string(let text)): return .string(text)
    case ("bytesValue", .string(let text)): return .bytes(Array(Data(base64Encoded: text) ?? Data()))
    case ("referenceValue", .string(let text)): return .reference(try DocumentName(parsing: text))
    case ("geoPointValue", let point):
      return .geoPoint(
        GeoPoint(latitude: number(point["latitude"]), longitude: number(point["longitude"])))
    case ("arrayValue", let array): return .array(try (array["values"]?.array ?? []).map(value))
    case ("mapValue", let map):
      let fields = try fields(map["fields"])
      if case .string("__vector__") = fields["__type__"], case .array(let items) = fields["value"] {
        return .vector(
          items.map {
            if case .double(let number) = $0 {
              number
            } else if case .integer(let number) = $0 {
              Double(number)
            } else {
              0
            }
          })
      }
      return .map(fields)
    default: throw Malformed(text: "\(json)")
    }
  }

  private static func number(_ json: JSONValue?) -> Double {
    switch json {
    case .double(let value): value
    case .int(let value): Double(value)
    default: 0
    }
  }

  /// The path below the database's documents, from a full name or a path.
  static func path(_ name: String) -> ResourcePath {
    let marker = "/documents/"
    guard let range = name.range(of: marker) else { return ResourcePath(splitting: name) }
    return ResourcePath(splitting: String(name[range.upperBound...]))
  }

  static func precondition(_ json: JSONValue?) throws -> Precondition? {
    guard let json else { return nil }
    if let exists = json["exists"]?.bool { return .exists(exists) }
    guard let text = json["updateTime"]?.string, let time = Timestamp(rfc3339: text) else {
      throw Malformed(text: "\(json)")
    }
    return .updateTime(time)
  }

  /// Decodes a write of a commit.
  static func write(_ json: JSONValue) throws -> Write {
    let mask = try json["updateMask"].map { mask in
      try (mask["fieldPaths"]?.array ?? []).compactMap(\.string).map { try FieldPath(parsing: $0) }
    }
    let transforms = try (json["updateTransforms"]?.array ?? []).map(transform)
    let precondition = try precondition(json["currentDocument"])
    let operation: Write.Operation
    if let update = json["update"], let name = update["name"]?.string {
      operation = .update(try DocumentName(parsing: name), fields: try fields(update["fields"]))
    } else if let name = json["delete"]?.string {
      operation = .delete(try DocumentName(parsing: name))
    } else if let name = json["verify"]?.string {
      operation = .verify(try DocumentName(parsing: name))
    } else if let transformation = json["transform"], let name = transformation["document"]?.string {
      operation = .transform(
        try DocumentName(parsing: name), try (transformation["fieldTransforms"]?.array ?? []).map(transform))
    } else {
      throw Malformed(text: "\(json)")
    }
    return Write(operation, mask: mask, transforms: transforms, precondition: precondition)
  }

  private static func transform(_ json: JSONValue) throws -> FieldTransform {
    let field = try FieldPath(parsing: json["fieldPath"]?.string ?? "")
    if json["setToServerValue"] != nil { return FieldTransform(field, .serverTimestamp) }
    if let operand = json["increment"] { return FieldTransform(field, .increment(try value(operand))) }
    if let operand = json["maximum"] { return FieldTransform(field, .maximum(try value(operand))) }
    if let operand = json["minimum"] { return FieldTransform(field, .minimum(try value(operand))) }
    let elements = { (json: JSONValue) in try (json["values"]?.array ?? []).map(value) }
    if let operand = json["appendMissingElements"] {
      return FieldTransform(field, .appendMissing(try elements(operand)))
    }
    if let operand = json["removeAllFromArray"] {
      return FieldTransform(field, .removeAll(try elements(operand)))
    }
    throw Malformed(text: "\(json)")
  }

  /// Decodes a query's filter, and returns its alternatives (disjuncts).
  static func alternatives(_ query: JSONValue) throws -> [[FilterTerm]] {
    guard let filter = try query["where"].map(filter) else { return [[]] }
    guard let alternatives = filter.disjunctions(limit: 1000) else { throw Malformed(text: "too many") }
    return alternatives
  }

  private static func filter(_ json: JSONValue) throws -> Filter {
    if let composite = json["compositeFilter"] {
      let parts = try (composite["filters"]?.array ?? []).map(filter)
      return .composite(composite["op"]?.string == "OR" ? .or : .and, parts)
    }
    if let unary = json["unaryFilter"] {
      let field = try FieldPath(parsing: unary["field"]?["fieldPath"]?.string ?? "")
      let operators: [String: UnaryFilter.Operator] = [
        "IS_NAN": .isNaN, "IS_NULL": .isNull, "IS_NOT_NAN": .isNotNaN, "IS_NOT_NULL": .isNotNull,
      ]
      guard let op = operators[unary["op"]?.string ?? ""] else { throw Malformed(text: "\(json)") }
      return .unary(UnaryFilter(field, op))
    }
    let operators: [String: FieldFilter.Operator] = [
      "EQUAL": .equal, "NOT_EQUAL": .notEqual, "LESS_THAN": .lessThan, "LESS_THAN_OR_EQUAL": .lessThanOrEqual,
      "GREATER_THAN": .greaterThan, "GREATER_THAN_OR_EQUAL": .greaterThanOrEqual,
      "ARRAY_CONTAINS": .arrayContains, "IN": .isIn, "ARRAY_CONTAINS_ANY": .arrayContainsAny,
      "NOT_IN": .notIn,
    ]
    guard let fieldFilter = json["fieldFilter"], let op = operators[fieldFilter["op"]?.string ?? ""],
      let operand = fieldFilter["value"]
    else { throw Malformed(text: "\(json)") }
    return .field(
      FieldFilter(
        try FieldPath(parsing: fieldFilter["field"]?["fieldPath"]?.string ?? ""), op, try value(operand)))
  }
}
