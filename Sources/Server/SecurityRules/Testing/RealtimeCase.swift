// A case of the Realtime Database: a request, and the tree at the time of the request.

import Access
import FirestoreModel
import JSON
import RealtimeModel

/// The tree before and after a request, in memory.
struct CaseTree: TreeView {
  let before: Node
  let after: Node
  let now: Int64

  func content(at path: Path, _ state: TreeState) -> Node.Content { node(at: path, state).content }

  func priority(at path: Path, _ state: TreeState) -> Priority? { node(at: path, state).priority }

  func childKeys(at path: Path, after: ChildKey?, limit: Int, _ state: TreeState) -> [ChildKey] {
    var keys: [ChildKey] = []
    node(at: path, state).forEachChild(from: after) { key, _ in
      if key != after { keys.append(key) }
      return keys.count < limit
    }
    return keys
  }

  private func node(at path: Path, _ state: TreeState) -> Node {
    (state == .before ? before : after).descendant(path)
  }
}

/// One request to the Realtime Database, decided without a server.
struct RealtimeCase {
  let operation: RealtimeAccess.Operation
  let principal: Principal
  let tree: CaseTree

  /// Reads a request.
  /// - Throws: ``RuleCaseError`` for a member that is missing or malformed.
  init(_ request: RuleCase) throws(RuleCaseError) {
    let now = try Self.milliseconds(of: request)
    let path = try Self.path(try request.text("path"), request)
    let before = try Self.node(request.members["tree"], request)
    principal = try request.claims().map { Principal.user($0.uid, claims: Claims($0.claims)) } ?? .nobody
    var changes: [(Path, Node)] = []
    switch try request.text("method") {
    case "read": operation = .read(path, try Self.query(request))
    case "write":
      guard let value = request.members["value"] else {
        throw request.fault("'value' must be the new value.")
      }
      changes = [(path, try Self.node(value, request))]
      operation = .write(path)
    case "delete":
      changes = [(path, .empty)]
      operation = .write(path)
    case "update":
      guard let updates = request.members["updates"]?.object, !updates.isEmpty else {
        throw request.fault("'updates' must have the new values by path.")
      }
      for member in updates.members {
        let child = try Self.path(member.key, request)
        changes.append((Path(path.keys + child.keys), try Self.node(member.value, request)))
      }
      operation = .merge(changes.map(\.0))
    case let name: throw request.fault("'\(name)' is no method: read, write, update or delete.")
    }
    let resolved = changes.map { path, node in
      (path, node.resolved(existing: before.descendant(path), timestamp: now))
    }
    tree = CaseTree(before: before, after: before.merging(resolved), now: now)
  }

  /// Decides the request.
  func decide(by ruleset: RealtimeRuleset) -> TestedRules.Outcome {
    let policy = RealtimeRulesPolicy(ruleset)
    if policy.allowsEverything(principal) { return TestedRules.Outcome(verdict: .allow, reason: nil) }
    // Reading a tree in memory never fails.
    guard let decision = try? policy.decide(principal, operation, view: tree) else {
      return TestedRules.Outcome(verdict: .deny, reason: "the decision failed")
    }
    return TestedRules.Outcome(
      verdict: decision.denial == nil ? .allow : .deny, reason: decision.denial?.reason)
  }

  // MARK: Members

  private static func milliseconds(of request: RuleCase) throws(RuleCaseError) -> Int64 {
    guard let value = request.members["time"] else { return Timestamp.now.microseconds / 1_000 }
    guard let time = value.string.flatMap(Timestamp.init(rfc3339:)) else {
      throw request.fault("'time' must be a time such as \"2030-01-31T12:00:00Z\".")
    }
    return time.microseconds / 1_000
  }

  private static func path(_ text: String, _ request: RuleCase) throws(RuleCaseError) -> Path {
    do throws(RealtimeError) { return try Path(validating: text, allowingPriority: true) } catch {
      throw request.fault("'\(text)' is no path: \(error.message)")
    }
  }

  private static func node(_ json: JSONValue?, _ request: RuleCase) throws(RuleCaseError) -> Node {
    guard let json else { return .empty }
    let result: Result<Node, JSONError> = json.json().withUnsafeBytes { raw in
      do throws(JSONError) {
        var reader = try JSONReader(unsafeBytes: raw)
        return .success(try reader.readNode(.write))
      } catch {
        return .failure(error)
      }
    }
    switch result {
    case .success(let node): return node
    case .failure(let error): throw request.fault("a value cannot be stored: \(error)")
    }
  }

  private static func query(_ request: RuleCase) throws(RuleCaseError) -> QuerySpec {
    var query = QuerySpec()
    guard let json = request.members["query"], !json.isNull else { return query }
    guard let object = json.object else { throw request.fault("'query' must be an object.") }
    for member in object.members {
      let invalid = request.fault("'\(member.key)' of the query is malformed.")
      switch member.key {
      case "orderBy":
        switch member.value.string {
        case "$key"?: query.ordering = .key
        case "$value"?: query.ordering = .value
        case "$priority"?: query.namesPriority = true
        case let name?: query.ordering = .child(try path(name, request))
        case nil: throw invalid
        }
      case "startAt": query.start = QuerySpec.Bound(try leaf(member.value, request))
      case "endAt": query.end = QuerySpec.Bound(try leaf(member.value, request))
      case "startAfter": query.start = .after(try leaf(member.value, request))
      case "endBefore": query.end = .before(try leaf(member.value, request))
      case "equalTo":
        query.start = QuerySpec.Bound(try leaf(member.value, request))
        query.end = query.start
      case "limitToFirst", "limitToLast":
        guard let count = member.value.int, (1...Int64(Int32.max)).contains(count) else { throw invalid }
        query.limit = member.key == "limitToFirst" ? .first(Int(count)) : .last(Int(count))
      default: throw request.fault("'\(member.key)' is no member of 'query'.")
      }
    }
    return query
  }

  private static func leaf(_ json: JSONValue, _ request: RuleCase) throws(RuleCaseError) -> LeafValue? {
    try node(json, request).leafValue
  }
}
