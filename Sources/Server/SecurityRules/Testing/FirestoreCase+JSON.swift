// Reads a rule case of Cloud Firestore from its JSON form.
//
// The fields of documents are plain JSON. A value of a type that JSON does not have is an object with one member, which
// has the name of Firestore's REST interface: `timestampValue`, `bytesValue`, `referenceValue`, `geoPointValue` or
// `doubleValue`.

import JSON
package import FirestoreModel

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

extension FirestoreCase {
  /// Reads a request.
  /// - Throws: ``RuleCaseError`` for a member that is missing or malformed.
  init(_ request: RuleCase) throws(RuleCaseError) {
    let name = try request.text("method")
    guard let method = RuleMethod(rawValue: name) else {
      throw request.fault("'\(name)' is no method: get, list, create, update or delete.")
    }
    let (database, path) = Self.path(try request.text("path"))
    if method != .list, !path.segments.count.isMultiple(of: 2) || path.segments.isEmpty {
      throw request.fault("'path' must name a document.")
    }
    self.init(method: method, path: path, time: try Self.time(of: request))
    if let database = database ?? request.members["database"]?.string { self.database = database }
    if let (uid, claims) = try request.claims() {
      caller = RuleCaller(uid: uid, claims: try Self.map(claims, self.database, request))
    }
    for member in request.members["documents"]?.object?.members ?? [] {
      documents.fields[Self.path(member.key).path] = try fields(member.value, request)
    }
    before = documents.fields[path]
    if let resource = request.members["resource"] {
      before = resource.isNull ? nil : try fields(resource, request)
    }
    if let data = request.members["data"] { after = try fields(data, request) }
    if [.create, .update].contains(method), after == nil {
      throw request.fault("'data' must have the fields after the \(name).")
    }
    if method == .delete { after = nil }
    if method == .list { query = try query(request) }
  }

  private static func time(of request: RuleCase) throws(RuleCaseError) -> Timestamp {
    guard let value = request.members["time"] else { return .now }
    guard let time = value.string.flatMap(Timestamp.init(rfc3339:)) else {
      throw request.fault("'time' must be a time such as \"2030-01-31T12:00:00Z\".")
    }
    return time
  }

  private func fields(_ json: JSONValue, _ request: RuleCase) throws(RuleCaseError) -> MapValue {
    guard let object = json.object else { throw request.fault("the fields of a document must be an object.") }
    return try Self.map(object, database, request)
  }

  private static func map(
    _ object: JSONObject, _ database: String, _ request: RuleCase
  ) throws(RuleCaseError) -> MapValue {
    var entries: [MapValue.Entry] = []
    for member in object.members {
      entries.append(
        MapValue.Entry(key: member.key, value: try value(of: member.value, database, request)))
    }
    return MapValue(unsorted: entries)
  }

  private static func value(
    of json: JSONValue, _ database: String, _ request: RuleCase
  ) throws(RuleCaseError) -> Value {
    switch json {
    case .null: return .null
    case .bool(let value): return .boolean(value)
    case .int(let value): return .integer(value)
    case .double(let value): return .double(value)
    case .string(let value): return .string(value)
    case .array(let elements):
      var values: [Value] = []
      for element in elements { values.append(try value(of: element, database, request)) }
      return .array(values)
    case .object(let object):
      if object.count == 1, let member = object.members.first,
        let value = try typedValue(member, database, request)
      {
        return value
      }
      return .map(try map(object, database, request))
    }
  }

  /// A value of a type that JSON does not have; nil for a map.
  private static func typedValue(
    _ member: JSONObject.Member, _ database: String, _ request: RuleCase
  ) throws(RuleCaseError) -> Value? {
    let invalid = request.fault("the \(member.key) is malformed.")
    switch member.key {
    case "timestampValue":
      guard let time = member.value.string.flatMap(Timestamp.init(rfc3339:)) else { throw invalid }
      return .timestamp(time)
    case "doubleValue":
      guard let number = member.value.double else { throw invalid }
      return .double(number)
    case "bytesValue":
      guard let bytes = member.value.string.flatMap({ Base64.decode($0.utf8, .standard) }) else {
        throw invalid
      }
      return .bytes(bytes)
    case "geoPointValue":
      guard let latitude = member.value["latitude"]?.double,
        let longitude = member.value["longitude"]?.double
      else { throw invalid }
      return .geoPoint(GeoPoint(latitude: latitude, longitude: longitude))
    case "referenceValue":
      guard let text = member.value.string else { throw invalid }
      let name = DatabaseName(project: "project", database: database)
      guard let document = DocumentName(database: name, path: path(text).path) else { throw invalid }
      return .reference(document)
    default: return nil
    }
  }

  // MARK: Queries

  private static let operators: [String: FieldFilter.Operator] = [
    "==": .equal, "!=": .notEqual, "<": .lessThan, "<=": .lessThanOrEqual, ">": .greaterThan,
    ">=": .greaterThanOrEqual, "in": .isIn, "not-in": .notIn, "array-contains": .arrayContains,
    "array-contains-any": .arrayContainsAny,
  ]

  private func query(_ request: RuleCase) throws(RuleCaseError) -> RuleQuery? {
    guard let json = request.members["query"], !json.isNull else { return nil }
    guard let object = json.object else { throw request.fault("'query' must be an object.") }
    let collection = path.segments.count.isMultiple(of: 2) ? path.parent ?? .root : path
    var query = RuleQuery(parent: collection.parent ?? .root, collectionID: collection.segments.last)
    for member in object.members {
      switch member.key {
      case "where": query.alternatives = try alternatives(member.value, request)
      case "limit": query.shape.limit = member.value.int
      case "offset": query.shape.offset = member.value.int ?? 0
      case "orderBy": query.shape.orders = try orders(member.value, request)
      case "allDescendants": query.isGroup = member.value == .bool(true)
      default: throw request.fault("'\(member.key)' is no member of 'query'.")
      }
    }
    return query
  }

  private func orders(
    _ json: JSONValue, _ request: RuleCase
  ) throws(RuleCaseError) -> [(field: String, isAscending: Bool)] {
    var orders: [(field: String, isAscending: Bool)] = []
    for element in json.array ?? [json] {
      guard let words = element.string?.split(separator: " "), let field = words.first else {
        throw request.fault("'orderBy' must have strings such as \"time desc\".")
      }
      orders.append((String(field), words.count < 2 || words[1] != "desc"))
    }
    return orders
  }

  private func alternatives(
    _ json: JSONValue, _ request: RuleCase
  ) throws(RuleCaseError) -> [[FilterTerm]] {
    let form = request.fault("'where' must have conditions such as [\"owner\", \"==\", \"alice\"].")
    guard let conditions = json.array else { throw form }
    var filters: [Filter] = []
    for condition in conditions {
      guard let parts = condition.array, parts.count == 3, let name = parts[0].string,
        let comparison = parts[1].string.flatMap({ Self.operators[$0] }),
        let field = try? FieldPath(parsing: name)
      else { throw form }
      var operand = try Self.value(of: parts[2], database, request)
      if field.isDocumentID, case .string(let text) = operand,
        let document = DocumentName(
          database: DatabaseName(project: "project", database: database), path: Self.path(text).path)
      {
        operand = .reference(document)
      }
      switch (comparison, operand) {
      case (.equal, .null): filters.append(.unary(UnaryFilter(field, .isNull)))
      case (.notEqual, .null): filters.append(.unary(UnaryFilter(field, .isNotNull)))
      default: filters.append(.field(FieldFilter(field, comparison, operand)))
      }
    }
    guard let alternatives = Filter.composite(.and, filters).disjunctions() else {
      throw request.fault("the query has too many alternatives.")
    }
    return alternatives
  }
}

extension Timestamp {
  /// The current time of the machine's clock, truncated to microseconds.
  package static var now: Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(seconds: Int64(time.tv_sec), nanoseconds: Int32(time.tv_nsec / 1_000) * 1_000)
  }
}
