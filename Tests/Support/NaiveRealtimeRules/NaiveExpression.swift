// Evaluates rule expressions of the Realtime Database in the simplest way: it walks the syntax tree, and snapshots are
// complete trees. It has no budget and checks every type while it evaluates.

import Foundation

@testable import SecurityRules

/// A failure, which makes the complete rule false.
struct NaiveFailure: Error {}

/// The variables of one evaluation.
struct NaiveExpression {
  let auth: NaiveValue
  let now: Double
  /// The complete database before the operation.
  let before: PlainTree
  /// The complete database after the operation.
  let after: PlainTree
  /// The location of the rule.
  let location: [Units]
  /// The key that each wildcard matched, by the name with its `$`.
  let captures: [String: Units]
  /// The members of `query`.
  let query: [String: NaiveValue]

  func value(_ syntax: RealtimeSyntax) throws -> NaiveValue {
    switch syntax.kind {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .number(let value): return .number(value)
    case .string(let text): return .string(Units(text.utf16))
    case .name("auth"): return auth
    case .name("now"): return .number(now)
    case .name("root"): return .snapshot(before, [])
    case .name("data"): return .snapshot(before, location)
    case .name("newData"): return .snapshot(after, location)
    case .wildcard(let name):
      guard let key = captures[name] else { throw NaiveFailure() }
      return .string(key)
    case .member(let base, let name):
      if case .name("query") = base.kind { return query[name] ?? .null }
      return try value(base).member(Units(name.utf16))
    case .element(let base, let key):
      let object = try value(base)
      switch try value(key) {
      case .scalar(.string(let name)): return object.member(name)
      case .scalar(.number(let number)): return object.member(Units(NaiveValue.text(number).utf16))
      default: return .null
      }
    case .call(let callee, let arguments): return try call(callee, arguments)
    case .not(let operand): return .bool(!(try bool(operand)))
    case .negative(let operand): return .number(-(try number(try value(operand))))
    case .all(let operands): return .bool(try operands.allSatisfy { try bool($0) })
    case .any(let operands): return .bool(try operands.contains { try bool($0) })
    case .chain(let first, let steps):
      return try steps.reduce(try value(first)) { try apply($1.operation, $0, try value($1.operand)) }
    case .conditional(let condition, let first, let second):
      return try value(try bool(condition) ? first : second)
    case .pattern, .list, .name: throw NaiveFailure()
    }
  }

  func bool(_ syntax: RealtimeSyntax) throws -> Bool {
    guard case .scalar(.bool(let value)) = try value(syntax) else { throw NaiveFailure() }
    return value
  }

  private func number(_ value: NaiveValue) throws -> Double {
    guard case .scalar(.number(let number)) = value else { throw NaiveFailure() }
    return number
  }

  private func string(_ value: NaiveValue) throws -> Units {
    guard case .scalar(.string(let units)) = value else { throw NaiveFailure() }
    return units
  }

  // MARK: Operators

  private func apply(
    _ operation: RealtimeOperator, _ left: NaiveValue, _ right: NaiveValue
  ) throws -> NaiveValue {
    switch operation {
    case .equal: return .bool(left.equals(right))
    case .unequal: return .bool(!left.equals(right))
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      if case .scalar(.string(let x)) = left, case .scalar(.string(let y)) = right {
        let (isLess, isGreater) = (x.lexicographicallyPrecedes(y), y.lexicographicallyPrecedes(x))
        switch operation {
        case .less: return .bool(isLess)
        case .lessOrEqual: return .bool(!isGreater)
        case .greater: return .bool(isGreater)
        default: return .bool(!isLess)
        }
      }
      let (x, y) = (try number(left), try number(right))
      switch operation {
      case .less: return .bool(x < y)
      case .lessOrEqual: return .bool(x <= y)
      case .greater: return .bool(x > y)
      default: return .bool(x >= y)
      }
    case .add:
      if case .scalar(.number(let x)) = left, case .scalar(.number(let y)) = right { return .number(x + y) }
      return .string(try concatenationText(left) + concatenationText(right))
    case .subtract: return .number(try number(left) - number(right))
    case .multiply: return .number(try number(left) * number(right))
    case .divide:
      let (x, y) = (try number(left), try number(right))
      return .number(y == 0 ? .nan : x / y)
    case .remainder: return .number(fmod(try number(left), try number(right)))
    }
  }

  /// An operand of `+` as text.
  private func concatenationText(_ value: NaiveValue) throws -> Units {
    if case .scalar(.number(let number)) = value { return Units(NaiveValue.text(number).utf16) }
    return try string(value)
  }

  // MARK: Methods

  private func call(_ callee: RealtimeSyntax, _ arguments: [RealtimeSyntax]) throws -> NaiveValue {
    let (base, name): (RealtimeSyntax, String)
    switch callee.kind {
    case .member(let object, let member): (base, name) = (object, member)
    case .element(let object, let key):
      (base, name) = (object, String(decoding: try string(try value(key)), as: UTF16.self))
    default: throw NaiveFailure()
    }
    let receiver = try value(base)
    if case .snapshot(let tree, let path) = receiver { return try call(name, tree, path, arguments) }
    let text = try string(receiver)
    if name == "matches" {
      guard case .pattern(let pattern)? = arguments.first?.kind else { throw NaiveFailure() }
      return .bool(NaivePattern(pattern, text).isMatch)
    }
    let texts = try arguments.map { try string(try value($0)) }
    switch name {
    case "contains": return .bool(first(texts[0], in: text, from: 0) != nil)
    case "beginsWith": return .bool(text.starts(with: texts[0]))
    case "endsWith": return .bool(text.reversed().starts(with: texts[0].reversed()))
    case "replace":
      var result = Units()
      var start = 0
      while !texts[0].isEmpty, let offset = first(texts[0], in: text, from: start) {
        result += text[start..<offset] + texts[1]
        start = offset + texts[0].count
      }
      return .string(result + text[start...])
    case "toLowerCase":
      // Like JavaScript, writes a final sigma (ς) where Σ ends a word of Greek letters.
      let lower = Units(String(decoding: text, as: UTF16.self).lowercased().utf16)
      let greek: ClosedRange<UInt16> = 0x0391...0x03C9
      return .string(
        Units(
          lower.indices.map { index in
            let isFinal =
              text.indices.contains(index) && text[index] == 0x03A3 && index > 0
              && greek.contains(lower[index - 1])
              && !(index + 1 < lower.count && greek.contains(lower[index + 1]))
            return isFinal ? 0x03C2 : lower[index]
          }))
    case "toUpperCase":
      return .string(Units(String(decoding: text, as: UTF16.self).uppercased().utf16))
    default: throw NaiveFailure()
    }
  }

  private func first(_ part: Units, in text: Units, from start: Int) -> Int? {
    guard start + part.count <= text.count else { return nil }
    return (start...(text.count - part.count)).first { text[$0...].starts(with: part) }
  }

  private func call(
    _ name: String, _ tree: PlainTree, _ path: [Units]?, _ arguments: [RealtimeSyntax]
  ) throws -> NaiveValue {
    let here = path.map { tree.descendant($0) } ?? PlainTree()
    switch name {
    case "val": return here.leaf.map { .scalar($0) } ?? (here.isEmpty ? .null : .object)
    case "exists": return .bool(!here.isEmpty)
    case "getPriority": return here.priority.map { .scalar($0) } ?? .null
    case "isNumber":
      if case .number? = here.leaf { return .bool(true) }
      return .bool(false)
    case "isString":
      if case .string? = here.leaf { return .bool(true) }
      return .bool(false)
    case "isBoolean":
      if case .bool? = here.leaf { return .bool(true) }
      return .bool(false)
    case "parent":
      guard let path, !path.isEmpty else { throw NaiveFailure() }
      return .snapshot(tree, Array(path.dropLast()))
    case "child": return .snapshot(tree, child(path, try string(try value(arguments[0]))))
    case "hasChild": return .bool(exists(tree, child(path, try string(try value(arguments[0])))))
    case "hasChildren":
      guard let argument = arguments.first else { return .bool(!here.children.isEmpty) }
      guard case .list(let elements) = argument.kind else { throw NaiveFailure() }
      let names = try elements.map { try string(try value($0)) }
      return .bool(names.allSatisfy { exists(tree, child(path, $0)) })
    default: throw NaiveFailure()
    }
  }

  private func exists(_ tree: PlainTree, _ path: [Units]?) -> Bool {
    path.map { !tree.descendant($0).isEmpty } ?? false
  }

  /// The path of a child; nil for text that is not a path of keys.
  private func child(_ path: [Units]?, _ text: Units) -> [Units]? {
    let keys = text.split(separator: 0x2F).map(Units.init)
    let illegal = Set(".$#[]".utf16)
    guard let path, !keys.isEmpty,
      keys.allSatisfy({ $0.allSatisfy { $0 > 0x1F && $0 != 0x7F && !illegal.contains($0) } })
    else { return nil }
    return path + keys
  }
}

/// A search for a regular expression that tries every path through its instructions.
struct NaivePattern {
  private let pattern: Pattern
  private let text: [UInt32]

  init(_ pattern: Pattern, _ text: Units) {
    self.pattern = pattern
    self.text = text.map(UInt32.init)
  }

  /// Whether the pattern matches a part of the text.
  var isMatch: Bool {
    (0...text.count).contains { start in
      var visited: Set<[Int]> = []
      return matches(0, at: start, &visited)
    }
  }

  private func matches(_ instruction: Int, at offset: Int, _ visited: inout Set<[Int]>) -> Bool {
    guard visited.insert([instruction, offset]).inserted else { return false }
    switch pattern.instructions[instruction] {
    case .match: return true
    case .set(let set):
      return offset < text.count && pattern.sets[Int(set)].contains(text[offset])
        && matches(instruction + 1, at: offset + 1, &visited)
    case .split(let first, let second):
      return matches(Int(first), at: offset, &visited) || matches(Int(second), at: offset, &visited)
    case .jump(let target): return matches(Int(target), at: offset, &visited)
    case .save: return matches(instruction + 1, at: offset, &visited)
    case .assertion(.textStart): return offset == 0 && matches(instruction + 1, at: offset, &visited)
    case .assertion(.textEnd):
      return offset == text.count && matches(instruction + 1, at: offset, &visited)
    case .assertion: return false
    }
  }
}
