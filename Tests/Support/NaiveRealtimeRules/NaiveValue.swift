// The values of the naive evaluator of Realtime Database rules, and JavaScript's conversion of numbers to text.

import Foundation
import JSON

/// A value of an expression.
enum NaiveValue {
  case null
  case scalar(PlainTree.Scalar)
  /// A stored object.
  case object
  /// `auth` or a claim with members.
  case claims(JSONValue)
  /// A location in the tree before or after the operation; nil for a path that no location can have.
  case snapshot(PlainTree, [Units]?)

  static func bool(_ value: Bool) -> NaiveValue { .scalar(.bool(value)) }
  static func number(_ value: Double) -> NaiveValue { .scalar(.number(value)) }
  static func string(_ units: Units) -> NaiveValue { .scalar(.string(units)) }

  /// A claim. Nulls and objects without members do not exist.
  init(claim: JSONValue) {
    if let scalar = PlainTree.Scalar(claim) {
      self = .scalar(scalar)
    } else {
      self = Self.exists(claim) ? .claims(claim) : .null
    }
  }

  private static func exists(_ claim: JSONValue) -> Bool {
    switch claim {
    case .null: false
    case .array(let elements): elements.contains(where: exists)
    case .object(let object): object.members.contains { exists($0.value) }
    default: true
    }
  }

  /// A member; null if there is none.
  func member(_ name: Units) -> NaiveValue {
    switch self {
    case .scalar(.string(let units)) where name == Units("length".utf16): return .number(Double(units.count))
    case .claims(.object(let object)):
      let found = object.members.first { Units($0.key.utf16) == name }
      return found.map { NaiveValue(claim: $0.value) } ?? .null
    case .claims(.array(let elements)):
      let found = elements.indices.first { Units(String($0).utf16) == name }
      return found.map { NaiveValue(claim: elements[$0]) } ?? .null
    default: return .null
    }
  }

  /// Equality by type and value. Stored objects equal nothing.
  func equals(_ other: NaiveValue) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.scalar(let x), .scalar(let y)): x == y
    case (.claims(let x), .claims(let y)): x == y
    default: false
    }
  }

  /// The text of a number: the fewest digits that give the same double.
  static func text(_ number: Double) -> String {
    if number.isNaN { return "NaN" }
    if number.isInfinite { return number < 0 ? "-Infinity" : "Infinity" }
    if number == 0 { return "0" }
    var shortest = ""
    for digits in 0...17 where shortest.isEmpty {
      let candidate = String(format: "%.\(digits)e", number.magnitude)
      if Double(candidate) == number.magnitude { shortest = candidate }
    }
    let halves = shortest.split(separator: "e")
    let power = Int(halves[1]) ?? 0
    let digits = halves[0].filter { $0 != "." }
    let sign = number < 0 ? "-" : ""
    if power >= 21 || power < -6 {
      let fraction = digits.count > 1 ? "." + digits.dropFirst() : ""
      return sign + digits.prefix(1) + fraction + "e" + (power < 0 ? "-" : "+") + String(abs(power))
    }
    if power < 0 { return sign + "0." + String(repeating: "0", count: -power - 1) + digits }
    if digits.count <= power + 1 {
      return sign + digits + String(repeating: "0", count: power + 1 - digits.count)
    }
    return sign + digits.prefix(power + 1) + "." + digits.dropFirst(power + 1)
  }
}
