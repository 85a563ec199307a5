// Makes values usable as keys of sets and dictionaries, for two strengths of equality (`RuleEquality`).
//
// Invariant: a hash covers every part of a value. Keys with equal hashes would make a set of n values cost n² comparisons,
// and clients choose the values.

/// A value as a member of a set: numbers are equal by value at every depth, NaN equals NaN, and 0.0 equals −0.0.
///
/// A path with placeholders equals no value, not even itself. As a member of a set, it equals only the copies of that
/// member.
struct ValueKey: Hashable, Sendable {
  /// Distinguishes members whose values equal nothing.
  private final class Identity: Sendable {}

  let value: RuleValue
  private let identity: Identity?

  /// A value to compare with members.
  init(_ value: RuleValue) {
    self.value = value
    identity = nil
  }

  /// A value that becomes a member.
  init(member value: RuleValue) {
    self.value = value
    // A value that does not even equal itself gets an identity. Otherwise all of these values could have the same hash.
    identity = RuleEquality.byValue.equal(value, value) ? nil : Identity()
  }

  static func == (left: ValueKey, right: ValueKey) -> Bool {
    guard left.identity == nil, right.identity == nil else { return left.identity === right.identity }
    return RuleEquality.byValue.equal(left.value, right.value)
  }

  func hash(into hasher: inout Hasher) {
    if let identity {
      hasher.combine(ObjectIdentifier(identity))
    } else {
      value.hash(into: &hasher, .byValue)
    }
  }
}

/// A value as an item of a list: 1 differs from 1.0 at every depth, and NaN differs from itself.
struct StrictKey: Hashable, Sendable {
  let value: RuleValue

  init(_ value: RuleValue) { self.value = value }

  static func == (left: StrictKey, right: StrictKey) -> Bool {
    RuleEquality.strict.equal(left.value, right.value)
  }

  func hash(into hasher: inout Hasher) { value.hash(into: &hasher, .strict) }
}

extension RuleValue {
  /// Hashes what an equality of strength `byValue` or `strict` compares.
  fileprivate func hash(into hasher: inout Hasher, _ equality: RuleEquality) {
    switch self {
    case .null, .mapDiff, .constraint, .unknownPath: hasher.combine(0)
    case .bool(let value): hasher.combine(value)
    case .int(let value):
      // An integer that no float equals exactly is hashed as an integer, because up to 1,024 adjacent
      // integers convert to the same float.
      if equality == .byValue, let float = Double(exactly: value) {
        Self.hash(float, into: &hasher)
      } else {
        hasher.combine(value)
      }
    case .float(let value): Self.hash(value, into: &hasher)
    case .string(let value): hasher.combine(value)
    case .bytes(let value): hasher.combine(value)
    case .timestamp(let value): hasher.combine(value)
    case .duration(let value): hasher.combine(value)
    case .latlng(let value): hasher.combine(value)
    case .path(let value): hasher.combine(value)
    case .vector(let numbers):
      hasher.combine(numbers.count)
      for number in numbers { Self.hash(number, into: &hasher) }
    case .list(let list):
      hasher.combine(list.count)
      for index in 0..<list.count { list[index].hash(into: &hasher, equality) }
    case .map(let map):
      hasher.combine(map.count)
      for entry in map.entries.sorted(by: { $0.key < $1.key }) {
        hasher.combine(entry.key)
        entry.value.hash(into: &hasher, equality)
      }
    case .set(let set): hasher.combine(set.members)
    }
  }

  private static func hash(_ value: Double, into hasher: inout Hasher) {
    hasher.combine(value.isNaN ? Double.nan.bitPattern : (value == 0 ? 0.0 : value).bitPattern)
  }
}
