// Random rules files and documents. Expressions are typed, so that most have a value; some operands have another type.

import FirestoreModel
import RandomModels

/// Generates the rules, documents and requests of one program. Each seed makes one program.
struct RandomRules {
  private(set) var random: SeededGenerator
  /// Names in scope with their types.
  private var names: [(name: String, kind: Kind)] = []
  private var functions: [(name: String, parameters: [Kind], result: Kind)] = []

  enum Kind: CaseIterable { case bool, int, float, string, list, map, set, path, null }

  /// The collections of the rules file.
  static let collections = ["c0", "c1", "c2", "c3", "c4", "c5"]
  static let documents = ["a", "b", "u1"]
  /// Without code points beyond U+FFFF: the naive evaluator does not model halves of them.
  private static let strings = ["", "a", "b", "u1", "u2", "ab", " x ", "10", "é", "ß", "A"]

  init(seed: UInt64) { random = SeededGenerator(seed: seed &* 0x9E37 &+ 11) }

  mutating func below(_ bound: Int) -> Int { random.below(bound) }
  mutating func chance(_ percent: Int) -> Bool { random.below(100) < percent }
  mutating func pick<T>(_ items: [T]) -> T { items[random.below(items.count)] }

  // MARK: Files

  /// A rules file. Rules of `list` read fields only in comparisons: if a query's filters imply such a comparison, it is true
  /// for every document that the query returns.
  mutating func file() -> String {
    var text = "rules_version = '2';\nservice cloud.firestore {\nmatch /databases/{database}/documents {\n"
    for index in 0..<3 {
      let result = pick([Kind.bool, .bool, .string, .int])
      let parameters = (0..<below(3)).map { _ in pick(Kind.allCases) }
      names = parameters.enumerated().map { ("p\($0.offset)", $0.element) }
      var body = ""
      for number in 0..<below(3) {
        let kind = pick(Kind.allCases)
        body += "let v\(number) = \(expression(kind, 2)); "
        names.append(("v\(number)", kind))
      }
      body += "return \(expression(result, 2));"
      let list = parameters.indices.map { "p\($0)" }.joined(separator: ", ")
      text += "function g\(index)(\(list)) { \(body) }\n"
      functions.append(("g\(index)", parameters, result))
    }
    for collection in Self.collections {
      let pattern = pick(["/\(collection)/{id}", "/\(collection)/{id}", "/{up=**}/\(collection)/{id}"])
      names = [("id", .string)]
      text += "match \(pattern) {\n"
      for method in ["get", "create", "update", "delete"] {
        text += "allow \(method): if \(condition(3));\n"
        if chance(20) { text += "allow \(method): if \(condition(2));\n" }
      }
      text += "allow list: if \(listCondition(3));\n}\n"
      if chance(30) {
        names = [("rest", .path)]
        text += "match /\(collection)/{rest=**} { allow get, write: if \(condition(2)); }\n"
      }
    }
    names = []
    return text + "}\n}\n"
  }

  private mutating func condition(_ depth: Int) -> String {
    guard chance(60) else { return expression(.bool, depth) }
    let guardCondition = pick([
      "request.auth != null", "resource.data.owner == request.auth.uid", "resource == null",
      "resource.data.b == true", "request.resource.data.owner == request.auth.uid", "resource.data.n > 1",
      "request.auth.uid in resource.data.l", "request.auth.token.admin == true",
      "request.resource.data.diff(resource.data).affectedKeys().hasOnly(['n', 's'])",
      "exists(/databases/$(database)/documents/look/$(request.auth.uid))",
      "getAfter(/databases/$(database)/documents/look/a).data.n == resource.data.n",
    ])
    return "(\(guardCondition)) \(pick(["&&", "||"])) \(expression(.bool, depth))"
  }

  /// A condition of `list` that reads only members whose existence and type the query determines.
  private mutating func listCondition(_ depth: Int) -> String {
    if depth > 0, chance(60) {
      return "(\(listCondition(depth - 1)) \(pick(["&&", "||"])) \(listCondition(depth - 1)))"
    }
    return pick([
      "resource.data.n \(pick(["==", "!=", "<", "<=", ">", ">="])) \(below(4))",
      "resource.data.s \(pick(["==", "!=", "<", ">="])) '\(pick(["a", "b", "u1"]))'",
      "resource.data.owner == request.auth.uid", "resource.data.b == \(pick(["true", "false"]))",
      "'\(pick(["a", "b"]))' in resource.data.l", "request.auth.token.admin == true", "request.auth != null",
      "exists(/databases/$(database)/documents/look/$(request.auth.uid))", "!(resource.data.n > \(below(4)))",
    ])
  }

  // MARK: Expressions

  private mutating func expression(_ wanted: Kind, _ depth: Int) -> String {
    let kind = chance(3) ? pick(Kind.allCases) : wanted
    let visibleNames = names.filter { $0.kind == kind }.map(\.name)
    if !visibleNames.isEmpty, chance(25) { return pick(visibleNames) }
    guard depth > 0, !chance(15) else { return leaf(kind) }
    let candidates = functions.filter { $0.result == kind }
    if !candidates.isEmpty, chance(12) {
      let function = pick(candidates)
      return
        "\(function.name)(\(function.parameters.map { expression($0, depth - 1) }.joined(separator: ", ")))"
    }
    return compound(kind, depth - 1)
  }

  private mutating func leaf(_ kind: Kind) -> String {
    if chance(50), let field = field(kind) { return field }
    switch kind {
    case .bool: return pick(["true", "false", "request.auth.token.admin"])
    case .int: return "(\(pick(["0", "1", "2", "5", "-1", "9223372036854775807"])))"
    case .float: return "(\(pick(["0.0", "1.0", "1.5", "-2.5"])))"
    case .string:
      return chance(40) ? pick(["request.auth.uid", "request.method"]) : "'\(pick(Self.strings))'"
    case .list: return pick(["[]", "[1, 2]", "['a', 'b', null]", "[1.0, [1]]", "request.auth.token.roles"])
    case .map: return pick(["{}", "{'a': 1}", "resource.data", "request.resource.data", "resource"])
    case .set: return pick(["[1, 2].toSet()", "['a', 1.0].toSet()"])
    case .path: return pick(["request.path", "(/databases/$(database)/documents/look/a)", "(/a/b)"])
    case .null: return pick(["null", "request.auth", "resource"])
    }
  }

  private mutating func field(_ kind: Kind) -> String? {
    let base = pick([
      "resource.data", "resource.data", "request.resource.data",
      "get(/databases/$(database)/documents/look/a).data",
    ])
    let name: String
    switch kind {
    case .bool: name = "b"
    case .int: name = "n"
    case .float: name = "f"
    case .string: name = pick(["s", "owner"])
    case .list: name = "l"
    case .map: name = "m"
    case .path: name = "r"
    case .null: name = "z"
    case .set: return nil
    }
    return pick(["\(base).\(name)", "\(base)['\(name)']", "\(base).get('\(name)', 1)"])
  }

  private mutating func compound(_ kind: Kind, _ d: Int) -> String {
    let number = pick([Kind.int, .float])
    let any = pick(Kind.allCases)
    let container = pick([Kind.list, .set])
    switch kind {
    case .bool:
      switch below(12) {
      case 0, 1: return "(\(expression(.bool, d)) \(pick(["&&", "||"])) \(expression(.bool, d)))"
      case 2: return "!(\(expression(.bool, d)))"
      case 3: return "(\(expression(.bool, d)) ? \(expression(.bool, d)) : \(expression(.bool, d)))"
      case 4: return "(\(expression(number, d)) \(pick(["<", "<=", ">", ">="])) \(expression(.int, d)))"
      case 5: return "(\(expression(.string, d)) \(pick(["<", ">=", "==", "!="])) \(expression(.string, d)))"
      case 6: return "(\(expression(any, d)) \(pick(["==", "!="])) \(expression(any, d)))"
      case 7: return "(\(expression(any, d)) in \(expression(container, d)))"
      case 8: return "(\(expression(.string, d)) in \(expression(.map, d)))"
      case 9:
        let types = ["int", "float", "number", "string", "bool", "list", "map", "path", "map_diff"]
        return "(\(expression(any, d)) is \(pick(types)))"
      case 10:
        return
          "\(expression(container, d)).\(pick(["hasAny", "hasAll", "hasOnly"]))(\(expression(.list, d)))"
      default:
        return pick([
          "\(expression(.string, d)).matches('\(pick(["a*", "[a-z]+", "(a|b)+", "u[0-9]", ".*"]))')",
          "exists(/databases/$(database)/documents/look/\(pick(["a", "none", "$(request.auth.uid)"])))",
          "existsAfter(/databases/$(database)/documents/look/$(\(expression(.string, d))))",
        ])
      }
    case .int:
      return pick([
        "(\(expression(.int, d)) \(pick(["+", "-", "*", " / ", "%"])) \(expression(.int, d)))",
        "\(expression(pick([.list, .map, .set, .string]), d)).size()",
        "int(\(expression(pick([.float, .string, .int]), d)))", "-(\(expression(.int, d)))",
        "\(expression(.list, d))[\(below(3))]",
      ])
    case .float: return "(\(expression(.float, d)) \(pick(["+", "-", "*", " / "])) \(expression(number, d)))"
    case .string:
      return pick([
        "(\(expression(.string, d)) + \(expression(.string, d)))",
        "\(expression(.string, d)).\(pick(["lower", "upper", "trim"]))()",
        "string(\(expression(pick([.int, .bool, .string, .null, .path]), d)))",
        "\(expression(.list, d)).join(\(expression(.string, d)))", "\(expression(.string, d))[\(below(2))]",
        "\(expression(.path, d))[\(below(5))]",
      ])
    case .list:
      return pick([
        "[\(expression(any, d)), \(expression(pick(Kind.allCases), d))]",
        "\(expression(.map, d)).\(pick(["keys", "values"]))()",
        "\(expression(.list, d)).\(pick(["concat", "removeAll"]))(\(expression(.list, d)))",
      ])
    case .map:
      return pick([
        "{'a': \(expression(any, d)), 'n': \(expression(.int, d))}",
        "get(/databases/$(database)/documents/look/\(pick(["a", "$(request.auth.uid)"]))).data",
        "\(expression(.map, d)).get('\(pick(["m", "a"]))', \(expression(.map, d)))",
        "\(expression(.map, d)).get(['m', 'x'], \(expression(.map, d)))",
      ])
    case .set:
      return pick([
        "\(expression(.list, d)).toSet()",
        "\(expression(.map, d)).diff(\(expression(.map, d))).\(pick(["affectedKeys", "addedKeys", "removedKeys", "changedKeys", "unchangedKeys"]))()",
        "\(expression(.set, d)).\(pick(["union", "intersection", "difference"]))(\(expression(.set, d)))",
      ])
    case .path:
      return pick([
        "(/databases/$(database)/documents/look/$(\(expression(.string, d))))", "resource.__name__",
      ])
    case .null: return leaf(.null)
    }
  }

  // MARK: Data

  /// Fields of a document.
  mutating func fields(marker: String? = nil) -> MapValue {
    var entries: [(String, Value)] = []
    if let marker { entries.append(("marker", .string(marker))) }
    if chance(80) { entries.append(("n", value(chance(90) ? 0 : 2))) }
    if chance(60) { entries.append(("f", value(1))) }
    if chance(80) { entries.append(("s", value(chance(90) ? 2 : 0))) }
    if chance(70) { entries.append(("owner", .string(pick(["u1", "u2"])))) }
    if chance(80) { entries.append(("b", .boolean(chance(50)))) }
    if chance(80) { entries.append(("l", .array((0..<below(4)).map { _ in value(below(3)) }))) }
    if chance(50) { entries.append(("m", .map(["x": value(0), "a": .map(["x": value(2)])]))) }
    if chance(30) { entries.append(("z", .null)) }
    return MapValue(entries)
  }

  private mutating func value(_ kind: Int) -> Value {
    switch kind {
    case 0: .integer(Int64(below(6) - 1))
    case 1: .double(pick([0, 1, 1.5, -2.5, .nan]))
    default: .string(pick(Self.strings))
    }
  }

  /// A caller: nobody, or a user with claims.
  mutating func caller() -> (uid: String, claims: MapValue)? {
    guard chance(80) else { return nil }
    return (
      pick(["u1", "u2"]),
      ["admin": .boolean(chance(40)), "roles": .array([.string("a"), .integer(1)])]
    )
  }
}
