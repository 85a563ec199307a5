// The rules that were set in this process, for groups of databases such as those of a project.

import FirestoreModel

/// The rules of groups of databases.
struct RulesDirectory: Sendable {
  private struct Group: Sendable {
    var name: String
    var contains: @Sendable (DatabaseName) -> Bool
    /// The rules; nil if the release was deleted.
    var rules: ReleasedRules?
  }

  /// The groups, the latest last.
  private var groups: [Group] = []

  /// The rules of a database: those of the group that was set last.
  func rules(of database: DatabaseName) -> ReleasedRules? { groups.last { $0.contains(database) }?.rules }

  /// Sets the rules of a group; nil if they were deleted.
  mutating func set(
    _ rules: ReleasedRules?, ofGroup name: String, _ contains: @escaping @Sendable (DatabaseName) -> Bool
  ) {
    groups.removeAll { $0.name == name }
    groups.append(Group(name: name, contains: contains, rules: rules))
  }

  /// Sets the rules of one database; nil if they were deleted.
  mutating func set(_ rules: ReleasedRules?, of database: DatabaseName) {
    set(rules, ofGroup: "\(database)") { $0 == database }
  }
}
