// Generates random rules files of the Realtime Database, with matching trees, queries and users. Files, trees, queries and
// users have few keys and values, so that conditions are often true and operations often affect the same locations.

package import JSON
package import RandomModels

/// Generates rules files from a seed.
package struct RandomRealtimeRules {
  package var random: SeededGenerator
  /// Whether expressions may read `now`.
  private let readsTime: Bool

  /// - Parameter readsTime: whether expressions may read `now`.
  package init(seed: UInt64, readsTime: Bool) {
    random = SeededGenerator(seed: seed)
    self.readsTime = readsTime
  }

  package static let keys = ["a", "b", "c", "1", "10", "é", "e\u{301}", "😀", "u1"]
  package static let numbers: [JSONValue] = [
    .int(0), .int(1), .int(10), .double(0.5), .int(-3), .double(1e21),
  ]
  private static let texts = ["a", "b", "é", "e\u{301}", "😀", "A", "ab", "", "1", "\u{FF5E}", "u1"]

  package mutating func below(_ bound: Int) -> Int { random.below(bound) }

  private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

  // MARK: Data

  package mutating func key() -> String { pick(Self.keys) }

  /// The keys of a random path, at most `maximum`.
  package mutating func path(_ maximum: Int = 3) -> [String] { (0..<below(maximum + 1)).map { _ in key() } }

  package mutating func scalar() -> JSONValue {
    switch below(5) {
    case 0: .bool(below(2) == 0)
    case 1, 2: pick(Self.numbers)
    default: .string(pick(Self.texts))
    }
  }

  private mutating func priority() -> JSONValue {
    below(2) == 0 ? pick(Self.numbers) : .string(pick(Self.texts))
  }

  /// A value in the export format.
  package mutating func value(depth: Int = 2) -> JSONValue {
    let hasPriority = below(6) == 0
    guard depth > 0, below(3) > 0 else {
      let scalar = scalar()
      return hasPriority ? .object([".value": scalar, ".priority": priority()]) : scalar
    }
    var object = JSONObject()
    for _ in 0..<(1 + below(4)) { object[key()] = value(depth: depth - 1) }
    if hasPriority { object[".priority"] = priority() }
    return .object(object)
  }

  /// The value of `auth` of a random caller: null, or a user with claims.
  package mutating func auth() -> JSONValue {
    guard below(4) > 0 else { return .null }
    let id = pick(["u1", "a", "é"])
    var token: JSONObject = ["sub": .string(id), "role": .string(pick(["admin", "a"]))]
    if below(2) == 0 { token["n"] = pick(Self.numbers) }
    if below(3) == 0 { token["groups"] = .object(["a": .bool(true), "1": .object(JSONObject())]) }
    if below(3) == 0 { token["list"] = .array([.string("a"), .null, .bool(true)]) }
    return .object(["uid": .string(id), "provider": .string("password"), "token": .object(token)])
  }

  package mutating func query() -> NaiveQuery {
    var query = NaiveQuery()
    guard below(2) == 0 else { return query }
    query.order = pick(["$key", "$value", "$priority", "a", "b"])
    func bound(_ generator: inout RandomRealtimeRules, _ choices: [JSONValue]) -> JSONValue {
      query.order == "$key" ? .string(generator.pick(["a", "b"])) : generator.pick(choices)
    }
    switch below(4) {
    case 0: query.equal = bound(&self, [.string("a"), .int(1), .bool(true)])
    case 1: query.start = bound(&self, [.string("a"), .int(0), .bool(false)])
    case 2: query.end = bound(&self, [.string("b"), .int(10)])
    default: break
    }
    let needsLimit =
      query.order == "$priority" && query.equal == nil && query.start == nil && query.end == nil
    switch needsLimit ? below(2) : below(4) {
    case 0: query.first = 1 + below(3)
    case 1: query.last = 1 + below(3)
    default: break
    }
    return query
  }

  // MARK: Rules

  /// The variables that an expression may use.
  private struct Scope {
    var wildcards: [String] = []
    var isWrite = false
  }

  /// A rules file.
  package mutating func file() -> JSONValue {
    .object(["rules": .object(location(depth: 3, Scope()))])
  }

  private mutating func location(depth: Int, _ scope: Scope) -> JSONObject {
    var location = JSONObject()
    if below(5) < 2 { location[".read"] = .string(condition(scope)) }
    var writing = scope
    writing.isWrite = true
    if below(5) < 3 { location[".write"] = .string(condition(writing)) }
    if below(5) == 0 { location[".validate"] = .string(condition(writing)) }
    if below(12) == 0 { location[".read"] = .bool(below(2) == 0) }
    guard depth > 0 else { return location }
    for _ in 0..<below(3) { location[key()] = .object(self.location(depth: depth - 1, scope)) }
    if below(2) == 0 {
      var inner = scope
      inner.wildcards.append("$w\(scope.wildcards.count)")
      location[inner.wildcards[scope.wildcards.count]] = .object(self.location(depth: depth - 1, inner))
    }
    return location
  }

  private mutating func condition(_ scope: Scope) -> String {
    switch below(8) {
    case 0, 1: "true"
    case 2: "auth != null"
    default: boolean(3, scope)
    }
  }

  /// An expression whose type is known to be boolean.
  private mutating func boolean(_ depth: Int, _ scope: Scope) -> String {
    if depth == 0 { return pick(["true", "false", "auth != null", "auth.uid == 'u1'"]) }
    let next = depth - 1
    switch below(16) {
    case 0: return "!(\(boolean(next, scope)))"
    case 1: return "(\(boolean(next, scope)) && \(boolean(next, scope)))"
    case 2, 3: return "(\(boolean(next, scope)) || \(boolean(next, scope)))"
    case 4: return "(\(boolean(next, scope)) ? \(boolean(next, scope)) : \(boolean(next, scope)))"
    case 5: return "\(snapshot(next, scope)).exists()"
    case 6: return "\(snapshot(next, scope)).hasChild(\(text(next, scope)))"
    case 7: return "\(snapshot(next, scope)).hasChildren()"
    case 8:
      return "\(snapshot(next, scope)).hasChildren([\(text(next, scope)), \(dynamicallyTyped(next, scope))])"
    case 9: return "\(snapshot(next, scope)).\(pick(["isNumber", "isString", "isBoolean"]))()"
    case 10:
      return "\(dynamicallyTyped(next, scope)) \(pick(["==", "!=", "===", "!=="])) \(operand(next, scope))"
    case 11: return "\(dynamicallyTyped(next, scope)) \(pick(["<", "<=", ">", ">="])) \(operand(next, scope))"
    case 12:
      let method = pick(["contains", "beginsWith", "endsWith"])
      return "\(textOperand(next, scope)).\(method)(\(text(next, scope)))"
    case 13:
      let pattern = pick(["a", "^[a-c]+$", "(a|é)b?", "^.$", #"\d"#, "B", "^(a|ab)(c|b)*$", "[^a]"])
      return "\(textOperand(next, scope)).matches(/\(pattern)/\(pick(["", "i"])))"
    case 14 where !scope.isWrite:
      return pick([
        "query.orderByKey", "query.orderByValue", "query.orderByPriority", "query.orderByChild == 'a'",
        "query.limitToFirst <= 2", "query.limitToLast == null", "query.equalTo == 'a'",
        "query.startAt != null",
        "query.endAt == 10", "(query.limitToFirst != null && query.limitToFirst < 3)",
      ])
    case 15 where readsTime: return "now \(pick(["<", ">", ">="])) \(pick(["1700000000000", "data.val()"]))"
    default: return "\(text(next, scope)) \(pick(["==", "!=", "<"])) \(text(next, scope))"
    }
  }

  private mutating func snapshot(_ depth: Int, _ scope: Scope) -> String {
    let base = pick(scope.isWrite ? ["root", "data", "newData", "newData"] : ["root", "data", "data"])
    guard depth > 0 else { return base }
    switch below(6) {
    case 0: return "\(snapshot(depth - 1, scope)).parent()"
    case 1, 2: return "\(snapshot(depth - 1, scope)).child(\(text(depth - 1, scope)))"
    case 3: return "\(snapshot(depth - 1, scope)).child(\(dynamicallyTyped(0, scope)))"
    default: return base
    }
  }

  /// An expression whose type is known to be a string.
  private mutating func text(_ depth: Int, _ scope: Scope) -> String {
    switch below(depth > 0 ? 8 : 4) {
    case 0 where !scope.wildcards.isEmpty, 1 where !scope.wildcards.isEmpty: return pick(scope.wildcards)
    case 4: return "('' + \(operand(depth - 1, scope)))"
    case 5: return "(\(text(depth - 1, scope)) + '/' + \(text(depth - 1, scope)))"
    case 6: return "\(text(depth - 1, scope)).\(pick(["toLowerCase", "toUpperCase"]))()"
    case 7: return "\(text(depth - 1, scope)).replace(\(text(0, scope)), \(text(0, scope)))"
    default: return "'\(pick(Self.keys + ["", "a/b", "/a/", "a.b", "$w0", "A"]))'"
    }
  }

  private mutating func textOperand(_ depth: Int, _ scope: Scope) -> String {
    below(2) == 0 ? text(depth, scope) : pick(["auth.uid", "data.val()", "auth.token.role"])
  }

  /// An expression whose type is known only when it is evaluated.
  private mutating func dynamicallyTyped(_ depth: Int, _ scope: Scope) -> String {
    switch below(6) {
    case 0: pick(["auth.uid", "auth.provider", "auth.token.role", "auth.token.n", "auth.token.groups.a"])
    case 1:
      pick(["auth.token.list[0]", "auth.token['list'][2]", "auth.token.groups[1]", "auth.x.y", "auth['uid']"])
    case 2: "\(snapshot(depth, scope)).getPriority()"
    default: "\(snapshot(depth, scope)).val()"
    }
  }

  /// An operand of any primitive type.
  private mutating func operand(_ depth: Int, _ scope: Scope) -> String {
    switch below(7) {
    case 0: "'\(pick(["a", "b", "é", "u1"]))'"
    case 1: pick(["0", "1", "10", ".5", "1e21"])
    case 2 where depth > 0:
      "(\(dynamicallyTyped(depth - 1, scope)) \(pick(["-", "*", "/", "%"])) \(pick(["0", "1", "3", "10"])))"
    case 3 where depth > 0: "(-\(dynamicallyTyped(depth - 1, scope)))"
    case 4: "\(pick(["auth.uid", "data.val()"])).length"
    default: dynamicallyTyped(depth, scope)
    }
  }
}
