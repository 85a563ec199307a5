// Compares values with one of three strengths of equality. `==` compares its operands by value, and the contents of
// lists and maps strictly. Sets and `diff` compare by value at every depth.

import FirestoreModel

/// How numbers compare in an equality test.
enum RuleEquality {
  /// As `==` does with its operands: 1 equals 1.0, NaN equals nothing.
  case operands
  /// As inside lists and maps: 1 differs from 1.0, and 0.0 from −0.0; NaN equals nothing.
  case strict
  /// As in sets and `diff`: 1 equals 1.0 and NaN equals NaN, at every depth.
  case byValue

  /// The strength for the items of lists and maps.
  private var inner: RuleEquality { self == .byValue ? .byValue : .strict }

  /// Whether two values are equal. Values of different types are not.
  func equal(_ left: RuleValue, _ right: RuleValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.bool(let a), .bool(let b)): a == b
    case (.int(let a), .int(let b)): a == b
    case (.float(let a), .float(let b)): equal(a, b)
    case (.int(let a), .float(let b)), (.float(let b), .int(let a)):
      switch self {
      case .operands: Double(a) == b
      case .strict: false
      // Compares exactly, so that equality is transitive and agrees with the hash.
      case .byValue: Double(exactly: a) == b
      }
    case (.string(let a), .string(let b)): a == b
    case (.bytes(let a), .bytes(let b)): a == b
    case (.timestamp(let a), .timestamp(let b)): a == b
    case (.duration(let a), .duration(let b)): a == b
    case (.latlng(let a), .latlng(let b)): a == b
    case (.path(let a), .path(let b)): a == b && !a.hasPlaceholders
    case (.vector(let a), .vector(let b)): a.elementsEqual(b) { self == .byValue ? equal($0, $1) : $0 == $1 }
    case (.list(let a), .list(let b)): equal(a, b)
    case (.map(let a), .map(let b)): equal(a, b)
    case (.set(let a), .set(let b)): a.members == b.members
    default: false
    }
  }

  private func equal(_ a: Double, _ b: Double) -> Bool {
    switch self {
    case .operands: a == b
    case .strict: a == b && a.sign == b.sign
    case .byValue: a == b || (a.isNaN && b.isNaN)
    }
  }

  private func equal(_ a: RuleList, _ b: RuleList) -> Bool {
    guard a.count == b.count else { return false }
    for index in 0..<a.count where !inner.equal(a[index], b[index]) { return false }
    return true
  }

  private func equal(_ a: RuleMap, _ b: RuleMap) -> Bool {
    guard a.count == b.count else { return false }
    if case .document(let a) = a, case .document(let b) = b {
      // Database and path determine `id` and `__name__`.
      return a.database.hasSameUTF8(as: b.database)
        && a.path.segments.elementsEqual(b.path.segments) { $0.hasSameUTF8(as: $1) }
        && inner.equal(.stored(a.fields), .stored(b.fields))
    }
    // Both maps are sorted in the same order, so one pass compares them.
    if case .stored(let a) = a, case .stored(let b) = b {
      for (first, second) in zip(a.entries, b.entries) {
        guard first.key.utf8.elementsEqual(second.key.utf8),
          inner.equal(RuleValue(first.value), RuleValue(second.value))
        else { return false }
      }
      return true
    }
    let other = Dictionary(b.entries.map { ($0.key, $0.value) }) { first, _ in first }
    for entry in a.entries {
      guard let value = other[entry.key], inner.equal(entry.value, value) else { return false }
    }
    return true
  }
}
