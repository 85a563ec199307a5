// The changes of rules in this process, for groups of databases such as those of a project.
//
// Invariant: changes are numbered in their order. A database has the rules of the last change of a group that contains it.

import FirestoreModel

/// The rules of groups of databases.
struct RulesDirectory: Sendable {
  /// A change of rules.
  struct Change: Sendable {
    /// The number of the change, from 1.
    var number: UInt64
    /// The rules; nil if the release was deleted.
    var rules: ReleasedRules?
  }

  private struct Group: Sendable {
    var name: String
    var contains: @Sendable (DatabaseName) -> Bool
    var change: Change
  }

  /// The groups of databases whose rules changed, the group with the latest change last.
  private var groups: [Group] = []
  private var changeCount: UInt64 = 0

  /// The last change of a database's rules; nil if this process has not changed them.
  func lastChange(of database: DatabaseName) -> Change? { groups.last { $0.contains(database) }?.change }

  /// Sets the rules of a group; nil if they were deleted.
  mutating func set(
    _ rules: ReleasedRules?, ofGroup name: String, _ contains: @escaping @Sendable (DatabaseName) -> Bool
  ) {
    changeCount += 1
    groups.removeAll { $0.name == name }
    groups.append(
      Group(name: name, contains: contains, change: Change(number: changeCount, rules: rules)))
  }

  /// Sets the rules of one database; nil if they were deleted.
  mutating func set(_ rules: ReleasedRules?, of database: DatabaseName) {
    set(rules, ofGroup: "\(database)") { $0 == database }
  }
}
