// The values of the naive evaluator, with a simple implementation of their three equalities and their order.

import FirestoreModel

/// A value of the naive evaluator.
indirect enum NaiveValue {
  case null
  case bool(Bool)
  case int(Int64)
  case float(Double)
  case string(String)
  case list([NaiveValue])
  case map([String: NaiveValue])
  case set([NaiveValue])
  case path([String])
  case diff([String: NaiveValue], [String: NaiveValue])

  /// A stored value of a type that random documents have.
  init(_ value: Value) {
    switch value {
    case .boolean(let value): self = .bool(value)
    case .integer(let value): self = .int(value)
    case .double(let value): self = .float(value)
    case .string(let value): self = .string(value)
    case .array(let values): self = .list(values.map(NaiveValue.init))
    case .map(let fields): self = .map(Self.fields(fields))
    case .reference(let name): self = .path(["databases", "(default)", "documents"] + name.path.segments)
    default: self = .null
    }
  }

  static func fields(_ fields: MapValue) -> [String: NaiveValue] {
    Dictionary(uniqueKeysWithValues: fields.entries.map { ($0.key, NaiveValue($0.value)) })
  }

  /// The names of `is` that accept the value.
  var types: [RuleTypeName] {
    switch self {
    case .null, .set: []
    case .bool: ["bool"]
    case .int: ["int", "number"]
    case .float: ["float", "number"]
    case .string: ["string"]
    case .list: ["list"]
    case .map: ["map"]
    case .path: ["path"]
    case .diff: ["map_diff"]
    }
  }

  typealias RuleTypeName = String

  /// The three equalities: of the operator `==`, of the items of a list (`strict`), and of the members of a set or the
  /// values in a difference of maps (`byValue`). The equalities differ in NaN, in zeros of different sign, and in whether an
  /// integer equals a float.
  enum Strength { case operands, strict, byValue }

  static func equal(_ left: NaiveValue, _ right: NaiveValue, _ strength: Strength) -> Bool {
    let inner: Strength = strength == .byValue ? .byValue : .strict
    switch (left, right) {
    case (.null, .null): return true
    case (.bool(let a), .bool(let b)): return a == b
    case (.int(let a), .int(let b)): return a == b
    case (.float(let a), .float(let b)):
      switch strength {
      case .operands: return a == b
      case .strict: return a == b && a.sign == b.sign
      case .byValue: return a == b || a.isNaN && b.isNaN
      }
    case (.int(let a), .float(let b)), (.float(let b), .int(let a)):
      return strength != .strict && Double(a) == b
    case (.string(let a), .string(let b)): return Array(a.utf8) == Array(b.utf8)
    case (.path(let a), .path(let b)): return a == b
    case (.list(let a), .list(let b)):
      return a.count == b.count && zip(a, b).allSatisfy { equal($0, $1, inner) }
    case (.map(let a), .map(let b)):
      return a.count == b.count
        && a.allSatisfy { key, value in b[key].map { equal(value, $0, inner) } ?? false }
    case (.set(let a), .set(let b)):
      return a.allSatisfy { has($0, in: b, .byValue) } && b.allSatisfy { has($0, in: a, .byValue) }
    default: return false
    }
  }

  static func has(_ element: NaiveValue, in items: [NaiveValue], _ strength: Strength) -> Bool {
    items.contains { equal($0, element, strength) }
  }

  /// The members of a set of items.
  static func members(_ items: [NaiveValue]) -> [NaiveValue] {
    var members: [NaiveValue] = []
    for item in items where !has(item, in: members, .byValue) { members.append(item) }
    return members
  }

  /// Whether a value precedes another one; nil if their types have no order, false for NaN.
  static func isLess(_ left: NaiveValue, _ right: NaiveValue) -> Bool? {
    switch (left, right) {
    case (.int(let a), .int(let b)): a < b
    case (.int(let a), .float(let b)): Double(a) < b
    case (.float(let a), .int(let b)): a < Double(b)
    case (.float(let a), .float(let b)): a < b
    case (.string(let a), .string(let b)): Array(a.utf16).lexicographicallyPrecedes(Array(b.utf16))
    default: nil
    }
  }
}
