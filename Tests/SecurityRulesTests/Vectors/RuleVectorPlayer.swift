// Plays the requests of a vector (a recorded case with its expected result) over documents in memory: decides each
// request by the rules, and applies the allowed writes.

import FirestoreModel
import JSON
import SecurityRules
import Testing

/// The database of one case.
final class RuleVectorPlayer: RuleDocumentSource {
  /// The outcome of a request.
  enum Outcome: Equatable {
    case allow
    case deny
    /// The request is malformed, so no rule decides it.
    case invalid
    /// The request fails although the rules allow it.
    case failed
  }

  /// The text of the last denial, as an emulator sends it; nil if rules did not decide.
  private(set) var denialText: String?
  private let ruleset: FirestoreRuleset
  private var documents: [ResourcePath: MapValue]
  private var afterWrites: [ResourcePath: MapValue?] = [:]
  private let time = Timestamp(seconds: 1_764_000_000, nanoseconds: 123_000_000)
  private static let database = DatabaseName(project: "demo-rules")

  init(_ ruleset: FirestoreRuleset, documents: [ResourcePath: MapValue]) {
    self.ruleset = ruleset
    self.documents = documents
  }

  func fields(of path: ResourcePath, afterWrites: Bool) throws -> MapValue? {
    if afterWrites, let state = self.afterWrites[path] { return state }
    return documents[path]
  }

  /// Plays one request.
  func play(_ request: JSONValue) throws -> Outcome {
    denialText = nil
    guard request["caller"]?.string != "owner" else {
      try apply(request)
      return .allow
    }
    let context = FirestoreRuleset.Context(
      database: "(default)", caller: try caller(request["caller"]), time: time, documents: self)
    let path = VectorDecoding.path(request["path"]?.string ?? "")
    let body = request["body"]
    switch request["kind"]?.string {
    // A collection's path with GET lists its documents.
    case "get" where !path.isDocument: return try list(request, path, context)
    case "get": return try verdict(.get([(path, documents[path])]), context)
    case "batchGet":
      let names = (body?["documents"]?.array ?? []).compactMap(\.string).map(VectorDecoding.path)
      return try verdict(.get(names.map { ($0, documents[$0]) }), context)
    case "list": return try list(request, path, context)
    case "runQuery":
      guard let query = body?["structuredQuery"] else { return .invalid }
      return try self.query(query, parent: path, context)
    case "runAggregationQuery":
      guard let query = body?["structuredAggregationQuery"]?["structuredQuery"] else { return .invalid }
      return try self.query(query, parent: path, context)
    case "create", "update", "delete", "commit": return try write(try writes(of: request), context)
    case "listCollectionIds", "batchWrite": return .deny
    default: return .allow
    }
  }

  private func verdict(
    _ operation: RuleOperation, _ context: FirestoreRuleset.Context
  ) throws -> Outcome {
    denialText = try ruleset.denialText(operation, context)
    let isAllowed = try ruleset.decide(operation, context).isAllowed
    #expect(isAllowed == (denialText == nil))
    return isAllowed ? .allow : .deny
  }

  /// The caller with these claims, and with the default claims where the vector omits them.
  private func caller(_ json: JSONValue?) throws -> RuleCaller {
    guard let object = json?.object else { return .nobody }
    var claims = object
    let subject = object["sub"]?.string ?? "u1"
    let defaults: [(String, JSONValue)] = [
      ("sub", .string(subject)), ("user_id", .string(subject)),
      ("iss", .string("https://securetoken.google.com/demo-rules")), ("aud", .string("demo-rules")),
      ("iat", .int(time.seconds)), ("auth_time", .int(time.seconds)), ("exp", .int(time.seconds + 3600)),
      ("firebase", .object(["sign_in_provider": .string("custom"), "identities": .object([:])])),
    ]
    for (key, value) in defaults where claims[key] == nil { claims[key] = value }
    guard case .map(let fields) = Self.value(of: .object(claims)) else { return .nobody }
    return RuleCaller(uid: subject, claims: fields)
  }

  private static func value(of json: JSONValue) -> Value {
    switch json {
    case .null: .null
    case .bool(let value): .boolean(value)
    case .int(let value): .integer(value)
    case .double(let value): .double(value)
    case .string(let value): .string(value)
    case .array(let values): .array(values.map(value(of:)))
    case .object(let object): .map(MapValue(object.members.map { ($0.key, value(of: $0.value)) }))
    }
  }

  // MARK: Queries

  private func list(
    _ request: JSONValue, _ path: ResourcePath, _ context: FirestoreRuleset.Context
  ) throws -> Outcome {
    let parameters = request["params"]
    if parameters?["showMissing"] != nil { return .deny }
    let orders = (parameters?["orderBy"]?.string ?? "").split(separator: ",").map { part in
      let words = part.split(separator: " ")
      return (field: String(words[0]), isAscending: words.count < 2 || words[1] != "desc")
    }
    let shape = RuleQueryShape(limit: parameters?["pageSize"]?.integer, orders: orders)
    return try verdict(
      .query(RuleQuery(parent: path.parent ?? .root, collectionID: path.id, shape: shape)), context)
  }

  private func query(
    _ query: JSONValue, parent: ResourcePath, _ context: FirestoreRuleset.Context
  ) throws -> Outcome {
    let selectors = query["from"]?.array ?? []
    guard selectors.count <= 1 else { return .invalid }
    let orders = (query["orderBy"]?.array ?? []).map { order in
      (
        field: order["field"]?["fieldPath"]?.string ?? "",
        isAscending: order["direction"]?.string != "DESCENDING"
      )
    }
    let limit = query["limit"].flatMap { $0.integer ?? $0["value"]?.integer }
    let shape = RuleQueryShape(limit: limit, offset: query["offset"]?.integer ?? 0, orders: orders)
    return try verdict(
      .query(
        RuleQuery(
          parent: parent, collectionID: selectors.first?["collectionId"]?.string,
          isGroup: selectors.first?["allDescendants"]?.bool ?? false,
          alternatives: try VectorDecoding.alternatives(query), shape: shape)), context)
  }

  // MARK: Writes

  private func writes(of request: JSONValue) throws -> [Write] {
    let body = request["body"]
    let parameters = request["params"]
    var path = VectorDecoding.path(request["path"]?.string ?? "")
    var precondition: Precondition?
    if let exists = parameters?["currentDocument.exists"]?.string { precondition = .exists(exists == "true") }
    switch request["kind"]?.string {
    case "commit", "batchWrite": return try (body?["writes"]?.array ?? []).map(VectorDecoding.write)
    case "create":
      path = path.appending(parameters?["documentId"]?.string ?? "automatic")
      precondition = .exists(false)
    default: break
    }
    guard let name = DocumentName(database: Self.database, path: path) else { return [] }
    if request["kind"]?.string == "delete" { return [Write(.delete(name), precondition: precondition)] }
    var mask: [FieldPath]?
    if let paths = parameters?["updateMask.fieldPaths"] {
      mask = try (paths.array ?? [paths]).compactMap(\.string).map { try FieldPath(parsing: $0) }
    }
    return [
      Write(
        .update(name, fields: try VectorDecoding.fields(body?["fields"])), mask: mask,
        precondition: precondition)
    ]
  }

  private func apply(_ request: JSONValue) throws {
    guard ["create", "update", "delete", "commit"].contains(request["kind"]?.string) else { return }
    for (path, fields) in states(after: try writes(of: request)) { documents[path] = fields }
  }

  private func states(after writes: [Write]) -> [ResourcePath: MapValue?] {
    var states: [ResourcePath: MapValue?] = [:]
    for write in writes {
      let path = write.document.path
      let existing = states[path] ?? documents[path]
      states[path] = .some(write.apply(to: existing, requestTime: time).fields)
    }
    return states
  }

  private func write(_ writes: [Write], _ context: FirestoreRuleset.Context) throws -> Outcome {
    let states = states(after: writes)
    afterWrites = states
    defer { afterWrites = [:] }
    let ruleWrites = writes.map(RuleWrite.init(vector:))
    func state(_ path: ResourcePath) -> (before: MapValue?, after: MapValue?) {
      (documents[path], states[path] ?? documents[path])
    }
    guard ruleset.decideWrites(ruleWrites, context, states: state).isAllowed else {
      denialText = try ruleset.denialText(
        .changes(FirestoreRuleset.changes(of: ruleWrites, states: state)), context)
      return .deny
    }
    var current = documents
    for write in writes {
      let path = write.document.path
      guard holds(write.precondition, current[path] != nil) else { return .failed }
      current[path] = write.apply(to: current[path], requestTime: time).fields
    }
    documents = current
    return .allow
  }

  private func holds(_ precondition: Precondition?, _ exists: Bool) -> Bool {
    switch precondition {
    case nil: true
    case .exists(let wanted): wanted == exists
    // Update times are not modelled, because no vector states the current update time.
    case .updateTime: false
    }
  }
}

extension RuleWrite {
  /// A write of a vector.
  init(vector write: Write) {
    let kind: Kind =
      switch write.operation {
      case .update, .transform: .set
      case .delete: .delete
      case .verify: .verify
      }
    let requiresExistence: Bool? =
      switch write.precondition {
      case nil: nil
      case .exists(let wanted): wanted
      case .updateTime: true
      }
    self.init(path: write.document.path, kind: kind, requiresExistence: requiresExistence)
  }
}
