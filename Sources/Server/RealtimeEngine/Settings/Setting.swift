// What can be set for a database as a whole, beside its data.

public import RealtimeModel

/// A setting of a database, by the name under which administrators reach it.
public enum Setting: String, Sendable, CaseIterable {
  /// The rules file, as text.
  case rules
  /// The class of writes that is allowed where a request names none, as a text of JSON.
  case defaultWriteSizeLimit
  /// Whether triggers are checked strictly, as a text of JSON.
  case strictTriggerValidation
}

extension RowKeys {
  /// The row of a setting: its text as UTF-8.
  static func setting(_ setting: Setting) -> [UInt8] { kept(setting.rawValue) }
}

extension RealtimeDatabase {
  /// The text of a setting; nil while it was never set.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied` to everyone but administrators.
  public func setting(_ setting: Setting, as caller: Caller) async throws(RealtimeError) -> String? {
    guard case .text(let text) = try await read(.getSetting(setting), as: caller) else { return nil }
    return text
  }

  /// Changes a setting but for the rules; durable when this returns.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied` to everyone but administrators.
  public func set(_ setting: Setting, to text: String, as caller: Caller) async throws(RealtimeError) {
    guard setting != .rules else { throw RealtimeError(.failure, "rules are set as a rules file") }
    _ = try await call(.setSetting(setting, text), as: caller)
  }

  /// Replaces the rules; durable, and in force as far as they are enforced, when this returns.
  ///
  /// - Throws: ``RealtimeModel/RealtimeError``: `permission_denied` to everyone but administrators.
  public func setRules(_ rules: RulesFile, as caller: Caller) async throws(RealtimeError) {
    _ = try await call(.setRules(rules), as: caller)
  }

  /// The rules; nil while none were set.
  public func rules() async throws(RealtimeError) -> RulesFile? {
    guard case .rules(let rules) = try await read(.getRules, as: .administrator) else { return nil }
    return rules
  }
}
