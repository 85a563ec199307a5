// The operators, functions and methods of the naive evaluator of Firestore rules.

import Foundation

/// The operators of the naive evaluator, except `&&` and `||`, for which one decisive operand suffices even if the
/// other has an error.
enum NaiveOperators {
  static func apply(_ op: String, _ left: NaiveValue, _ right: NaiveValue) throws -> NaiveValue {
    switch op {
    case "==": return .bool(NaiveValue.equal(left, right, .operands))
    case "!=": return .bool(!NaiveValue.equal(left, right, .operands))
    case "<", "<=", ">", ">=":
      guard let isLess = NaiveValue.isLess(left, right), let isGreater = NaiveValue.isLess(right, left) else {
        throw NaiveFault()
      }
      switch op {
      case "<": return .bool(isLess)
      case ">": return .bool(isGreater)
      case "<=": return .bool(isLess || NaiveValue.equal(left, right, .operands))
      default: return .bool(isGreater || NaiveValue.equal(left, right, .operands))
      }
    case "in":
      switch right {
      case .list(let items): return .bool(NaiveValue.has(left, in: items, .strict))
      case .set(let members): return .bool(NaiveValue.has(left, in: members, .byValue))
      case .map(let map):
        guard case .string(let key) = left else { throw NaiveFault() }
        return .bool(map[key] != nil)
      default: throw NaiveFault()
      }
    default: return try arithmetic(op, left, right)
    }
  }

  private static func arithmetic(_ op: String, _ left: NaiveValue, _ right: NaiveValue) throws -> NaiveValue {
    switch (left, right) {
    case (.string(let a), .string(let b)) where op == "+": return .string(a + b)
    case (.int(let a), .int(let b)):
      // Decimal arithmetic does not overflow.
      let (x, y) = (Decimal(a), Decimal(b))
      if op == "/" || op == "%", b == 0 { throw NaiveFault() }
      let result: Decimal
      switch op {
      case "+": result = x + y
      case "-": result = x - y
      case "*": result = x * y
      case "/": return b == -1 ? try int(-x) : .int(a / b)
      default: return .int(b == -1 ? 0 : a % b)
      }
      return try int(result)
    case (.float(let a), .float(let b)): return .float(floats(op, a, b))
    case (.int(let a), .float(let b)): return .float(floats(op, Double(a), b))
    case (.float(let a), .int(let b)): return .float(floats(op, a, Double(b)))
    default: throw NaiveFault()
    }
  }

  private static func int(_ value: Decimal) throws -> NaiveValue {
    guard value >= Decimal(Int64.min), value <= Decimal(Int64.max), let result = Int64("\(value)") else {
      throw NaiveFault()
    }
    return .int(result)
  }

  private static func floats(_ op: String, _ a: Double, _ b: Double) -> Double {
    switch op {
    case "+": a + b
    case "-": a - b
    case "*": a * b
    case "/": a / b
    default: fmod(a, b)
    }
  }
}

/// The methods of the naive evaluator.
enum NaiveMethods {
  static func call(_ name: String, _ base: NaiveValue, _ arguments: [NaiveValue]) throws -> NaiveValue {
    switch (base, name, arguments.count) {
    case (.string(let text), _, _): return try string(name, text, arguments)
    case (.list(let items), _, _): return try list(name, items, arguments)
    case (.set(let members), _, _): return try set(name, members, arguments)
    case (.map(let map), "size", 0): return .int(Int64(map.count))
    case (.map(let map), "keys", 0): return .list(sorted(map).map(NaiveValue.string))
    case (.map(let map), "values", 0): return .list(sorted(map).compactMap { map[$0] })
    case (.map(let map), "get", 2):
      switch arguments[0] {
      case .string(let key): return map[key] ?? arguments[1]
      case .list(let steps):
        var value = base
        let keys = try steps.map { step -> String in
          guard case .string(let key) = step else { throw NaiveFault() }
          return key
        }
        for key in keys {
          guard case .map(let inner) = value, let next = inner[key] else { return arguments[1] }
          value = next
        }
        return value
      default: throw NaiveFault()
      }
    case (.map(let map), "diff", 1):
      guard case .map(let other) = arguments[0] else { throw NaiveFault() }
      return .diff(map, other)
    case (.diff(let first, let second), _, 0):
      let keys = Set(first.keys).union(second.keys).filter { key in
        let isChanged: Bool? =
          first[key].flatMap { a in second[key].map { b in !NaiveValue.equal(a, b, .byValue) } }
        switch name {
        case "addedKeys": return second[key] == nil
        case "removedKeys": return first[key] == nil
        case "changedKeys": return isChanged == true
        case "unchangedKeys": return isChanged == false
        default: return isChanged != false
        }
      }
      guard ["addedKeys", "removedKeys", "changedKeys", "unchangedKeys", "affectedKeys"].contains(name)
      else { throw NaiveFault() }
      return .set(keys.map(NaiveValue.string))
    default: throw NaiveFault()
    }
  }

  private static func sorted(_ map: [String: NaiveValue]) -> [String] {
    map.keys.sorted { Array($0.utf16).lexicographicallyPrecedes(Array($1.utf16)) }
  }

  private static func string(_ name: String, _ text: String, _ arguments: [NaiveValue]) throws -> NaiveValue {
    switch (name, arguments.count) {
    case ("size", 0): return .int(Int64(text.utf16.count))
    case ("lower", 0):
      return .string(
        String(
          String.UnicodeScalarView(
            text.unicodeScalars.map { scalar in
              ("A"..."Z").contains(scalar) ? Unicode.Scalar(UInt8(scalar.value + 32)) : scalar
            })))
    case ("upper", 0):
      return .string(
        String(
          String.UnicodeScalarView(
            text.unicodeScalars.map { scalar in
              ("a"..."z").contains(scalar) ? Unicode.Scalar(UInt8(scalar.value - 32)) : scalar
            })))
    case ("trim", 0): return .string(text.trimmingCharacters(in: .whitespaces))
    case ("matches", 1):
      guard case .string(let pattern) = arguments[0] else { throw NaiveFault() }
      return .bool(text.range(of: "^(?:\(pattern))$(?!\n)", options: .regularExpression) != nil)
    default: throw NaiveFault()
    }
  }

  private static func list(_ name: String, _ items: [NaiveValue], _ arguments: [NaiveValue]) throws
    -> NaiveValue
  {
    switch (name, arguments.count) {
    case ("size", 0): return .int(Int64(items.count))
    case ("toSet", 0): return .set(NaiveValue.members(items))
    case ("join", 1):
      guard case .string(let separator) = arguments[0] else { throw NaiveFault() }
      return .string(try items.map(text).joined(separator: separator))
    case ("concat", 1), ("removeAll", 1), ("hasAny", 1), ("hasAll", 1), ("hasOnly", 1):
      guard case .list(let other) = arguments[0] else { throw NaiveFault() }
      switch name {
      case "concat": return .list(items + other)
      case "removeAll": return .list(items.filter { !NaiveValue.has($0, in: other, .strict) })
      case "hasAny": return .bool(other.contains { NaiveValue.has($0, in: items, .strict) })
      case "hasAll": return .bool(other.allSatisfy { NaiveValue.has($0, in: items, .strict) })
      default: return .bool(items.allSatisfy { NaiveValue.has($0, in: other, .strict) })
      }
    default: throw NaiveFault()
    }
  }

  private static func set(_ name: String, _ members: [NaiveValue], _ arguments: [NaiveValue]) throws
    -> NaiveValue
  {
    if name == "size", arguments.isEmpty { return .int(Int64(members.count)) }
    guard arguments.count == 1 else { throw NaiveFault() }
    func isIn(_ items: [NaiveValue]) -> (NaiveValue) -> Bool { { NaiveValue.has($0, in: items, .byValue) } }
    switch (name, arguments[0]) {
    case ("union", .set(let other)): return .set(NaiveValue.members(members + other))
    case ("intersection", .set(let other)): return .set(members.filter(isIn(other)))
    case ("difference", .set(let other)): return .set(members.filter { !isIn(other)($0) })
    case ("hasAny", .set(let other)), ("hasAny", .list(let other)):
      return .bool(other.contains(where: isIn(members)))
    case ("hasAll", .set(let other)), ("hasAll", .list(let other)):
      return .bool(other.allSatisfy(isIn(members)))
    case ("hasOnly", .set(let other)), ("hasOnly", .list(let other)):
      return .bool(members.allSatisfy(isIn(other)))
    default: throw NaiveFault()
    }
  }

  /// A value as `string()` writes it. Random floats have few digits, so Swift and Java write them in the same form.
  static func text(_ value: NaiveValue) throws -> String {
    switch value {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .int(let value): "\(value)"
    case .float(let value):
      value.isNaN ? "NaN" : value.isInfinite ? (value < 0 ? "-Infinity" : "Infinity") : "\(value)"
    case .string(let text): text
    case .path(let segments): segments.map { "/" + $0 }.joined()
    default: throw NaiveFault()
    }
  }
}
