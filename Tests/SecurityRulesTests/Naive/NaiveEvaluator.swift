// The naive evaluator of Firestore rules, with which tests compare the server's evaluator. It walks the syntax tree:
// it does not compile the rules, and has neither budgets nor caches. It covers the part of the language that random
// rules use, and shares only the parser with the server.

import FirestoreModel
import Foundation

@testable import SecurityRules

/// The error of an expression that has no value.
struct NaiveFault: Error {}

/// The error of a rule that uses a part of the language that the naive evaluator does not implement.
struct NaiveUnsupported: Error { let what: String }

/// Decides requests by walking the syntax tree.
struct NaiveEvaluator {
  typealias Names = [String: Result<NaiveValue, any Error>]

  let tree: SyntaxTree
  /// The stored documents, before and after the request's writes.
  var before: [ResourcePath: MapValue]
  var after: [ResourcePath: MapValue]
  /// The caller: nil, or the user id and the claims.
  var caller: (uid: String, claims: [String: NaiveValue])?

  init(
    _ tree: SyntaxTree, before: [ResourcePath: MapValue], after: [ResourcePath: MapValue]? = nil,
    caller: (uid: String, claims: [String: NaiveValue])?
  ) {
    self.tree = tree
    self.before = before
    self.after = after ?? before
    self.caller = caller
  }

  /// Parses a rules file.
  static func parse(_ source: String) -> SyntaxTree {
    var parser = Parser(source)
    parser.parse()
    return parser.tree
  }

  /// Whether any allow statement grants a method on a document.
  func allows(_ method: String, _ path: ResourcePath) throws -> Bool {
    let segments = ["databases", "(default)", "documents"] + path.segments
    for service in tree.services {
      for match in service.matches where try allows(method, path, segments, match, [], [:]) { return true }
    }
    return false
  }

  private func allows(
    _ method: String, _ path: ResourcePath, _ segments: [String], _ match: SyntaxTree.Match,
    _ outer: [SyntaxTree.PatternSegment], _ functions: [String: SyntaxTree.Function]
  ) throws -> Bool {
    let pattern = outer + match.pattern
    var visible = functions
    for function in match.functions { visible[function.name] = function }
    if let names = bind(pattern.map(\.kind)[...], segments[...]) {
      for allow in match.allows where methods(of: allow).contains(method) {
        guard let condition = allow.condition else { return true }
        let evaluation = NaiveEvaluation(
          evaluator: self, method: method, path: path, functions: visible, names: names)
        do {
          if case .bool(true) = try evaluation.value(of: condition) { return true }
        } catch is NaiveFault {}
      }
    }
    for inner in match.matches where try allows(method, path, segments, inner, pattern, visible) {
      return true
    }
    return false
  }

  private func methods(of allow: SyntaxTree.Allow) -> [String] {
    allow.methods.flatMap { method -> [String] in
      switch method.name {
      case "read": ["get", "list"]
      case "write": ["create", "update", "delete"]
      default: [method.name]
      }
    }
  }

  /// The wildcards' values if a pattern covers a path, by trying all lengths of `**`.
  private func bind(
    _ pattern: ArraySlice<SyntaxTree.PatternSegment.Kind>, _ path: ArraySlice<String>
  ) -> NaiveEvaluation.Names? {
    guard let first = pattern.first else { return path.isEmpty ? [:] : nil }
    switch first {
    case .literal(let text):
      guard path.first == text else { return nil }
      return bind(pattern.dropFirst(), path.dropFirst())
    case .single(let name):
      guard let segment = path.first, var names = bind(pattern.dropFirst(), path.dropFirst()) else {
        return nil
      }
      if names[name] == nil { names[name] = .success(.string(segment)) }
      return names
    case .rest(let name):
      for count in (tree.version == .one ? 1 : 0)...max(path.count, 1) where count <= path.count {
        if var names = bind(pattern.dropFirst(), path.dropFirst(count)) {
          if names[name] == nil { names[name] = .success(.path(Array(path.prefix(count)))) }
          return names
        }
      }
      return nil
    }
  }
}

/// One evaluation of a condition: a request, and the names in scope.
struct NaiveEvaluation {
  typealias Names = NaiveEvaluator.Names

  let evaluator: NaiveEvaluator
  let method: String
  let path: ResourcePath
  let functions: [String: SyntaxTree.Function]
  var names: Names

  /// The value of an expression.
  func value(of id: ExpressionID) throws -> NaiveValue {
    switch evaluator.tree[id].kind {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .int(let value): return .int(value)
    case .float(let value): return .float(value)
    case .string(let text): return .string(text.string)
    case .name(let name): return try self.name(name)
    case .list(let items): return .list(try items.map { try value(of: $0) })
    case .map(let entries):
      var map: [String: NaiveValue] = [:]
      for entry in entries {
        guard case .string(let key) = try value(of: entry.key) else { throw NaiveFault() }
        map[key] = try value(of: entry.value)
      }
      return .map(map)
    case .path(let parts): return try pathLiteral(parts)
    case .member(let base, let name): return try Self.member(try value(of: base), name)
    case .index(let base, let index): return try Self.item(try value(of: base), try value(of: index))
    case .call(let name, let arguments): return try call(name, arguments)
    case .method(let base, let name, let arguments):
      if case .name("math") = evaluator.tree[base].kind { throw NaiveUnsupported(what: "math.\(name)") }
      return try NaiveMethods.call(name, try value(of: base), try arguments.map { try value(of: $0) })
    case .not(let operand):
      guard case .bool(let value) = try value(of: operand) else { throw NaiveFault() }
      return .bool(!value)
    case .negate(let operand):
      switch try value(of: operand) {
      case .int(let value) where value != .min: return .int(-value)
      case .float(let value): return .float(-value)
      default: throw NaiveFault()
      }
    case .binary(.and, let left, let right): return try logical(left, right, decisive: false)
    case .binary(.or, let left, let right): return try logical(left, right, decisive: true)
    case .binary(let op, let left, let right):
      return try NaiveOperators.apply(op.rawValue, try value(of: left), try value(of: right))
    case .type(let base, let type): return .bool(try value(of: base).types.contains(type.rawValue))
    case .conditional(let condition, let then, let otherwise):
      guard case .bool(let chosen) = try value(of: condition) else { throw NaiveFault() }
      return try value(of: chosen ? then : otherwise)
    case .bytes, .slice: throw NaiveUnsupported(what: "\(evaluator.tree[id].kind)")
    }
  }

  /// `&&` and `||`: one decisive operand suffices, even if the other has no value.
  private func logical(_ left: ExpressionID, _ right: ExpressionID, decisive: Bool) throws -> NaiveValue {
    var count = 0
    for operand in [left, right] {
      do {
        guard case .bool(let value) = try value(of: operand) else { continue }
        if value == decisive { return .bool(decisive) }
        count += 1
      } catch is NaiveFault {}
    }
    guard count == 2 else { throw NaiveFault() }
    return .bool(!decisive)
  }

  private func name(_ name: String) throws -> NaiveValue {
    if let value = names[name] { return try value.get() }
    switch name {
    case "request":
      var members: [String: NaiveValue] = [
        "auth": evaluator.caller.map { .map(["uid": .string($0.uid), "token": .map($0.claims)]) } ?? .null,
        "method": .string(method), "path": Self.path(of: path),
      ]
      if ["create", "update"].contains(method) { members["resource"] = document(path, evaluator.after) }
      if method == "delete" { members["resource"] = .null }
      return .map(members)
    case "resource": return document(path, evaluator.before)
    default: throw NaiveFault()
    }
  }

  private func document(_ path: ResourcePath, _ documents: [ResourcePath: MapValue]) -> NaiveValue {
    guard let fields = documents[path] else { return .null }
    return .map([
      "data": .map(NaiveValue.fields(fields)), "id": .string(path.segments.last ?? ""),
      "__name__": Self.path(of: path),
    ])
  }

  private static func path(of path: ResourcePath) -> NaiveValue {
    .path(["databases", "(default)", "documents"] + path.segments)
  }

  private func pathLiteral(_ parts: [SecurityRules.Expression.PathPart]) throws -> NaiveValue {
    var segments: [String] = []
    for part in parts {
      switch part {
      case .literal(let text): segments.append(text)
      case .placeholder: throw NaiveUnsupported(what: "placeholder")
      case .interpolation(let id):
        let value = try value(of: id)
        if case .path(let inner) = value {
          segments += inner
        } else {
          segments.append(try NaiveMethods.text(value))
        }
      }
    }
    return .path(segments)
  }

  static func member(_ value: NaiveValue, _ name: String) throws -> NaiveValue {
    guard case .map(let map) = value, let member = map[name] else { throw NaiveFault() }
    return member
  }

  private static func item(_ value: NaiveValue, _ index: NaiveValue) throws -> NaiveValue {
    switch (value, index) {
    case (.map, .string(let key)): return try member(value, key)
    case (.list(let items), .int(let index)):
      guard index >= 0, index < items.count else { throw NaiveFault() }
      return items[Int(index)]
    case (.string(let text), .int(let index)):
      let units = Array(text.utf16)
      guard index >= 0, index < units.count else { throw NaiveFault() }
      return .string(String(decoding: [units[Int(index)]], as: UTF16.self))
    case (.path(let segments), .int(let index)):
      guard index >= 0, index < segments.count else { throw NaiveFault() }
      return .string(segments[Int(index)])
    default: throw NaiveFault()
    }
  }

  private func call(_ name: String, _ arguments: [ExpressionID]) throws -> NaiveValue {
    if let function = functions[name] {
      guard function.parameters.count == arguments.count else { throw NaiveFault() }
      // A function sees the wildcards of its block, here only `database`, and its parameters and lets.
      var inner = self
      inner.names = names.filter { $0.key == "database" }
      for (parameter, argument) in zip(function.parameters, arguments) {
        inner.names[parameter.name] = Result { try value(of: argument) }
      }
      for variable in function.lets {
        guard let expression = variable.value else { continue }
        let current = inner
        inner.names[variable.name] = Result { try current.value(of: expression) }
      }
      return try inner.value(of: function.result)
    }
    guard arguments.count == 1 else { throw NaiveFault() }
    let argument = try value(of: arguments[0])
    switch name {
    case "get", "exists", "getAfter", "existsAfter":
      guard case .path(let segments) = argument, segments.count >= 5, segments.count % 2 == 1,
        segments.prefix(3) == ["databases", "(default)", "documents"], !segments.contains("")
      else { throw NaiveFault() }
      let found = document(
        ResourcePath(Array(segments.dropFirst(3))),
        name.hasSuffix("After") ? evaluator.after : evaluator.before)
      guard name.hasPrefix("exists") else { return found }
      if case .null = found { return .bool(false) }
      return .bool(true)
    case "string": return .string(try NaiveMethods.text(argument))
    case "int":
      switch argument {
      case .int: return argument
      case .float(let value):
        return .int(value.isNaN ? 0 : value >= 0x1p63 ? .max : value < -0x1p63 ? .min : Int64(value))
      case .string(let text):
        guard text.range(of: "^[+-]?[0-9]+$", options: .regularExpression) != nil, let value = Int64(text)
        else { throw NaiveFault() }
        return .int(value)
      default: throw NaiveFault()
      }
    default: throw NaiveUnsupported(what: "\(name)()")
    }
  }
}
