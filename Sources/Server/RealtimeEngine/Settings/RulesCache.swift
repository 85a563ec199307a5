// Caches a database's rules, so that they are parsed once after each change.

import Locking
import OrderedStore
import RealtimeModel

/// The rules that were parsed last.
final class RulesCache: Sendable {
  private let last = Guarded<(version: Version, rules: RulesFile)?>(nil)

  /// Returns the rules of a state; nil if it has none.
  ///
  /// - Throws: errors of the store; ``StoreError`` for a row without a valid rules file.
  func rules(in view: any ReadView) throws -> RulesFile? {
    guard let row = try view.get(RowKeys.setting(.rules)) else { return nil }
    if let last = last.withLock({ $0 }), last.version == row.writtenAt,
      last.rules.text.utf8.count == row.value.count
    {
      return last.rules
    }
    do throws(RulesError) {
      let rules = try RulesFile(row.value)
      last.withLock { $0 = (row.writtenAt, rules) }
      return rules
    } catch { throw StoreError(.corrupted, "the rules of a database cannot be read: \(error)") }
  }
}
