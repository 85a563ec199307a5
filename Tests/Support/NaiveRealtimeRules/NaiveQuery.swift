// A query of the naive evaluator of rules, and its conversions to the forms that the server accepts.

package import JSON
package import RealtimeModel

/// A random query.
package struct NaiveQuery: Sendable {
  /// `$key`, `$value`, `$priority` or the name of a child; nil for the default query.
  package var order: String?
  package var start: JSONValue?
  package var end: JSONValue?
  package var equal: JSONValue?
  package var first: Int?
  package var last: Int?

  /// Creates a query without an order, bounds or a limit.
  package init() {}

  /// The members of `query` in rules.
  var members: [String: NaiveValue] {
    func scalar(_ json: JSONValue?) -> NaiveValue {
      json.flatMap(PlainTree.Scalar.init).map { .scalar($0) } ?? .null
    }
    func count(_ count: Int?) -> NaiveValue { count.map { .number(Double($0)) } ?? .null }
    // A query with bounds but without an order is ordered by priority.
    let isUnordered = order == nil && start == nil && end == nil && equal == nil
    let child = order.flatMap { $0.hasPrefix("$") ? nil : $0 }
    return [
      "orderByKey": .bool(isUnordered || order == "$key"), "orderByValue": .bool(order == "$value"),
      "orderByPriority": .bool(order == "$priority" || order == nil && !isUnordered),
      "orderByChild": child.map { .string(Units($0.utf16)) } ?? .null, "startAt": scalar(start),
      "endAt": scalar(end), "equalTo": scalar(equal), "limitToFirst": count(first),
      "limitToLast": count(last),
    ]
  }

  /// The fields of the query in the WebSocket protocol.
  package var fields: JSONObject {
    var fields = JSONObject()
    switch order {
    case nil: break
    case let order?: fields["i"] = .string(order.hasPrefix("$") ? "." + order.dropFirst() : order)
    }
    if let start = equal ?? start { fields["sp"] = start }
    if let end = equal ?? end { fields["ep"] = end }
    if let count = first ?? last {
      fields["l"] = .int(Int64(count))
      fields["vf"] = .string(first == nil ? "r" : "l")
    }
    return fields
  }

  /// The query for the engine.
  package var spec: QuerySpec {
    get throws {
      var fields: [(name: String, value: LeafValue?)] = []
      for member in self.fields.members {
        let leaf: LeafValue? =
          switch member.value {
          case .bool(let value): .bool(value)
          case .int(let value): .int(value)
          case .double(let value): .double(value)
          case .string(let text): .string(text)
          case .null, .array, .object: nil
          }
        fields.append((member.key, leaf))
      }
      return try QuerySpec(wireFields: fields)
    }
  }

  /// The parameters of a REST request, without percent-encoding.
  package var parameters: [(name: String, value: String)] {
    guard let order else { return [] }
    func text(_ json: JSONValue) -> String { String(decoding: json.json(), as: UTF8.self) }
    var parameters = [(name: "orderBy", value: text(.string(order)))]
    if let start { parameters.append(("startAt", text(start))) }
    if let end { parameters.append(("endAt", text(end))) }
    if let equal { parameters.append(("equalTo", text(equal))) }
    if let first { parameters.append(("limitToFirst", "\(first)")) }
    if let last { parameters.append(("limitToLast", "\(last)")) }
    return parameters
  }
}
