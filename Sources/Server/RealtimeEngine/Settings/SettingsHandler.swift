// Handles rules and other settings. Changes of rules are sequenced with all other operations, so every write
// after such a change uses the new rules.

import Access
import OrderedStore
import RealtimeModel

/// Reads and changes settings in a batch.
struct SettingsHandler: BatchHandler {
  let batch: BatchExecution

  /// The current rules; nil if there are none.
  func rules() throws -> RulesFile? { try storedRules()?.rules.file }

  /// The current rules with their policy, and the version that wrote them; nil if there are none.
  func storedRules() throws -> (version: Version, rules: StoredRules)? {
    if let known = batch.cachedRules { return known }
    let rules = try executor.rules.rules(in: tree.view)
    batch.cachedRules = .some(rules)
    return rules
  }

  /// Whether a location's children are indexed in an order. The orders by key and by priority need no rules.
  func hasIndex(_ ordering: Ordering, _ path: Path) throws -> Bool {
    switch ordering {
    case .key, .priority: true
    case .value, .child: try rules()?.hasIndex(on: ordering, at: path) ?? false
    }
  }

  func string(of setting: Setting, for caller: Principal) throws -> String? {
    guard caller.isAdministrator else { throw RealtimeError.permissionDenied }
    return try tree.view.get(RowKeys.setting(setting)).map { String(decoding: $0.value, as: UTF8.self) }
  }

  func set(_ setting: Setting, to string: String, for caller: Principal) throws {
    guard caller.isAdministrator else { throw RealtimeError.permissionDenied }
    try batch.requireWriter().set(RowKeys.setting(setting), Array(string.utf8))
  }

  /// Replaces the rules. They are in force from the next operation on.
  func set(_ rules: StoredRules, for caller: Principal) throws {
    let before = try self.rules()
    try set(.rules, to: rules.file.text, for: caller)
    // The row is read again, with the version of this batch.
    batch.cachedRules = nil
    try batch.authorization.invalidateListensIfPolicyChanged()
    if rules.policy != nil { executor.events.rulesChanged() }
    guard !rules.file.root.hasSameIndexes(as: before?.root) else { return }
    try batch.indexes.build(.root, in: try batch.requireWriter())
    // An operation may be waiting for an index that the new rules no longer contain, so waiting operations
    // resume.
    executor.events.indexesChanged()
  }
}
