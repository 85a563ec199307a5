// The shared vectors of Realtime Database rules, and an in-process player for them. Vectors are cases with expected
// results in JSON files of the folder that the environment variable HEARTH_CONFORMANCE names. The player lets the
// policy decide over a tree in memory. RealtimeEndpointsTests play the cases that need an endpoint, such as settings,
// tags and revocation.

import Access
import Foundation
import JSON
import RealtimeModel
import SecurityRules

/// The verdict of a case.
enum Verdict: String {
  case allow
  case deny
  case invalidRules = "invalid-rules"
}

/// Plays the vectors of one database.
struct RealtimeVectors {
  static let folder = ProcessInfo.processInfo.environment["HEARTH_CONFORMANCE"]

  /// The cases of a category.
  static func cases(_ category: String) throws -> [JSONObject] {
    let url = URL(fileURLWithPath: folder ?? "").appendingPathComponent("realtime-rules/\(category).json")
    return try (JSONValue(json: Array(Data(contentsOf: url)))["cases"]?.array ?? []).compactMap(\.object)
  }

  private let now: Int64 = 1_800_000_000_000

  // MARK: Values

  func node(_ json: JSONValue?) throws -> Node {
    try Node(json: (json ?? .null).json())
  }

  /// The principal of a case: nobody, the owner, or a user with the claims in the case and default values of other required
  /// claims; nil for a credential that only an endpoint verifies.
  func principal(_ caller: JSONValue?) -> Principal? {
    switch caller {
    case nil, .null?: return .nobody
    case .string("owner")?: return .administrator
    case .object(var claims)? where claims["exp"] == nil && claims["sub"]?.string != "":
      let id = claims["sub"]?.string ?? "u1"
      let seconds = now / 1000
      let standard: [(String, JSONValue)] = [
        ("sub", .string(id)), ("user_id", .string(id)), ("aud", .string("demo-rules")),
        ("iss", .string("https://securetoken.google.com/demo-rules")), ("iat", .int(seconds)),
        ("auth_time", .int(seconds)), ("exp", .int(seconds + 3600)),
        (
          "firebase",
          .object(["sign_in_provider": .string("password"), "identities": .object(JSONObject())])
        ),
      ]
      for (name, value) in standard where claims[name] == nil { claims[name] = value }
      return Principal(.user(User(claims)))
    default: return nil
    }
  }

  private func policy(_ rules: String) -> RealtimeRulesPolicy? {
    (try? RealtimeRuleset(Array(rules.utf8))).map(RealtimeRulesPolicy.init)
  }

  private func isAllowed(
    _ policy: RealtimeRulesPolicy, _ principal: Principal, _ operation: RealtimeAccess.Operation,
    _ before: Node,
    _ after: Node? = nil
  ) throws -> Bool {
    let pinned = PolicySlot<RealtimeAccess>(policy).current
    let view = NodeTreeView(before: before, after: after, now: now)
    return try pinned.decide(principal, operation) { view }.denial == nil
  }

  // MARK: Expressions

  /// The result of an expression case: true, false, error or invalid.
  func result(of item: JSONObject) throws -> String {
    let expression = item["expression"]?.string ?? ""
    let ruleKind = item["in"]?.string ?? "read"
    func isGranted(_ text: String, _ key: ChildKey) throws -> Bool? {
      var location: JSONObject = [".\(ruleKind)": .string(text)]
      if ruleKind == "validate" { location[".write"] = .bool(true) }
      let rules = JSONValue.object(["rules": .object([key.text: .object(["$k": .object(location)])])])
      guard let policy = policy(String(decoding: rules.json(), as: UTF8.self)) else { return nil }
      let here = try node(item["here"])
      let before = try node(item["data"]).setting("t/x", to: here).setting("n/x", to: here)
      let path = Path(keys: [key, "x"])
      guard let principal = principal(item["caller"]) else { return nil }
      guard ruleKind != "read" else { return try isAllowed(policy, principal, .read(path, .default), before) }
      let after = before.setting(path, to: try node(item["body"] ?? .int(1)))
      return try isAllowed(policy, principal, .write(path), before, after)
    }
    guard let granted = try isGranted(expression, "t") else { return "invalid" }
    guard let negated = try isGranted("!(\(expression))", "n") else { return "invalid" }
    return granted ? (negated ? "contradiction" : "true") : (negated ? "false" : "error")
  }

  // MARK: Requests

  /// The verdict of a request case; nil for a case that needs an endpoint.
  func verdict(of item: JSONObject) throws -> Verdict? {
    guard item["steps"] == nil, let rules = item["rules"]?.string else { return nil }
    guard let policy = policy(rules) else { return .invalidRules }
    guard let operation = item["operation"]?.object, let kind = operation["kind"]?.string else {
      return .allow
    }
    guard operation["then"] == nil, operation["text"] == nil, operation["headers"] == nil,
      operation["hash"] == nil,
      let principal = principal(item["caller"]), let text = operation["path"]?.string,
      !text.hasPrefix(".settings"), let path = try? Path(validating: text, allowingPriority: true)
    else { return nil }
    let before = try node(item["data"])
    switch kind {
    case "get", "stream", "ws-listen", "ws-get":
      guard let query = try query(operation) else { return nil }
      let operation: RealtimeAccess.Operation =
        kind.hasSuffix("get") ? .read(path, query) : .listen(path, query)
      return try isAllowed(policy, principal, operation, before) ? .allow : .deny
    case "put", "ws-put", "delete", "post", "ws-disconnect-put":
      guard operation["params"]?.object?["auth_variable_override"] == nil else { return nil }
      let target = kind == "post" ? path.child("-Nabcdefghijklmnopqr") : path
      return try write([(target, kind == "delete" ? nil : operation["body"])], policy, principal, before)
    case "patch", "ws-merge", "ws-disconnect-merge":
      guard let body = operation["body"]?.object else { return nil }
      var changes: [(Path, JSONValue?)] = []
      for (name, value) in body.pairs {
        guard let relative = try? Path(validating: name, allowingPriority: true) else { return nil }
        changes.append((path.appending(relative), value))
      }
      return try write(changes, policy, principal, before)
    default: return nil
    }
  }

  private func write(
    _ changes: [(Path, JSONValue?)], _ policy: RealtimeRulesPolicy, _ principal: Principal, _ before: Node
  ) throws -> Verdict? {
    var after = before
    for (path, json) in changes {
      guard let value = try? node(json) else { return nil }
      after = after.setting(path, to: value.resolved(existing: before.descendant(path), timestamp: now))
    }
    let operation: RealtimeAccess.Operation =
      changes.count == 1 ? .write(changes[0].0) : .merge(changes.map(\.0))
    return try isAllowed(policy, principal, operation, before, after) ? .allow : .deny
  }

  /// The query of an operation; nil for parameters that need an endpoint.
  private func query(_ operation: JSONObject) throws -> QuerySpec? {
    var fields: [(name: String, value: LeafValue?)] = []
    for (name, value) in operation["query"]?.object?.pairs ?? [] {
      fields.append((name, try node(value).leafValue))
    }
    for (name, value) in operation["params"]?.object?.pairs ?? [] {
      guard let text = value.string, let json = try? JSONValue(json: Array(text.utf8)) else { return nil }
      let leaf = try node(json).leafValue
      switch name {
      case "orderBy": fields.append(("i", json.string.map { .string($0.replacing("$", with: ".")) }))
      case "startAt": fields += [("sp", leaf)]
      case "startAfter": fields += [("sp", leaf), ("sin", .bool(false))]
      case "endAt": fields += [("ep", leaf)]
      case "endBefore": fields += [("ep", leaf), ("ein", .bool(false))]
      case "equalTo": fields += [("sp", leaf), ("ep", leaf)]
      case "limitToFirst": fields += [("l", leaf), ("vf", .string("l"))]
      case "limitToLast": fields += [("l", leaf), ("vf", .string("r"))]
      case "shallow": break
      default: return nil
      }
    }
    return try QuerySpec(wireFields: fields)
  }
}

extension JSONObject {
  /// The members as tuples.
  var pairs: [(name: String, value: JSONValue)] { members.map { ($0.key, $0.value) } }
}
