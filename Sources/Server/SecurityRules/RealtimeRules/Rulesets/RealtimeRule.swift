// The compiled rules of a Realtime Database: a tree that mirrors the rules file.

import RealtimeModel

/// A compiled rule.
struct RealtimeRule: Sendable {
  /// The condition under which the rule is true.
  enum Condition: Sendable {
    case constant(Bool)
    case expression(RealtimeTerm)

    /// Whether the rule is the constant `true`.
    var isTrue: Bool {
      if case .constant(true) = self { return true }
      return false
    }
  }

  let condition: Condition
  let kind: RuleSite.Kind
  /// The line in the rules file, from 1.
  let line: Int
  /// The column of the rule's first character, from 1, in UTF-16 code units.
  let column: Int
  /// The depths at which the wildcards on the way to the rule match a key, from the root down.
  let wildcardDepths: [Int]
  /// The indices of the marks of the rule's expressions; empty in rules without marks (see RealtimeMarks.swift).
  var marks: Range<Int> = 0..<0
}

/// The compiled rules of a location, or of all locations that a wildcard matches.
final class RealtimeRuleNode: Sendable {
  let read: RealtimeRule?
  let write: RealtimeRule?
  let validate: RealtimeRule?
  /// The rules of named children.
  let children: [ChildKey: RealtimeRuleNode]
  /// The same rules as a list, if they are few: comparing a few keys is faster than hashing one.
  private let fewChildren: [(key: ChildKey, node: RealtimeRuleNode)]?
  /// The rules of all other children.
  let wildcard: RealtimeRuleNode?
  /// Whether this node or one below it has a `.validate` rule.
  let hasValidation: Bool

  init(
    read: RealtimeRule?, write: RealtimeRule?, validate: RealtimeRule?,
    children: [ChildKey: RealtimeRuleNode],
    wildcard: RealtimeRuleNode?
  ) {
    self.read = read
    self.write = write
    self.validate = validate
    self.children = children
    fewChildren =
      children.count <= RealtimeRuleNode.maximumComparedChildren
      ? children.map { (key: $0.key, node: $0.value) } : nil
    self.wildcard = wildcard
    hasValidation =
      validate != nil || wildcard?.hasValidation ?? false || children.values.contains { $0.hasValidation }
  }

  /// The largest number of children that are compared one by one.
  private static let maximumComparedChildren = 6

  /// The rules of a child: the rules for its key, otherwise the rules of the wildcard; nil if there are none.
  func child(_ key: ChildKey) -> RealtimeRuleNode? {
    guard let fewChildren else { return children[key] ?? wildcard }
    for child in fewChildren where child.key == key { return child.node }
    return wildcard
  }
}
