// Defines the settings of a database.

package import Access
package import RealtimeModel

/// A setting of a database, by its name in the administrative API.
package enum Setting: String, Sendable, CaseIterable {
  /// The rules file, as a string.
  case rules
  /// The default write size limit, as JSON.
  case defaultWriteSizeLimit
  /// Whether triggers are validated strictly, as JSON.
  case strictTriggerValidation
}

extension RowKeys {
  /// The row of a setting: its string as UTF-8.
  static func setting(_ setting: Setting) -> [UInt8] { metadata(setting.rawValue) }
}

extension RealtimeDatabase {
  /// Returns a setting; nil if it was never set.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied` unless the caller is an administrator.
  package func setting(_ setting: Setting, as caller: Principal) async throws(RealtimeError) -> String? {
    guard case .setting(let text) = try await read(.getSetting(setting), as: caller) else { return nil }
    return text
  }

  /// Changes a setting other than the rules; durable when this returns.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied` unless the caller is an administrator.
  package func set(_ setting: Setting, to text: String, as caller: Principal) async throws(RealtimeError) {
    guard setting != .rules else { throw RealtimeError(.failure, "rules are set as a rules file") }
    _ = try await call(.setSetting(setting, text), as: caller)
  }

  /// Replaces the rules. They are durable, and in force where rules are enforced, when this returns.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied` unless the caller is an administrator.
  package func setRules(_ rules: RulesFile, as caller: Principal) async throws(RealtimeError) {
    _ = try await call(.setRules(runner.executor.rules.prepare(rules)), as: caller)
  }

  /// Returns the rules; nil if none were set.
  package func rules() async throws(RealtimeError) -> RulesFile? {
    guard case .rules(let rules) = try await read(.getRules, as: .administrator) else { return nil }
    return rules
  }

  /// Returns the policy that enforces the rules; nil if none were set, or rules are not enforced.
  package func rulesPolicy() async throws(RealtimeError) -> (any AccessPolicy<RealtimeAccess>)? {
    guard try await rules() != nil else { return nil }
    return runner.executor.rules.latest?.policy
  }
}
