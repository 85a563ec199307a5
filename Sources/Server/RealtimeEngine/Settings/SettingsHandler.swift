// Settings in the one order of everything else: a write that follows a change of rules sees it.

import OrderedStore
import RealtimeModel

extension BatchExecution {
  /// The rules of the state; nil if there are none.
  mutating func rules() throws -> RulesFile? {
    if let known = knownRules { return known }
    let rules = try executor.rules.rules(in: tree.view)
    knownRules = .some(rules)
    return rules
  }

  /// Whether an order of a location's children is indexed. Without rules none is but those by key and by priority.
  mutating func hasIndex(_ ordering: Ordering, _ path: Path) throws -> Bool {
    switch ordering {
    case .key, .priority: true
    case .value, .child: try rules()?.hasIndex(on: ordering, at: path) ?? false
    }
  }

  func text(of setting: Setting, for caller: Caller) throws -> String? {
    guard caller.identity == .administrator else { throw RealtimeError.permissionDenied }
    return try tree.view.get(RowKeys.setting(setting)).map { String(decoding: $0.value, as: UTF8.self) }
  }

  mutating func set(_ setting: Setting, to text: String, for caller: Caller) throws {
    guard caller.identity == .administrator else { throw RealtimeError.permissionDenied }
    try requireWriter().set(RowKeys.setting(setting), Array(text.utf8))
  }

  mutating func set(_ rules: RulesFile, for caller: Caller) throws {
    let before = try self.rules()
    try set(.rules, to: rules.text, for: caller)
    knownRules = .some(rules)
    if !rules.root.hasSameIndexes(as: before?.root) { try build(.root, in: try requireWriter()) }
  }
}
